// What the tests of the kernels share.
#ifndef WENGERT_AUTOGRAD_KERNELS_KERNEL_TESTLIB_H_
#define WENGERT_AUTOGRAD_KERNELS_KERNEL_TESTLIB_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "autograd/parallel.h"
#include "autograd/random.h"
#include "gtest/gtest.h"

namespace wengert::kernels {

// n numbers in [lo, hi), with T's accuracy whatever T is.
template <class T>
std::vector<T> RandomVector(int64_t n, uint64_t seed, double lo = -2,
                            double hi = 2) {
  std::vector<T> x(n);
  for (int64_t i = 0; i < n; ++i) {
    x[i] = static_cast<T>(lo + (hi - lo) * Uniform01(seed, 0, i));
  }
  return x;
}

// One NaN is as good as another, but 0 is not -0.
template <class T>
void ExpectSameBits(const std::vector<T>& a, const std::vector<T>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != a[i] && b[i] != b[i]) continue;
    ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(T)), 0)
        << "at " << i << ": " << a[i] << ", " << b[i];
  }
}

// compute() returns a vector; its loops must be long enough for several
// threads.
template <class Compute>
void ExpectSameBitsForAnyThreads(Compute compute) {
  const int threads = NumThreads();
  SetNumThreads(1);
  const auto expected = compute();
  for (int n : {2, 3, 5}) {
    SetNumThreads(n);
    const int64_t loops = GetParallelStats().shared_loops;
    ExpectSameBits(compute(), expected);
    EXPECT_GT(GetParallelStats().shared_loops, loops) << "ran on one thread";
  }
  SetNumThreads(threads);
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_KERNEL_TESTLIB_H_
