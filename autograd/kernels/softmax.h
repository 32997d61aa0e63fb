// Softmax and log-softmax over the last axis, with their gradients.
//
// Every buffer is [rows, width], row-major. x and y may be the same buffer, and
// so may dy and dx.
#ifndef WENGERT_AUTOGRAD_KERNELS_SOFTMAX_H_
#define WENGERT_AUTOGRAD_KERNELS_SOFTMAX_H_

#include <cstdint>

namespace wengert::kernels {

// y = exp(x - max x) / sum exp(x - max x) in each row. A row that is all -inf
// gives zeros; a row that holds NaN or +inf gives NaN.
template <class T>
void Softmax(int64_t rows, int64_t width, const T* x, T* y);

// dx (=|+=) y (dy - sum y dy), from Softmax's y. A row of zeros gives zeros.
template <class T>
void SoftmaxGrad(int64_t rows, int64_t width, const T* y, const T* dy,
                 bool accumulate, T* dx);

// y = (x - max x) - log sum exp(x - max x) in each row. A row that is all -inf
// gives -inf.
template <class T>
void LogSoftmax(int64_t rows, int64_t width, const T* x, T* y);

// dx (=|+=) dy - exp(y) sum dy, from LogSoftmax's y. A row that is all -inf
// gives zeros.
template <class T>
void LogSoftmaxGrad(int64_t rows, int64_t width, const T* y, const T* dy,
                    bool accumulate, T* dx);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_SOFTMAX_H_
