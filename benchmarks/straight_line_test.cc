#include "benchmarks/straight_line.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "autograd/parameter.h"
#include "benchmarks/models.h"
#include "gtest/gtest.h"

namespace wengert::benchmarks {
namespace {

constexpr int kCount = sizeof(StraightLineToy::Parameters) / sizeof(float);

class StraightLineTest : public testing::Test {
 protected:
  // Both do a step. Returns the losses before it.
  std::pair<double, double> Step() {
    const double loss = model_->Step().item();
    return {loss, straight_line_.Step()};
  }

  void ExpectEqualGradients() {
    const auto expected = StraightLineToy::Gradients(model_->store());
    const auto& got = straight_line_.gradients();
    const auto* e = reinterpret_cast<const float*>(&expected);
    const auto* g = reinterpret_cast<const float*>(&got);
    for (int i = 0; i < kCount; ++i) {
      ASSERT_NEAR(e[i], g[i], 1e-7 + 1e-4 * std::fabs(e[i])) << "element " << i;
    }
  }

  const std::unique_ptr<Workload> model_ = MakeWorkload("toy");
  StraightLineToy straight_line_{model_->store()};
};

TEST_F(StraightLineTest, EveryParameterIsThere) {
  EXPECT_EQ(kCount, model_->store().num_elements());
}

TEST_F(StraightLineTest, HasTheModelsLossBeforeAndAfterTwentySteps) {
  for (int i = 0; i <= 20; ++i) {
    const auto [expected, got] = Step();
    EXPECT_NEAR(expected, got, 2e-6) << "after " << i << " steps";
  }
}

TEST_F(StraightLineTest, HasTheModelsGradients) {
  for (int i = 0; i < 5; ++i) {
    Step();
    ExpectEqualGradients();
    // Every parameter has a gradient that a mistake in it would change.
    for (const Parameter* p : model_->store().parameters()) {
      const auto g = p->grad.span<float>();
      EXPECT_GT(*std::max_element(g.begin(), g.end()), 1e-5) << p->name;
    }
  }
}

}  // namespace
}  // namespace wengert::benchmarks
