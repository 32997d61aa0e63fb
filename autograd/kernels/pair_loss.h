// Losses of two arrays, element by element, each in one pass.
#ifndef WENGERT_AUTOGRAD_KERNELS_PAIR_LOSS_H_
#define WENGERT_AUTOGRAD_KERNELS_PAIR_LOSS_H_

#include <cstdint>

namespace wengert::kernels {

// With d = a - b.
enum class PairLossKind {
  kSquared,   // d²
  kAbsolute,  // |d|
  kHuber,     // d²/2 where |d| <= delta, delta (|d| - delta/2) elsewhere
};

// loss[i] = the loss of a[i] and b[i].
template <class T>
void PairLoss(PairLossKind kind, T delta, int64_t n, const T* a, const T* b,
              T* loss);

// The sum of all n losses.
template <class T>
T PairLossSum(PairLossKind kind, T delta, int64_t n, const T* a, const T* b);

// y[i] (=|+=) g_i d loss[i] / d a[i], g_i = scale dloss[i], or scale when dloss
// is null. (That by b[i] is its negative: swap a and b.)
template <class T>
void PairLossGrad(PairLossKind kind, T delta, int64_t n, const T* a, const T* b,
                  T scale, const T* dloss, bool accumulate, T* y);

// Binary cross-entropy of logits x and targets t:
//   loss = w (q t softplus(-x) + (1 - t) softplus(x)).
// weight w and pos_weight q have n elements or are null (1).
template <class T>
struct BinaryCrossEntropyInputs {
  const T *logits, *targets, *weight, *pos_weight;
};

template <class T>
void BinaryCrossEntropy(int64_t n, const BinaryCrossEntropyInputs<T>& in,
                        T* loss);
template <class T>
T BinaryCrossEntropySum(int64_t n, const BinaryCrossEntropyInputs<T>& in);

// dlogits (=|+=) g w ((1 - t) sigmoid(x) - q t sigmoid(-x)), g as above.
template <class T>
void BinaryCrossEntropyGradLogits(int64_t n,
                                  const BinaryCrossEntropyInputs<T>& in,
                                  T scale, const T* dloss, bool accumulate,
                                  T* dlogits);
// dtargets (=|+=) g w (q softplus(-x) - softplus(x)).
template <class T>
void BinaryCrossEntropyGradTargets(int64_t n,
                                   const BinaryCrossEntropyInputs<T>& in,
                                   T scale, const T* dloss, bool accumulate,
                                   T* dtargets);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_PAIR_LOSS_H_
