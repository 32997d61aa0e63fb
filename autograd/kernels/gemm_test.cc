#include "autograd/kernels/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "autograd/parallel.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

template <class T>
std::vector<T> Random(int64_t n, int seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> x(n);
  for (T& v : x) v = static_cast<T>(uniform(generator));
  return x;
}

// What Gemm is to give, in double, and a bound of its rounding error.
struct Expected {
  std::vector<double> value, bound;
};
template <class T>
Expected Reference(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha,
                   const T* a, int64_t lda, const T* b, int64_t ldb,
                   bool accumulate, const std::vector<T>& c, int64_t ldc) {
  Expected expected;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (int64_t p = 0; p < k; ++p) {
        const double term = double(ta ? a[p * lda + i] : a[i * lda + p]) *
                            double(tb ? b[j * ldb + p] : b[p * ldb + j]);
        sum += term;
        size += std::abs(term);
      }
      const double old = accumulate ? c[i * ldc + j] : 0;
      expected.value.push_back(old + alpha * sum);
      // Blocks of kGemmBlockK: no chain of roundings is longer than this.
      const double chain = std::min(k, kGemmBlockK) + k / kGemmBlockK + 4;
      expected.bound.push_back(
          std::numeric_limits<T>::epsilon() *
          (chain * std::abs(alpha) * size + 2 * std::abs(old)));
    }
  }
  return expected;
}

template <class T>
class GemmTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GemmTest, Types);

TYPED_TEST(GemmTest, ABiasIsWhatEveryRowStartsFrom) {
  using T = TypeParam;
  for (int64_t m : {1, 15, 30}) {
    for (int64_t n : {1, 16, 37, 1030}) {
      for (int64_t k : {0, 5, 400}) {
        const auto a = Random<T>(m * k, 1), b = Random<T>(n * k, 2);
        const auto bias = Random<T>(n, 3);
        std::vector<T> started, got(m * n, T(NAN));
        for (int64_t i = 0; i < m; ++i) {
          started.insert(started.end(), bias.begin(), bias.end());
        }
        ParallelGemm<T>(false, true, m, n, k, 1, a.data(), k, b.data(), k, true,
                        started.data(), n);
        ParallelGemm<T>(false, true, m, n, k, 1, a.data(), k, b.data(), k,
                        false, got.data(), n, bias.data());
        EXPECT_EQ(got, started) << m << " " << n << " " << k;
      }
    }
  }
}

TYPED_TEST(GemmTest, EveryTailAndTranspositionAgreesWithTheDefinition) {
  using T = TypeParam;
  const std::vector<int64_t> sizes = {0,  1,  2,  3,  5,  7,  8,  9,  13,
                                      14, 15, 16, 17, 29, 31, 32, 33, 65};
  const std::vector<int64_t> depths = {0, 1, 2, 7, 16, 33, 383, 384, 385, 800};
  int seed = 0;
  for (int64_t m : sizes) {
    for (int64_t n : sizes) {
      const int64_t k = depths[++seed % depths.size()];
      const bool ta = seed & 1, tb = seed / 2 & 1, accumulate = seed / 4 & 1;
      const T alpha = seed % 3 ? 1 : T(-1.5);
      const int64_t lda = (ta ? m : k) + seed % 4, ldb = (tb ? k : n) + 1;
      const int64_t ldc = n + 3;
      const auto a = Random<T>((ta ? k : m) * lda, seed);
      const auto b = Random<T>((tb ? n : k) * ldb, seed + 1000);
      // What is not to be read is NaN; what is not to be written must stay.
      auto c = Random<T>(m * ldc, seed + 2000);
      if (!accumulate) std::fill(c.begin(), c.end(), T(NAN));
      for (int64_t i = 0; i < m; ++i) {
        std::fill_n(c.begin() + i * ldc + n, 3, T(7));
      }
      const Expected expected = Reference(ta, tb, m, n, k, alpha, a.data(), lda,
                                          b.data(), ldb, accumulate, c, ldc);
      Gemm(ta, tb, m, n, k, alpha, a.data(), lda, b.data(), ldb, accumulate,
           c.data(), ldc);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          ASSERT_NEAR(c[i * ldc + j], expected.value[i * n + j],
                      expected.bound[i * n + j])
              << m << "x" << n << "x" << k << (ta ? " T" : " N")
              << (tb ? "T" : "N") << " at " << i << "," << j;
        }
        for (int64_t j = n; j < ldc; ++j) ASSERT_EQ(c[i * ldc + j], 7);
      }
    }
  }
}

void Blas(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
          const float* a, int lda, const float* b, int ldb, float* c) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, n);
}
void Blas(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
          const double* a, int lda, const double* b, int ldb, double* c) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, n);
}

TYPED_TEST(GemmTest, LargeProductsAgreeWithOpenBlas) {
  using T = TypeParam;
  openblas_set_num_threads(1);
  for (const auto& [m, n, k] : {std::array{97, 1100, 400},
                                {300, 70, 1030},
                                {1, 2100, 512},
                                {2049, 20, 1024}}) {
    for (int flags = 0; flags < 4; ++flags) {
      const bool ta = flags & 1, tb = flags & 2;
      const int lda = ta ? m : k, ldb = tb ? k : n;
      const auto a = Random<T>(m * k, 1), b = Random<T>(k * n, 2);
      std::vector<T> c(m * n), expected(m * n);
      Gemm<T>(ta, tb, m, n, k, 1, a.data(), lda, b.data(), ldb, false, c.data(),
              n);
      Blas(ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n,
           k, a.data(), lda, b.data(), ldb, expected.data());
      const double bound =
          40 * std::sqrt(k) * std::numeric_limits<T>::epsilon();
      for (int i = 0; i < m * n; ++i) ASSERT_NEAR(c[i], expected[i], bound);
    }
  }
}

// A row's bits depend neither on where it stands nor on the other rows, in any
// layout; nor do a column's.
TYPED_TEST(GemmTest, ElementsHaveTheSameBitsWhereverTheyStand) {
  using T = TypeParam;
  for (const int64_t k : {5, 64, 512, 1000}) {
    const int64_t m = 61, n = 150;
    auto a = Random<T>(m * k, 1), b = Random<T>(k * n, 2);
    // Row i of A is row i % 4, column j of B column j % 9.
    for (int64_t i = 4; i < m; ++i) {
      std::copy_n(a.begin() + i % 4 * k, k, a.begin() + i * k);
    }
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 9; j < n; ++j) b[p * n + j] = b[p * n + j % 9];
    }
    std::vector<T> at(k * m), bt(n * k), first(m * n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t p = 0; p < k; ++p) at[p * m + i] = a[i * k + p];
    }
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) bt[j * k + p] = b[p * n + j];
    }
    Gemm<T>(false, false, m, n, k, 1, a.data(), k, b.data(), n, false,
            first.data(), n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_EQ(first[i * n + j], first[i % 4 * n + j % 9]);
      }
    }
    for (int64_t rows = 1; rows <= m; rows += 5) {
      for (int64_t columns = 1; columns <= n; columns += 13) {
        for (int flags = 0; flags < 4; ++flags) {
          const bool ta = flags & 1, tb = flags & 2;
          std::vector<T> c(rows * columns);
          Gemm<T>(ta, tb, rows, columns, k, 1, (ta ? at : a).data(), ta ? m : k,
                  (tb ? bt : b).data(), tb ? k : n, false, c.data(), columns);
          for (int64_t i = 0; i < rows; ++i) {
            for (int64_t j = 0; j < columns; ++j) {
              ASSERT_EQ(c[i * columns + j], first[i * n + j])
                  << rows << "x" << columns << "x" << k << " " << flags;
            }
          }
        }
      }
    }
  }
}

// kGemmBlockK terms in a chain of float additions, not all of them.
TEST(GemmTest, LongSumsKeepFloatAccuracy) {
  const int64_t k = 1 << 20;
  const std::vector<float> a(k, 0.1f), b(k, 1.f);
  float c;
  Gemm<float>(false, false, 1, 1, k, 1, a.data(), k, b.data(), 1, false, &c, 1);
  const double exact = double(0.1f) * k;
  EXPECT_NEAR(c / exact, 1, 5e-5);  // one running float is off by 4e-3
}

TEST(GemmTest, NonFiniteValuesSpreadAsInMathematics) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> a = {1, inf, 2, 3}, b = {0, 1, 0, 1};
  std::vector<float> c(4);
  Gemm<float>(false, false, 2, 2, 2, 1, a.data(), 2, b.data(), 2, false,
              c.data(), 2);
  EXPECT_TRUE(std::isnan(c[0]));
  EXPECT_EQ(c[1], inf);
  EXPECT_EQ(c[2], 0);
  EXPECT_EQ(c[3], 5);
}

class ThreadCounts : public testing::Test {
 protected:
  void TearDown() override { SetNumThreads(before_); }
  int before_ = NumThreads();
};

TEST_F(ThreadCounts, DoNotChangeTheBits) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{500, 200, 450},
                                {3, 2000, 800},
                                {2000, 5, 385},
                                {29, 33, 7}}) {
    for (int flags = 0; flags < 4; ++flags) {
      const bool ta = flags & 1, tb = flags & 2;
      const auto a = Random<float>(m * k, 1), b = Random<float>(k * n, 2);
      const auto c0 = Random<float>(m * n, 3);
      std::vector<float> expected = c0;
      Gemm(ta, tb, m, n, k, .5f, a.data(), ta ? m : k, b.data(), tb ? k : n,
           true, expected.data(), n);
      for (int threads : {1, 2, 3, 5}) {
        SetNumThreads(threads);
        std::vector<float> c = c0;
        ParallelGemm(ta, tb, m, n, k, .5f, a.data(), ta ? m : k, b.data(),
                     tb ? k : n, true, c.data(), n);
        ASSERT_EQ(c, expected) << m << "x" << n << "x" << k;
      }
    }
  }
}

// Few and many products, a broadcast operand.
TEST_F(ThreadCounts, BatchesAreTheirProducts) {
  const int64_t m = 9, n = 21, k = 12;
  for (const int64_t batch : {1, 3, 40}) {
    for (const bool accumulate : {false, true}) {
      const auto a = Random<double>(5 * m * k, 1);
      const auto b = Random<double>(batch * k * n, 2);
      const auto c0 = Random<double>(batch * m * n, 3);
      std::vector<int64_t> a_offset, b_offset, c_offset;
      for (int64_t i = 0; i < batch; ++i) {
        a_offset.push_back(i % 5 * m * k);
        b_offset.push_back(i * k * n);
        c_offset.push_back((batch - 1 - i) * m * n);
      }
      std::vector<double> expected = c0;
      for (int64_t i = 0; i < batch; ++i) {
        Gemm<double>(true, false, m, n, k, 2, a.data() + a_offset[i], m,
                     b.data() + b_offset[i], n, accumulate,
                     expected.data() + c_offset[i], n);
      }
      for (int threads : {1, 2, 5}) {
        SetNumThreads(threads);
        std::vector<double> c = c0;
        BatchedGemm<double>(batch, true, false, m, n, k, 2, a.data(),
                            a_offset.data(), m, b.data(), b_offset.data(), n,
                            accumulate, c.data(), c_offset.data(), n);
        ASSERT_EQ(c, expected) << batch;
      }
    }
  }
}

}  // namespace
}  // namespace wengert::kernels
