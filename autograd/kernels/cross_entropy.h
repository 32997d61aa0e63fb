// Cross-entropy of logits against class indices, with softmax, label smoothing
// and ignored rows in one pass.
#ifndef WENGERT_AUTOGRAD_KERNELS_CROSS_ENTROPY_H_
#define WENGERT_AUTOGRAD_KERNELS_CROSS_ENTROPY_H_

#include <cstdint>

namespace wengert::kernels {

// With logp = log softmax(logits_i), t = targets[i], s = smoothing:
//   loss[i] = -(1 - s) logp[t] - s / c sum_j logp[j],  or 0 where t ==
//   ignore_index.
// logits [n, c]; targets [n], each ignore_index or in [0, c) (the caller has
// checked); loss [n]; log_sum [n] is kept for the gradient: log sum_j
// exp(logits_ij - max_j logits_ij), from the maximum and not from 0 so that
// large logits lose nothing. A logit of -inf is an impossible class: its
// probability and gradient are 0, and the loss is infinite only when it is the
// target or when s > 0.
template <class T>
void CrossEntropy(int64_t n, int64_t c, const T* logits, const int64_t* targets,
                  int64_t ignore_index, T smoothing, T* loss, T* log_sum);

// dlogits_ij (=|+=) g_i (softmax(logits_i)_j - (1 - s) [j == t] - s / c), zero
// in ignored rows, with g_i = scale dloss[i], or scale when dloss is null.
// dlogits [n, c] may be logits when it does not accumulate.
template <class T>
void CrossEntropyGrad(int64_t n, int64_t c, const T* logits,
                      const int64_t* targets, int64_t ignore_index, T smoothing,
                      const T* log_sum, T scale, const T* dloss,
                      bool accumulate, T* dlogits);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_CROSS_ENTROPY_H_
