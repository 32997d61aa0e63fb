// Optimizers whose state follows a parameter's shape, and L-BFGS: twenty
// updates in double as PyTorch makes them (testdata/optimizer_matrix_torch.py),
// their state and their edges.
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/adafactor.h"
#include "train/checkpoint.h"
#include "train/files_testlib.h"
#include "train/lbfgs.h"
#include "train/muon.h"
#include "train/optimizer_testlib.h"

namespace wengert::train {
namespace {

using nn::ParameterStore;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Make = std::function<std::unique_ptr<Optimizer>(ParameterStore&)>;

using OptimizerMatrix = FilesTest;

const std::vector<Shape> kShapes = {{2, 3}, {3, 2}, {4}, {2, 2, 3}, {}};
const std::vector<Shape> kMatrices = {{2, 3}, {3, 2}, {1, 4}, {3, 3}};

// All weights after each of the updates.
std::vector<std::vector<double>> Reference(const std::string& name) {
  std::ifstream file("train/testdata/optimizer_matrix_reference.txt");
  std::vector<std::vector<double>> updates;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    int t;
    words >> first >> t;
    if (first != name) continue;
    updates.emplace_back();
    for (double x; words >> x;) updates.back().push_back(x);
  }
  EXPECT_EQ(updates.size(), 20u) << name;
  return updates;
}

std::vector<double> Weights(const ParameterStore& store) {
  std::vector<double> all;
  for (const Parameter* p : store.parameters()) {
    const auto x = p->value.ToVector();
    all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}

// Parameters that start as the script's.
ParameterStore Store(const std::vector<Shape>& shapes,
                     DType dtype = DType::kFloat64) {
  ParameterStore store(dtype);
  int n = 0;
  for (const Shape& shape : shapes) {
    Tensor w = store.root().Zeros(std::to_string(store.size()), shape);
    WithFloat(dtype, [&]<class T>(T) {
      for (int64_t i = 0; i < w.size(); ++i) {
        w.mutable_data<T>()[i] = std::sin(1.7 * n++);
      }
    });
  }
  return store;
}

void Update(ParameterStore& store, Optimizer& optimizer, int t) {
  int n = 0;
  for (const Parameter* p : store.parameters()) {
    std::vector<double> g = p->value.ToVector();
    for (double& x : g) {
      x = (n % 3 + 1) * std::cos(1.3 * t + n) + 0.2 * x;
      ++n;
    }
    AddGradient(p->value, g);
  }
  optimizer.Step();
}

void ExpectNear(const std::vector<double>& got, const std::vector<double>& want,
                double tolerance, int t) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], tolerance) << "update " << t << ", " << i;
  }
}

void ExpectFollows(const std::string& name, const std::vector<Shape>& shapes,
                   const Make& make, double float_tolerance = 2e-5) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    ParameterStore store = Store(shapes, dtype);
    const auto optimizer = make(store);
    int t = 0;
    for (const std::vector<double>& want : Reference(name)) {
      Update(store, *optimizer, ++t);
      ExpectNear(Weights(store), want,
                 dtype == DType::kFloat64 ? 1e-12 : float_tolerance, t);
    }
  }
}

template <class O, class Options>
Make Maker(const Options& options) {
  return [=](ParameterStore& store) {
    return std::make_unique<O>(store, options);
  };
}

TEST_F(OptimizerMatrix, Adafactor) {
  ExpectFollows("adafactor", kShapes,
                Maker<Adafactor>(AdafactorOptions{.lr = 0.05}));
  ExpectFollows("adafactor_full", kShapes,
                Maker<Adafactor>(AdafactorOptions{.lr = 0.5,
                                                  .beta2_decay = -0.6,
                                                  .eps1 = 1e-4,
                                                  .eps2 = 0.3,
                                                  .d = 1.25,
                                                  .weight_decay = 0.1}));
}

TEST_F(OptimizerMatrix, Muon) {
  ExpectFollows("muon", kMatrices, Maker<Muon>(MuonOptions{.lr = 0.05}), 1e-3);
  ExpectFollows("muon_original", kMatrices,
                Maker<Muon>(MuonOptions{.lr = 0.05,
                                        .momentum = 0.8,
                                        .nesterov = false,
                                        .weight_decay = 0.3,
                                        .ns_steps = 3,
                                        .match_adamw = false}),
                1e-3);
}

TEST_F(OptimizerMatrix, MuonUpdatesWhatIsNoMatrixAsAdamWDoes) {
  ExpectFollows("adamw", {{4}, {2, 2, 3}},
                Maker<Muon>(MuonOptions{.lr = 0.05}));
  ParameterStore store = Store({{2, 3}, {2, 3}});
  Muon muon(store,
            {.matrix_filter = [](const std::string& name, const Tensor&) {
              return name != "0";
            }});
  const auto state = muon.State();
  EXPECT_EQ(state.parameters.at("0").tensors.count("v"), 1u);
  EXPECT_EQ(state.parameters.at("1").tensors.count("momentum"), 1u);
}

// Rosenbrock's function, a little longer, of a [2] and b [].
Lbfgs::Closure Rosenbrock(const ParameterStore& store) {
  return [&store] {
    Tape tape;
    const Tensor a = store.parameters()[0]->value;
    const Tensor b = store.parameters()[1]->value;
    const Tensor a0 = Sum(a * Tensor::Of<double>({2}, {1, 0}));
    const Tensor a1 = Sum(a * Tensor::Of<double>({2}, {0, 1}));
    const Tensor loss = Square(a1 - Square(a0)) * 100 + Square(1 - a0) +
                        Square(b - Square(a1)) * 10 + Square(1 - a1);
    tape.Backward(loss);
    return loss.item();
  };
}

void ExpectLbfgsFollows(const std::string& name, const LbfgsOptions& options,
                        double tolerance) {
  ParameterStore store = Store({{2}, {}});
  Lbfgs optimizer(store, options);
  int t = 0;
  for (const std::vector<double>& want : Reference(name)) {
    optimizer.Step(Rosenbrock(store));
    ExpectNear(Weights(store), want, tolerance, ++t);
  }
}

TEST_F(OptimizerMatrix, Lbfgs) {
  ExpectLbfgsFollows("lbfgs", {.lr = 0.01, .max_iter = 1}, 1e-10);
  ExpectLbfgsFollows("lbfgs_wolfe", {.max_iter = 1, .line_search = true}, 1e-9);
  ExpectLbfgsFollows("lbfgs_short",
                     {.max_iter = 3, .history = 2, .line_search = true}, 1e-9);
}

TEST_F(OptimizerMatrix, LbfgsFindsTheMinimum) {
  ParameterStore store = Store({{2}, {}});
  Lbfgs optimizer(store, {.max_iter = 100,
                          .max_eval = 200,
                          .tolerance_change = 1e-14,
                          .line_search = true});
  const double first = optimizer.Step(Rosenbrock(store));
  EXPECT_GT(first, 100);
  ExpectNear(Weights(store), {1, 1, 1}, 1e-6, 1);
  const auto before = Weights(store);
  optimizer.Step(Rosenbrock(store));  // at the minimum nothing is left to do
  ExpectNear(Weights(store), before, 1e-6, 2);
}

TEST_F(OptimizerMatrix, LbfgsStopsAtALossThatIsNotFinite) {
  for (const bool line_search : {false, true}) {
    ParameterStore store = Store({{2}});
    const auto before = Weights(store);
    Lbfgs optimizer(store, {.line_search = line_search});
    int calls = 0;
    optimizer.Step([&] {
      AddGradient(store.parameters()[0]->value, {1, 1});
      return calls++ == 0 ? 1 : std::numeric_limits<double>::quiet_NaN();
    });
    EXPECT_EQ(Weights(store), before);
    EXPECT_THAT([&] { static_cast<Optimizer&>(optimizer).Step(); },
                ThrowsMessage<Error>(HasSubstr("Step wants a function")));
  }
}

// A run that was saved to a checkpoint and taken up goes on as it would have.
void ExpectResumes(const std::string& path, const std::vector<Shape>& shapes,
                   const Make& make,
                   std::function<void(ParameterStore&, Optimizer&, int)> step) {
  ParameterStore store = Store(shapes), other = Store(shapes);
  const auto optimizer = make(store), restored = make(other);
  for (int t = 1; t <= 4; ++t) step(store, *optimizer, t);
  ASSERT_TRUE(
      SaveCheckpoint(path, {.parameters = &store, .optimizer = optimizer.get()},
                     {})
          .ok());
  const auto info =
      LoadCheckpoint(path, {.parameters = &other, .optimizer = restored.get()});
  ASSERT_TRUE(info.ok()) << info.status();
  for (int t = 5; t <= 8; ++t) {
    step(store, *optimizer, t);
    step(other, *restored, t);
    EXPECT_EQ(Weights(other), Weights(store)) << t;
  }
}

TEST_F(OptimizerMatrix, ARunIsTakenUp) {
  ExpectResumes(Path("adafactor"), kShapes,
                Maker<Adafactor>(AdafactorOptions{}), Update);
  ExpectResumes(Path("muon"), kShapes, Maker<Muon>(MuonOptions{}), Update);
  ExpectResumes(Path("lbfgs"), {{2}, {}},
                Maker<Lbfgs>(LbfgsOptions{
                    .max_iter = 2, .history = 3, .line_search = true}),
                [](ParameterStore& store, Optimizer& optimizer, int) {
                  static_cast<Lbfgs&>(optimizer).Step(Rosenbrock(store));
                });
}

TEST_F(OptimizerMatrix, AStateOfOtherShapesIsRefused) {
  ParameterStore store = Store({{2, 3}}), other = Store({{3, 2}});
  Adafactor optimizer(store), wrong(other);
  EXPECT_THAT([&] { optimizer.Load(wrong.State()); },
              ThrowsMessage<Error>(HasSubstr(
                  "'row' of '0' is float64 [3]; wanted float64 [2]")));
  EXPECT_EQ(optimizer.State().parameters.at("0").tensors.at("column").size(),
            3);
}

TEST_F(OptimizerMatrix, EmptyParametersStayEmpty) {
  const std::vector<Shape> shapes = {{0, 3}, {2, 0}, {0}};
  for (const Make& make :
       {Maker<Adafactor>(AdafactorOptions{}), Maker<Muon>(MuonOptions{})}) {
    ParameterStore store = Store(shapes);
    const auto optimizer = make(store);
    Update(store, *optimizer, 1);
    EXPECT_TRUE(Weights(store).empty());
  }
}

TEST_F(OptimizerMatrix, RefusesOptionsOutOfRange) {
  ParameterStore store = Store({{2, 3}});
  const auto expect = [&](auto make, const std::string& what) {
    EXPECT_THAT(make, ThrowsMessage<Error>(HasSubstr(what)));
  };
  expect([&] { Adafactor(store, {.beta2_decay = 0.1}); },
         "Adafactor: beta2_decay is 0.1");
  expect([&] { Adafactor(store, {.eps1 = -1}); }, "eps1 is -1");
  expect([&] { Adafactor(store, {.d = 0}); }, "d is 0");
  expect([&] { Muon(store, {.momentum = 1}); }, "Muon: momentum is 1");
  expect([&] { Muon(store, {.ns_steps = 0}); }, "ns_steps is 0");
  expect([&] { Muon(store, {.eps = 0}); }, "eps is 0");
  expect([&] { Lbfgs(store, {.max_iter = 0}); }, "Lbfgs: max_iter is 0");
  expect([&] { Lbfgs(store, {.history = -2}); }, "history is -2");
  expect([&] { Lbfgs(store, {.tolerance_grad = -1}); }, "tolerance_grad is -1");
}

}  // namespace
}  // namespace wengert::train
