// Matrix products of raw row-major buffers: the engine below MatMul, Linear and
// attention.
//
// An element of C is a sum whose order depends on k alone (blocks of
// kGemmBlockK terms, each a chain of fused multiply-adds, added in order). So a
// row of C has the same bits wherever the row of A stands, whatever other rows
// there are, and for any number of threads.
#ifndef WENGERT_AUTOGRAD_KERNELS_GEMM_H_
#define WENGERT_AUTOGRAD_KERNELS_GEMM_H_

#include <cstdint>

namespace wengert::kernels {

inline constexpr int64_t kGemmBlockK = 384;

// C (=|+=) alpha op(A) op(B) on the calling thread. op(A) is [m, k], op(B) [k,
// n], C [m, n], row-major with leading dimensions lda, ldb, ldc in elements; A
// is stored [k, m] when `ta` and B [n, k] when `tb`. Any of m, n, k may be 0.
// C is not read unless `accumulate`. C overlaps neither A nor B.
template <class T>
void Gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha,
          const T* a, int64_t lda, const T* b, int64_t ldb, bool accumulate,
          T* c, int64_t ldc);

// The same bits, tiles of C spread over the threads. Instead of accumulating it
// may add `bias` [n] to every row.
template <class T>
void ParallelGemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha,
                  const T* a, int64_t lda, const T* b, int64_t ldb,
                  bool accumulate, T* c, int64_t ldc, const T* bias = nullptr);

// For every i < batch, spread over the threads:
//   C_i (=|+=) alpha op(A at a + a_offset[i]) op(B at b + b_offset[i]),
// C_i at c + c_offset[i]. The C_i must not overlap; equal offsets broadcast an
// operand.
template <class T>
void BatchedGemm(int64_t batch, bool ta, bool tb, int64_t m, int64_t n,
                 int64_t k, T alpha, const T* a, const int64_t* a_offset,
                 int64_t lda, const T* b, const int64_t* b_offset, int64_t ldb,
                 bool accumulate, T* c, const int64_t* c_offset, int64_t ldc);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_GEMM_H_
