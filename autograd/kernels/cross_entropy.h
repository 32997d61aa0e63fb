// Cross-entropy of logits against class indices or probabilities, with softmax,
// class weights, label smoothing and ignored rows in one pass.
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

// The weight of the classes in each row's loss:
//   q_ij = w_j ((1 - s) t_ij + s / c),
// where t_ij is [j == targets[i]], or the given probability.
template <class T>
struct ClassWeights {
  int64_t n, c;
  T smoothing;
  const T* weight;         // w [c], or null: 1
  const int64_t* targets;  // [n], checked, or null:
  const T* probabilities;  // [n, c]
  int64_t ignore_index;    // of targets
};

// loss[i] = -sum_j q_ij logp[j], or 0 where targets[i] == ignore_index; log_sum
// as above. A class with q = 0 counts for nothing, also where its logit is
// -inf.
template <class T>
void WeightedCrossEntropy(const ClassWeights<T>& q, const T* logits, T* loss,
                          T* log_sum);

// dlogits_ij (=|+=) g_i (Q_i softmax(logits_i)_j - q_ij), Q_i = sum_j q_ij, and
// dprobabilities_ij (=|+=) -g_i (1 - s) w_j logp[j], with g as above; each may
// be null.
template <class T>
void WeightedCrossEntropyGrad(const ClassWeights<T>& q, const T* logits,
                              const T* log_sum, T scale, const T* dloss,
                              bool accumulate_dlogits, T* dlogits,
                              bool accumulate_dprobabilities,
                              T* dprobabilities);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_CROSS_ENTROPY_H_
