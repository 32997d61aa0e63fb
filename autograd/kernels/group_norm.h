// Group normalisation (Wu, He 2018) with its gradient.
#ifndef WENGERT_AUTOGRAD_KERNELS_GROUP_NORM_H_
#define WENGERT_AUTOGRAD_KERNELS_GROUP_NORM_H_

#include <cstdint>

namespace wengert::kernels {

// x [batch, channels, places]; the channels form `groups` of equal size, each
// with a row of channels / groups * places elements that are normalised
// together.
struct GroupNormSizes {
  int64_t batch, channels, places, groups;
};

// y = (x - mean) rstd gain + bias, rstd = 1 / sqrt(variance + eps), with the
// moments of the group and gain and bias [channels] of the channel, or null (1
// and 0). mean, rstd [batch, groups] are written for the gradient. The mean is
// corrected once, as in LayerNorm.
template <class T>
void GroupNorm(const GroupNormSizes& sizes, T eps, const T* x, const T* gain,
               const T* bias, T* y, T* mean, T* rstd);

// With h = (x - mean) rstd and g = dy gain:
//   dx (=|+=) rstd (g - mean(g) - h mean(g h)) over each group,
//   dgain (=|+=) sum of dy h and dbias (=|+=) sum of dy over batch and places.
// Each may be null. dx may be dy.
template <class T>
void GroupNormGrad(const GroupNormSizes& sizes, const T* x, const T* gain,
                   const T* mean, const T* rstd, const T* dy,
                   bool accumulate_dx, T* dx, bool accumulate_dgain, T* dgain,
                   bool accumulate_dbias, T* dbias);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_GROUP_NORM_H_
