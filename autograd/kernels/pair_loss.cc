#include "autograd/kernels/pair_loss.h"

#include <algorithm>
#include <cmath>

#include "absl/base/attributes.h"
#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

template <class T, class Value>
void Write(int64_t n, bool accumulate, const Value& value, T* y) {
  ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
    const auto from = [=](int64_t i) { return value(begin + i); };
    WriteRow(end - begin, accumulate, from, y + begin);
  });
}

// Sums chunks of a fixed size, and then the chunks' sums; `of_chunk` gives the
// sum of up to kChunk values from `first` on.
constexpr int64_t kChunk = 1 << 12;
template <class T, class OfChunk>
T TotalOfChunks(int64_t n, const OfChunk& of_chunk) {
  const int64_t chunks = CeilDiv(n, kChunk);
  const Scratch<T> sums(chunks);
  T* const sum = sums.data();
  ParallelFor(chunks, GrainOf(chunks, kChunk), [=](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      sum[c] = of_chunk(c * kChunk, std::min(kChunk, n - c * kChunk));
    }
  });
  return BlockedSum<T>(chunks, [=](int64_t c) { return sum[c]; });
}

template <class T, class Value>
T Total(int64_t n, const Value& value) {
  return TotalOfChunks<T>(n, [=](int64_t first, int64_t size) {
    return BlockedSum<T>(size, [=](int64_t i) { return value(first + i); });
  });
}

// The same for values of many instructions, which become better vector code in
// a loop of their own than in the lanes of a sum.
template <class T, class Value>
T TotalOfWritten(int64_t n, const Value& value) {
  return TotalOfChunks<T>(n, [=](int64_t first, int64_t size) {
    T values[kChunk];
    WriteRow(
        size, false, [=](int64_t i) { return value(first + i); }, values);
    return BlockedSum<T>(size, [&](int64_t i) { return values[i]; });
  });
}

// fn(loss, slope): both functions of d = a - b.
template <class T, class Fn>
auto WithPairLoss(PairLossKind kind, T delta, const Fn& fn) {
  const auto sign = [](T d) {
    return Select<T>(d > 0, 1, Select<T>(d < 0, -1, d));  // NaN stays
  };
  switch (kind) {
    case PairLossKind::kSquared:
      return fn([](T d) { return d * d; }, [](T d) { return 2 * d; });
    case PairLossKind::kAbsolute:
      return fn([](T d) { return std::fabs(d); }, sign);
    default:
      return fn(
          [=](T d) {
            const T size = std::fabs(d);
            return Select(size <= delta, d * d / 2, delta * (size - delta / 2));
          },
          [=](T d) { return ClampMagnitude(d, delta); });
  }
}

// fn(w, q): the weights at i, each 1 where it is null.
template <class T, class Fn>
auto WithWeights(const BinaryCrossEntropyInputs<T>& in, const Fn& fn) {
  const auto one = [](int64_t) { return T(1); };
  const auto w = [w = in.weight](int64_t i) { return w[i]; };
  const auto q = [q = in.pos_weight](int64_t i) { return q[i]; };
  if (in.weight == nullptr) {
    return in.pos_weight == nullptr ? fn(one, one) : fn(one, q);
  }
  return in.pos_weight == nullptr ? fn(w, one) : fn(w, q);
}

// log(1 + e^-|x|)
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T SoftplusTail(T x) {
  const auto [m, s] = ExpOfMinus(std::fabs(x));
  return Log1pOfUnit(m * s);
}

// softplus(-x) and softplus(x), both without loss in their tails.
template <class T>
struct Softplus {
  T of_minus, of_plus;
};
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline Softplus<T> SoftplusOf(T x) {
  const T tail = SoftplusTail(x);
  return {Select<T>(x < 0, -x, 0) + tail, Select<T>(x > 0, x, 0) + tail};
}

// fn(loss at i).
template <class T, class Fn>
auto WithBinaryLoss(const BinaryCrossEntropyInputs<T>& in, const Fn& fn) {
  return WithWeights(in, [&](auto w, auto q) {
    return fn([=, x = in.logits, t = in.targets](int64_t i) {
      // softplus(x) = max(x, 0) + tail, where the tail is the same of -x.
      const T of_minus = q(i) * t[i], of_plus = 1 - t[i];
      const T of_size = Select(x[i] < 0, of_minus, of_plus);
      return w(i) * Fma(SoftplusTail(x[i]), of_minus + of_plus,
                        of_size * std::fabs(x[i]));
    });
  });
}

// Writes g_i slope(i).
template <class T, class Slope>
void WriteGrad(int64_t n, T scale, const T* dloss, bool accumulate,
               const Slope& slope, T* y) {
  if (dloss == nullptr) {
    Write(
        n, accumulate, [=](int64_t i) { return scale * slope(i); }, y);
  } else {
    Write(
        n, accumulate, [=](int64_t i) { return scale * dloss[i] * slope(i); },
        y);
  }
}

}  // namespace

template <class T>
void PairLoss(PairLossKind kind, T delta, int64_t n, const T* a, const T* b,
              T* loss) {
  WithPairLoss(kind, delta, [&](auto f, auto) {
    Write(
        n, false, [=](int64_t i) { return f(a[i] - b[i]); }, loss);
  });
}

template <class T>
T PairLossSum(PairLossKind kind, T delta, int64_t n, const T* a, const T* b) {
  return WithPairLoss(kind, delta, [&](auto f, auto) {
    return Total<T>(n, [=](int64_t i) { return f(a[i] - b[i]); });
  });
}

template <class T>
void PairLossGrad(PairLossKind kind, T delta, int64_t n, const T* a, const T* b,
                  T scale, const T* dloss, bool accumulate, T* y) {
  WithPairLoss(kind, delta, [&](auto, auto slope) {
    WriteGrad(
        n, scale, dloss, accumulate,
        [=](int64_t i) { return slope(a[i] - b[i]); }, y);
  });
}

template <class T>
void BinaryCrossEntropy(int64_t n, const BinaryCrossEntropyInputs<T>& in,
                        T* loss) {
  WithBinaryLoss(in, [&](auto f) { Write(n, false, f, loss); });
}

template <class T>
T BinaryCrossEntropySum(int64_t n, const BinaryCrossEntropyInputs<T>& in) {
  return WithBinaryLoss(in, [&](auto f) { return TotalOfWritten<T>(n, f); });
}

template <class T>
void BinaryCrossEntropyGradLogits(int64_t n,
                                  const BinaryCrossEntropyInputs<T>& in,
                                  T scale, const T* dloss, bool accumulate,
                                  T* dlogits) {
  WithWeights(in, [&](auto w, auto q) {
    const auto slope = [=, x = in.logits, t = in.targets](int64_t i) {
      const auto [m, s] = ExpOfMinus(std::fabs(x[i]));
      const T e = m * s;
      const T larger = 1 / (1 + e), smaller = e * larger;
      const T p = Select(x[i] < 0, smaller, larger);
      const T rest = Select(x[i] < 0, larger, smaller);  // 1 - p
      return w(i) * ((1 - t[i]) * p - q(i) * t[i] * rest);
    };
    WriteGrad(n, scale, dloss, accumulate, slope, dlogits);
  });
}

template <class T>
void BinaryCrossEntropyGradTargets(int64_t n,
                                   const BinaryCrossEntropyInputs<T>& in,
                                   T scale, const T* dloss, bool accumulate,
                                   T* dtargets) {
  WithWeights(in, [&](auto w, auto q) {
    const auto slope = [=, x = in.logits](int64_t i) {
      const Softplus<T> s = SoftplusOf(x[i]);
      return w(i) * (q(i) * s.of_minus - s.of_plus);
    };
    WriteGrad(n, scale, dloss, accumulate, slope, dtargets);
  });
}

template void PairLoss(PairLossKind, float, int64_t, const float*, const float*,
                       float*);
template float PairLossSum(PairLossKind, float, int64_t, const float*,
                           const float*);
template void PairLossGrad(PairLossKind, float, int64_t, const float*,
                           const float*, float, const float*, bool, float*);
template void BinaryCrossEntropy(int64_t,
                                 const BinaryCrossEntropyInputs<float>&,
                                 float*);
template float BinaryCrossEntropySum(int64_t,
                                     const BinaryCrossEntropyInputs<float>&);
template void BinaryCrossEntropyGradLogits(
    int64_t, const BinaryCrossEntropyInputs<float>&, float, const float*, bool,
    float*);
template void BinaryCrossEntropyGradTargets(
    int64_t, const BinaryCrossEntropyInputs<float>&, float, const float*, bool,
    float*);
template void PairLoss(PairLossKind, double, int64_t, const double*,
                       const double*, double*);
template double PairLossSum(PairLossKind, double, int64_t, const double*,
                            const double*);
template void PairLossGrad(PairLossKind, double, int64_t, const double*,
                           const double*, double, const double*, bool, double*);
template void BinaryCrossEntropy(int64_t,
                                 const BinaryCrossEntropyInputs<double>&,
                                 double*);
template double BinaryCrossEntropySum(int64_t,
                                      const BinaryCrossEntropyInputs<double>&);
template void BinaryCrossEntropyGradLogits(
    int64_t, const BinaryCrossEntropyInputs<double>&, double, const double*,
    bool, double*);
template void BinaryCrossEntropyGradTargets(
    int64_t, const BinaryCrossEntropyInputs<double>&, double, const double*,
    bool, double*);

}  // namespace wengert::kernels
