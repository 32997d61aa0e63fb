// Kernels of linear algebra, by LAPACK and BLAS as OpenBLAS has them, each call
// on one thread. In an object file of their own: a program that uses none of
// them does not load OpenBLAS. T: float, double.
#ifndef WENGERT_AUTOGRAD_KERNELS_LINALG_H_
#define WENGERT_AUTOGRAD_KERNELS_LINALG_H_

#include <cstdint>

namespace wengert::kernels {

// L with L Lᵀ = a in place of each of `batch` matrices a [n, n], of which only
// the lower triangle is read; 0 above. minors[i] is 0, or the order of the
// first leading minor of matrix i that is not positive: what stands in place of
// that matrix means nothing. n fits in 31 bits.
template <class T>
void Cholesky(int64_t batch, int64_t n, T* a, int64_t* minors);

struct TriangularSystem {
  bool upper, left, unitriangular, transpose;
};

// x in place of b [rows, columns] (a [rows, rows] if left, else [columns,
// columns]), for each i < batch: op(a) x = b, or x op(a) = b, with a at a +
// a_offset[i]. Sizes fit in 31 bits.
template <class T>
void SolveTriangular(const TriangularSystem& s, int64_t batch, int64_t rows,
                     int64_t columns, const T* a, const int64_t* a_offset,
                     T* x);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_LINALG_H_
