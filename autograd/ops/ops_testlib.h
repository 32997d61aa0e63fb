// What the tests of operations share: samples, gradients, and the
// comparison of runs with several numbers of threads.
#ifndef WENGERT_AUTOGRAD_OPS_OPS_TESTLIB_H_
#define WENGERT_AUTOGRAD_OPS_OPS_TESTLIB_H_

#include <cmath>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "autograd/ops.h"
#include "autograd/parallel.h"
#include "autograd/random.h"
#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert {

using Inputs = absl::Span<const Tensor>;
using Function = std::function<Tensor(Inputs)>;

inline constexpr double kInf = HUGE_VAL;
inline constexpr DType kFloats[] = {DType::kFloat32, DType::kFloat64};

// Values spread evenly over (lo, hi) in random order: no two are alike, and for
// two seeds none are.
inline Tensor Spread(const Shape& shape, double lo, double hi,
                     uint64_t seed = 0) {
  const std::vector<int64_t> order = Permutation(seed, 0, shape.size());
  const double shift = 0.37 + 0.29 * static_cast<double>(seed % 3);
  std::vector<double> values;
  for (int64_t i : order) {
    values.push_back(lo + (hi - lo) * (static_cast<double>(i) + shift) /
                              static_cast<double>(shape.size()));
  }
  return Tensor::From(shape, values);
}

// A tensor of either float type.
inline Tensor Values(const Shape& shape, std::vector<double> values,
                     DType dtype = DType::kFloat64) {
  return Tensor::From(shape, values).To(dtype);
}
inline Tensor Values(std::vector<double> values, DType dtype) {
  const Shape shape{static_cast<int64_t>(values.size())};
  return Values(shape, std::move(values), dtype);
}

// True at some places, false at others, in no pattern that a stride shares.
inline Tensor SomeTrue(const Shape& shape) {
  std::vector<bool> values;
  for (int64_t i = 0; i < shape.size(); ++i) values.push_back(i * 7 % 5 != 2);
  return Tensor::From(shape, values);
}

struct ValueAndGradients {
  Tensor value;
  std::vector<Tensor> gradients;  // of the float inputs, in their order
};

// f and dL/dx for each float x, L = sum of f(x) * cotangent (of ones when it is
// not given). `recorded` asks for gradients that could be differentiated, and
// so for the compositions.
inline ValueAndGradients Differentiate(const Function& f, Inputs inputs,
                                       const Tensor& cotangent = {},
                                       bool recorded = false) {
  Tape tape;
  std::vector<Tensor> xs;
  for (const Tensor& x : inputs) {
    if (!IsFloat(x.dtype())) continue;
    tape.Watch(x);
    xs.push_back(x);
  }
  const Tensor y = f(inputs);
  const Tensor dy =
      cotangent.defined() ? cotangent : Tensor::Ones(y.shape(), y.dtype());
  std::vector<Tensor> gradients =
      tape.Gradient(y, xs, {.create_graph = recorded, .cotangent = dy});
  for (Tensor& g : gradients) g = g.Detach();
  return {y.Detach(), std::move(gradients)};
}

inline std::vector<double> GradientOf(const Function& f, const Tensor& x,
                                      bool recorded = false) {
  return Differentiate(f, {x}, {}, recorded).gradients[0].ToVector();
}

// f and its derivatives up to `order` at every element of x, for an f of which
// each result depends on one element.
inline std::vector<std::vector<double>> Derivatives(
    const std::function<Tensor(const Tensor&)>& f, const Tensor& x, int order) {
  Tape tape;
  tape.Watch(x);
  Tensor y = f(x);
  std::vector<std::vector<double>> all = {y.ToVector()};
  for (int i = 0; i < order; ++i) {
    y = tape.Gradient(Sum(y), x, {.create_graph = true});
    all.push_back(y.ToVector());
  }
  return all;
}

// |a - b| <= tolerance * max |b|, elementwise; equal shapes.
inline void ExpectClose(const Tensor& a, const Tensor& b, double tolerance,
                        const char* what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  const std::vector<double> va = a.ToVector(), vb = b.ToVector();
  double size = 0;
  for (double v : vb) {
    if (std::isfinite(v)) size = std::max(size, std::abs(v));
  }
  for (size_t i = 0; i < va.size(); ++i) {
    if (va[i] == vb[i]) continue;  // infinities too
    ASSERT_LE(std::abs(va[i] - vb[i]), tolerance * size)
        << what << ", element " << i << " of " << b.shape() << ": " << va[i]
        << " and " << vb[i];
  }
}

// |got - wanted| <= tolerance * |wanted|, elementwise: tails count.
inline void ExpectRelative(const std::vector<double>& got,
                           const std::vector<double>& wanted,
                           double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == wanted[i]) continue;
    EXPECT_LE(std::abs(got[i] - wanted[i]), tolerance * std::abs(wanted[i]))
        << "element " << i << ": " << got[i] << ", wanted " << wanted[i];
  }
}

// Value and gradients of f have the same bits for any number of threads.
inline void ExpectSameBitsForThreads(const Function& f, Inputs inputs) {
  const int before = NumThreads();
  SetNumThreads(1);
  const ValueAndGradients one = Differentiate(f, inputs);
  for (int threads : {2, 3, 5}) {
    SetNumThreads(threads);
    const ValueAndGradients many = Differentiate(f, inputs);
    EXPECT_TRUE(SameBits(one.value, many.value)) << threads << " threads";
    for (size_t i = 0; i < one.gradients.size(); ++i) {
      EXPECT_TRUE(SameBits(one.gradients[i], many.gradients[i]))
          << threads << " threads, input " << i;
    }
  }
  SetNumThreads(before);
}

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_OPS_TESTLIB_H_
