// Random arrays. Arguments are checked before the generator gives an offset, so
// a call that throws leaves it as it was.
#include "autograd/random.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "autograd/kernels/loop.h"
#include "autograd/ops.h"
#include "autograd/ops/op_util.h"
#include "autograd/parallel.h"

namespace wengert {
namespace {

// A new float array that fill(offset, n, y) fills.
template <class Fill>
Tensor Filled(const char* op, const Shape& shape, DType dtype,
              Generator& generator, Fill fill) {
  if (!IsFloat(dtype)) {
    Throw(op, "dtype ", Name(dtype), "; wanted float32 or float64");
  }
  Tensor y = Tensor::Empty(shape, dtype);
  const uint64_t offset = generator.Take();
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    fill(offset, y.size(), Out<T>(y));
  });
  return y;
}

// Throws unless each row of logits [..., classes] is a distribution.
void CheckRows(const Tensor& logits) {
  if (logits.size() == 0) {
    if (logits.dim(-1) > 0) return;  // no rows
    Throw("RandomCategorical", Describe(logits), " has no classes to draw");
  }
  const std::vector<double> largest = Max(logits.Detach(), -1).ToVector();
  for (size_t r = 0; r < largest.size(); ++r) {
    if (std::isfinite(largest[r])) continue;
    Throw("RandomCategorical", "row ", r, " of ", Describe(logits),
          std::isnan(largest[r]) ? " holds NaN"
          : largest[r] > 0       ? " holds infinity"
                                 : " is -infinity everywhere",
          "; wanted numbers, of which some may be -infinity");
  }
}

// The first class at which the running sum of the probabilities p passes a
// uniform number, for elements [element, element + n) of the generator.
void DrawRow(absl::Span<const double> p, uint64_t seed, uint64_t offset,
             int64_t element, int64_t n, int64_t* y) {
  std::vector<double> sums(p.size());
  double sum = 0;
  for (size_t c = 0; c < p.size(); ++c) sums[c] = sum += p[c];
  for (int64_t i = 0; i < n; ++i) {
    // Rounding could reach the sum, beyond the last class that has a part.
    const double v = std::min(Uniform01(seed, offset, element + i) * sum,
                              std::nextafter(sum, 0.0));
    y[i] = std::upper_bound(sums.begin(), sums.end(), v) - sums.begin();
  }
}

}  // namespace

Tensor RandomUniform(const Shape& shape, Generator& generator, double lo,
                     double hi, DType dtype) {
  if (!(lo <= hi) || !std::isfinite(hi - lo)) {
    Throw("RandomUniform", "bounds ", lo, " and ", hi,
          "; wanted finite ones with lo <= hi");
  }
  return Filled("RandomUniform", shape, dtype, generator,
                [&](uint64_t offset, int64_t n, auto* y) {
                  FillUniform(generator.seed(), offset, lo, hi, n, y);
                });
}

Tensor RandomNormal(const Shape& shape, Generator& generator, double mean,
                    double stddev, DType dtype) {
  if (!std::isfinite(mean) || !(stddev >= 0) || std::isinf(stddev)) {
    Throw("RandomNormal", "mean ", mean, ", stddev ", stddev,
          "; wanted finite ones with stddev >= 0");
  }
  return Filled("RandomNormal", shape, dtype, generator,
                [&](uint64_t offset, int64_t n, auto* y) {
                  FillNormal(generator.seed(), offset, mean, stddev, n, y);
                });
}

Tensor RandomTruncatedNormal(const Shape& shape, Generator& generator,
                             double mean, double stddev, double lo, double hi,
                             DType dtype) {
  const double part =
      NormalProbability((lo - mean) / stddev, (hi - mean) / stddev);
  if (!std::isfinite(mean) || !(stddev > 0) || !(part > 1e-300)) {
    Throw("RandomTruncatedNormal", "mean ", mean, ", stddev ", stddev,
          ", bounds ", lo, " and ", hi,
          "; wanted stddev > 0 and more than 1e-300 of the distribution "
          "between the bounds");
  }
  return Filled("RandomTruncatedNormal", shape, dtype, generator,
                [&](uint64_t offset, int64_t n, auto* y) {
                  FillTruncatedNormal(generator.seed(), offset, mean, stddev,
                                      lo, hi, n, y);
                });
}

Tensor RandomBernoulli(const Tensor& probabilities, Generator& generator) {
  const DType dtype = CheckFloats("RandomBernoulli", {probabilities});
  WithFloat(dtype, [&](auto t) {
    const auto p = probabilities.span<decltype(t)>();
    const auto wrong = std::find_if(p.begin(), p.end(),
                                    [](auto v) { return !(v >= 0 && v <= 1); });
    if (wrong == p.end()) return;
    Throw("RandomBernoulli", *wrong, " at position ", wrong - p.begin(), " of ",
          Describe(probabilities), "; wanted probabilities in [0, 1]");
  });
  return Filled("RandomBernoulli", probabilities.shape(), dtype, generator,
                [&](uint64_t offset, int64_t n, auto* y) {
                  using T = std::remove_pointer_t<decltype(y)>;
                  FillBernoulli(generator.seed(), offset, n,
                                probabilities.data<T>(), y);
                });
}

// By the inverse of the distribution: the first class at which the running sum
// of the row's probabilities passes a uniform number.
Tensor RandomCategorical(const Tensor& logits, int64_t n,
                         Generator& generator) {
  CheckFloats("RandomCategorical", {logits});
  if (logits.rank() == 0 || n < 0) {
    Throw("RandomCategorical", n, " draws from ", Describe(logits),
          "; wanted 0 or more from [..., classes]");
  }
  CheckRows(logits);
  const int64_t classes = logits.dim(-1), rows = logits.size() / classes;
  const Tensor p = Softmax(logits.Detach()).To(DType::kFloat64);
  absl::InlinedVector<int64_t, 6> dims(logits.shape().dims().begin(),
                                       logits.shape().dims().end());
  dims.back() = n;
  Tensor y = Tensor::Empty(Shape(dims), DType::kInt64);
  const uint64_t seed = generator.seed(), offset = generator.Take();
  const absl::Span<const double> all = p.span<double>();
  int64_t* to = Out<int64_t>(y);
  ParallelFor(rows, kernels::GrainOf(rows, classes + 16 * n),
              [&](int64_t r, int64_t end) {
                for (; r < end; ++r) {
                  DrawRow(all.subspan(r * classes, classes), seed, offset,
                          r * n, n, to + r * n);
                }
              });
  return y;
}

Tensor RandomPermutation(int64_t n, Generator& generator) {
  if (n < 0) Throw("RandomPermutation", "n = ", n, "; wanted n >= 0");
  return Tensor::From({n}, Permutation(generator.seed(), generator.Take(), n));
}

}  // namespace wengert
