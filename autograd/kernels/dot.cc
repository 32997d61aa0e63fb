#include "autograd/kernels/dot.h"

#include <algorithm>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/parallel.h"

namespace wengert::kernels {

template <class T>
void RowDot(int64_t rows, int64_t n, const T* a, const T* b, T* y) {
  // Long rows are summed in parts, and then the parts.
  constexpr int64_t kPart = 1 << 14;
  const int64_t parts = std::max<int64_t>(1, CeilDiv(n, kPart));
  const Scratch<T> memory(parts == 1 ? 0 : rows * parts);
  T* const sums = parts == 1 ? y : memory.data();
  const int64_t tasks = rows * parts;
  ParallelFor(tasks, GrainOf(tasks, std::min(n, kPart)),
              [=](int64_t begin, int64_t end) {
                for (int64_t task = begin; task < end; ++task) {
                  const int64_t first = task % parts * kPart;
                  const T* u = a + task / parts * n + first;
                  const T* v = b + task / parts * n + first;
                  sums[task] =
                      BlockedSum<T>(std::min(kPart, n - first),
                                    [=](int64_t i) { return u[i] * v[i]; });
                }
              });
  if (parts == 1) return;
  for (int64_t r = 0; r < rows; ++r) {
    y[r] = BlockedSum<T>(parts, [=](int64_t i) { return sums[r * parts + i]; });
  }
}

template void RowDot(int64_t, int64_t, const float*, const float*, float*);
template void RowDot(int64_t, int64_t, const double*, const double*, double*);

}  // namespace wengert::kernels
