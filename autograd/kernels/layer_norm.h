// Layer normalisation (Ba, Kiros, Hinton 2016) and RMS normalisation (Zhang,
// Sennrich 2019) of rows, with their gradient.
#ifndef WENGERT_AUTOGRAD_KERNELS_LAYER_NORM_H_
#define WENGERT_AUTOGRAD_KERNELS_LAYER_NORM_H_

#include <cstdint>

namespace wengert::kernels {

// y = (x - mean) rstd gain + bias, rstd = 1 / sqrt(variance + eps), variance =
// mean((x - mean)²). x, y [rows, width]; gain, bias [width] or null (1 and 0);
// mean, rstd [rows] are written for the gradient. The mean is corrected once by
// the mean of the residuals, so that a row of equal values gives exactly
// `bias`. With mean null rows are not centred: 0 stands for their mean, and
// rstd = 1 / sqrt(mean(x²) + eps).
template <class T>
void LayerNorm(int64_t rows, int64_t width, T eps, const T* x, const T* gain,
               const T* bias, T* y, T* mean, T* rstd);

// With h = (x - mean) rstd and g = dy gain:
//   dx (=|+=) rstd (g - mean(g) - h mean(g h)),  dgain (=|+=) sum over rows of
//   dy h,  dbias (=|+=) sum of dy.
// With mean null, h = x rstd and 0 stands for mean(g).
// dx [rows, width], dgain and dbias [width]; each may be null. dx may be dy.
// The sums over rows are made in chunks of a fixed number of rows, added in
// chunk order.
template <class T>
void LayerNormGrad(int64_t rows, int64_t width, const T* x, const T* gain,
                   const T* mean, const T* rstd, const T* dy,
                   bool accumulate_dx, T* dx, bool accumulate_dgain, T* dgain,
                   bool accumulate_dbias, T* dbias);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_LAYER_NORM_H_
