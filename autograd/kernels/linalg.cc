#include "autograd/kernels/linalg.h"

#include <cblas.h>

#include <algorithm>

#include "autograd/kernels/loop.h"
#include "autograd/parallel.h"

// LAPACK's Cholesky, column by column; OpenBLAS has it without a header.
extern "C" {
void spotrf_(const char* uplo, const int* n, float* a, const int* lda,
             int* info);
void dpotrf_(const char* uplo, const int* n, double* a, const int* lda,
             int* info);
}

namespace wengert::kernels {
namespace {

template <class T>
constexpr auto Potrf = spotrf_;
template <>
constexpr auto Potrf<double> = dpotrf_;
template <class T>
constexpr auto Trsm = cblas_strsm;
template <>
constexpr auto Trsm<double> = cblas_dtrsm;

// To be called on every thread that calls OpenBLAS: its OpenMP build keeps the
// number for each thread.
void UseOneThread() { openblas_set_num_threads(1); }

// One matrix; returns the minor.
template <class T>
int64_t CholeskyOf(int64_t n, T* a) {
  const int size = static_cast<int>(n);
  int info = 0;
  // By columns, the lower triangle is an upper one: Uᵀ U with U = Lᵀ.
  if (size > 0) Potrf<T>("U", &size, a, &size, &info);
  if (info > 0) return info;
  for (int64_t i = 0; i < n; ++i) {
    if (!(a[i * n + i] > 0)) return i + 1;  // LAPACK lets NaN pass
    std::fill(a + i * n + i + 1, a + (i + 1) * n, T{0});
  }
  return 0;
}

}  // namespace

template <class T>
void Cholesky(int64_t batch, int64_t n, T* a, int64_t* minors) {
  ParallelFor(batch, FlopGrainOf(batch, n * n * n / 3),
              [=](int64_t begin, int64_t end) {
                UseOneThread();
                for (int64_t i = begin; i < end; ++i) {
                  minors[i] = CholeskyOf(n, a + i * n * n);
                }
              });
}

template <class T>
void SolveTriangular(const TriangularSystem& s, int64_t batch, int64_t rows,
                     int64_t columns, const T* a, const int64_t* a_offset,
                     T* x) {
  // Right sides are solved apart from each other, some at a time.
  constexpr int64_t kTogether = 256;
  const int64_t n = s.left ? rows : columns, sides = s.left ? columns : rows;
  if (n == 0 || sides == 0) return;
  const int64_t blocks = CeilDiv(sides, kTogether), tasks = batch * blocks;
  const int64_t flops = n * n * std::min(sides, kTogether);
  ParallelFor(
      tasks, FlopGrainOf(tasks, flops), [&](int64_t begin, int64_t end) {
        UseOneThread();
        for (int64_t task = begin; task < end; ++task) {
          const int64_t i = task / blocks, first = task % blocks * kTogether;
          const int64_t some = std::min(kTogether, sides - first);
          T* b = x + i * rows * columns + (s.left ? first : first * columns);
          Trsm<T>(CblasRowMajor, s.left ? CblasLeft : CblasRight,
                  s.upper ? CblasUpper : CblasLower,
                  s.transpose ? CblasTrans : CblasNoTrans,
                  s.unitriangular ? CblasUnit : CblasNonUnit,
                  static_cast<int>(s.left ? rows : some),
                  static_cast<int>(s.left ? some : columns), T{1},
                  a + a_offset[i], static_cast<int>(n), b,
                  static_cast<int>(columns));
        }
      });
}

template void Cholesky(int64_t, int64_t, float*, int64_t*);
template void SolveTriangular(const TriangularSystem&, int64_t, int64_t,
                              int64_t, const float*, const int64_t*, float*);

template void Cholesky(int64_t, int64_t, double*, int64_t*);
template void SolveTriangular(const TriangularSystem&, int64_t, int64_t,
                              int64_t, const double*, const int64_t*, double*);

}  // namespace wengert::kernels
