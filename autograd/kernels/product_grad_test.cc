#include "autograd/kernels/product_grad.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

struct Sizes {
  int64_t outer, n, inner;
  int64_t size() const { return outer * n * inner; }
  int64_t At(int64_t o, int64_t i, int64_t j) const {
    return (o * n + i) * inner + j;
  }
};

constexpr Sizes kSizes[] = {
    {3, 1, 1},   {5, 7, 1},    {1, 31, 1},     {2, 32, 1}, {17, 33, 1},
    {3, 100, 1}, {2, 300, 1},  {1, 40'009, 1}, {2, 9, 3},  {1, 32, 64},
    {3, 33, 65}, {1, 70, 130}, {16, 5, 1030},  {2, 0, 3},  {2, 0, 1}};

// Around 1, with a few zeros: none, one or several in a slice.
template <class T>
std::vector<T> Factors(const Sizes& s) {
  auto x = RandomVector<T>(s.size(), 2, 0.999, 1.001);
  for (size_t i = 0; i < x.size(); i += 3) x[i] = -x[i];
  for (size_t i = 20; i < x.size(); i += 41) x[i] = 0;
  return x;
}

template <class T>
class ProductGradTest : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(ProductGradTest, Floats);

template <class T, class Grad>
std::vector<T> Run(const Sizes& s, const std::vector<T>& x,
                   const std::vector<T>& dy, const Grad& grad,
                   bool accumulate = false, T before = T(NAN)) {
  std::vector<T> dx(s.size() + 2, before);
  grad(s.outer, s.n, s.inner, x.data(), dy.data(), accumulate, dx.data() + 1);
  ExpectSameBits<T>({dx.front(), dx.back()}, {before, before});
  return std::vector<T>(dx.begin() + 1, dx.end() - 1);
}

const auto kCumProd = [](auto... args) { CumProdGrad(args...); };
const auto kProd = [](auto... args) { ProdGrad(args...); };

// The sums of what the results hand back, one by one from either end.
TYPED_TEST(ProductGradTest, IsDyTimesTheOthers) {
  using T = TypeParam;
  for (const Sizes& s : kSizes) {
    const auto x = Factors<T>(s);
    const auto dy = RandomVector<T>(s.size(), 3);
    const auto all = RandomVector<T>(s.outer * s.inner, 4);
    const auto running = Run(s, x, dy, kCumProd);
    const auto whole = Run(s, x, all, kProd);
    const auto running_more = Run(s, x, dy, kCumProd, true, T(3));
    const auto whole_more = Run(s, x, all, kProd, true, T(3));
    const double tolerance = sizeof(T) == 4 ? 3e-7 : 1e-11;
    for (int64_t o = 0; o < s.outer; ++o) {
      for (int64_t j = 0; j < s.inner; ++j) {
        std::vector<long double> before(s.n + 1, 1);
        for (int64_t i = 0; i < s.n; ++i) {
          before[i + 1] = before[i] * x[s.At(o, i, j)];
        }
        long double back = 0, magnitude = 0, after = all[o * s.inner + j];
        for (int64_t i = s.n - 1; i >= 0; --i) {
          const int64_t at = s.At(o, i, j);
          back += dy[at];
          magnitude += std::fabs(dy[at]);
          const auto size = static_cast<double>(std::fabs(before[i]));
          ASSERT_NEAR(running[at], static_cast<double>(before[i] * back),
                      tolerance * size * static_cast<double>(magnitude))
              << s.n << " " << s.inner << " " << i;
          ASSERT_NEAR(whole[at], static_cast<double>(before[i] * after),
                      tolerance * size * static_cast<double>(std::fabs(after)))
              << s.n << " " << s.inner << " " << i;
          ASSERT_EQ(running_more[at], 3 + running[at]);
          ASSERT_EQ(whole_more[at], 3 + whole[at]);
          back *= x[at];
          magnitude *= std::fabs(x[at]);
          after *= x[at];
        }
      }
    }
  }
}

TYPED_TEST(ProductGradTest, BitsDependOnTheSliceAlone) {
  using T = TypeParam;
  for (int64_t n : {5, 33, 200}) {
    auto column = Factors<T>({1, n, 1});
    const auto dy = RandomVector<T>(n, 3);
    for (bool whole : {true, false}) {
      const auto run = [&](const Sizes& s) {
        std::vector<T> x(s.size()), d(s.size());
        for (int64_t i = 0; i < s.size(); ++i) {
          x[i] = column[i / s.inner % n];
          d[i] = whole ? T(0.5) : dy[i / s.inner % n];
        }
        return whole ? Run(s, x, d, kProd) : Run(s, x, d, kCumProd);
      };
      for (const Sizes& first : {Sizes{1, n, 1}, {1, n, 2}}) {
        const auto wanted = run(first);
        for (Sizes s : {Sizes{7, n, 1}, {16, n, 65}, {1, n, 1100}}) {
          if ((first.inner == 1) != (s.inner == 1)) continue;
          const auto got = run(s);
          for (int64_t i = 0; i < s.size(); ++i) {
            ASSERT_EQ(got[i], wanted[i / s.inner % n * first.inner]);
          }
        }
      }
    }
  }
  for (const Sizes& s : {Sizes{2, 100'000, 1}, {500, 131, 1}, {4, 300, 130}}) {
    const auto x = Factors<T>(s);
    const auto dy = RandomVector<T>(s.size(), 3);
    ExpectSameBitsForAnyThreads([&] { return Run(s, x, dy, kProd); });
    if (s.n > 1000) continue;  // two rows stay together
    ExpectSameBitsForAnyThreads([&] { return Run(s, x, dy, kCumProd); });
  }
}

}  // namespace
}  // namespace wengert::kernels
