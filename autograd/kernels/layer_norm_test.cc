#include "autograd/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

std::vector<double> Reference(int64_t rows, int64_t width, double eps,
                              const std::vector<double>& x,
                              const std::vector<double>& gain,
                              const std::vector<double>& bias) {
  std::vector<double> y(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < width; ++j) mean += x[r * width + j] / width;
    for (int64_t j = 0; j < width; ++j) {
      variance += std::pow(x[r * width + j] - mean, 2) / width;
    }
    for (int64_t j = 0; j < width; ++j) {
      y[r * width + j] = (x[r * width + j] - mean) / std::sqrt(variance + eps) *
                             (gain.empty() ? 1 : gain[j]) +
                         (bias.empty() ? 0 : bias[j]);
    }
  }
  return y;
}

template <class T>
const T* DataOrNull(const std::vector<T>& x) {
  return x.empty() ? nullptr : x.data();
}

// A problem and all that the kernels make of it.
template <class T>
struct Norm {
  int64_t rows, width;
  double eps;
  std::vector<T> x, gain, bias, dy;
  std::vector<T> y, mean, rstd, dx, dgain, dbias;

  Norm(int64_t rows, int64_t width, bool has_gain, bool has_bias,
       double eps = 1e-5)
      : rows(rows), width(width), eps(eps) {
    x = RandomVector<T>(rows * width, 1, 1, 4);
    dy = RandomVector<T>(rows * width, 2);
    if (has_gain) gain = RandomVector<T>(width, 3);
    if (has_bias) bias = RandomVector<T>(width, 4);
    y.assign(x.size(), T(NAN));
    mean.assign(rows, T(NAN));
    rstd.assign(rows, T(NAN));
    dx.assign(x.size(), T(NAN));
    dgain.assign(width, T(NAN));
    dbias.assign(width, T(NAN));
    Forward();
    Grad(false, dx.data(), dgain.data(), dbias.data());
  }
  void Forward() {
    LayerNorm<T>(rows, width, T(eps), x.data(), DataOrNull(gain),
                 DataOrNull(bias), y.data(), mean.data(), rstd.data());
  }
  void Grad(bool accumulate, T* dx, T* dgain, T* dbias) {
    LayerNormGrad<T>(rows, width, x.data(), DataOrNull(gain), mean.data(),
                     rstd.data(), dy.data(), accumulate, dx, accumulate, dgain,
                     accumulate, dbias);
  }
};

// The slope of dy · y along u from `from`, one of the reference's inputs.
double Slope(const Norm<double>& n, std::vector<double> Norm<double>::*from,
             const std::vector<double>& u) {
  constexpr double kStep = 1e-5;
  double slope = 0;
  for (const double sign : {1, -1}) {
    Norm<double> moved = n;
    std::vector<double>& input = moved.*from;
    for (size_t i = 0; i < u.size(); ++i) input[i] += sign * kStep * u[i];
    const auto y =
        Reference(n.rows, n.width, n.eps, moved.x, moved.gain, moved.bias);
    for (size_t i = 0; i < y.size(); ++i) {
      slope += sign * y[i] * n.dy[i] / (2 * kStep);
    }
  }
  return slope;
}

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

TEST(LayerNormTest, AgreesWithTheDefinitionAndItsSlopes) {
  for (const int64_t width : {1, 2, 5, 8, 9, 16, 17, 31, 33, 64, 130}) {
    for (const int64_t rows : {1, 15, 16, 17, 300}) {
      for (int affine = 0; affine < 4; ++affine) {
        const Norm<double> n(rows, width, affine & 1, affine & 2, .1);
        const auto y = Reference(rows, width, n.eps, n.x, n.gain, n.bias);
        for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(n.y[i], y[i], 1e-11);
        const double bound = 1e-7 * (1 + std::sqrt(rows * width));
        const auto u = RandomVector<double>(n.x.size(), 5);
        EXPECT_NEAR(Dot(n.dx, u), Slope(n, &Norm<double>::x, u), bound);
        const auto w = RandomVector<double>(width, 6);
        if (affine & 1) {
          EXPECT_NEAR(Dot(n.dgain, w), Slope(n, &Norm<double>::gain, w), bound);
        }
        if (affine & 2) {
          EXPECT_NEAR(Dot(n.dbias, w), Slope(n, &Norm<double>::bias, w), bound);
        }
        const Norm<float> f(rows, width, affine & 1, affine & 2, .1);
        for (size_t i = 0; i < y.size(); ++i) {
          ASSERT_NEAR(f.y[i], y[i], 5e-6);
          ASSERT_NEAR(f.dx[i], n.dx[i], 2e-5);
        }
        for (int64_t j = 0; j < width; ++j) {
          ASSERT_NEAR(f.dgain[j], n.dgain[j], 1e-6 * rows);
          ASSERT_NEAR(f.dbias[j], n.dbias[j], 5e-7 * rows);
        }
      }
    }
  }
}

TEST(LayerNormTest, GradientsAccumulateAndMayBeLeftOut) {
  for (const int64_t width : {5, 9}) {  // within a vector, and wider
    Norm<double> n(40, width, true, true);
    for (int wanted = 0; wanted < 8; ++wanted) {
      for (const bool accumulate : {false, true}) {
        std::vector<double> dx(n.x.size(), 10), dgain(width, 10),
            dbias(width, 10);
        n.Grad(accumulate, wanted & 1 ? dx.data() : nullptr,
               wanted & 2 ? dgain.data() : nullptr,
               wanted & 4 ? dbias.data() : nullptr);
        const auto expect = [&](bool want, const std::vector<double>& got,
                                const std::vector<double>& once) {
          for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_NEAR(got[i], want ? once[i] + (accumulate ? 10 : 0) : 10,
                        1e-12);
          }
        };
        expect(wanted & 1, dx, n.dx);
        expect(wanted & 2, dgain, n.dgain);
        expect(wanted & 4, dbias, n.dbias);
      }
    }
    auto in_place = n.dy;
    LayerNormGrad<double>(40, width, n.x.data(), n.gain.data(), n.mean.data(),
                          n.rstd.data(), in_place.data(), false,
                          in_place.data(), false, n.dgain.data(), false,
                          nullptr);
    EXPECT_EQ(in_place, n.dx);
  }
}

TEST(LayerNormTest, KnownGradient) {
  Norm<double> n(1, 3, false, false);
  n.x = {1, 2, 4};
  n.dy = {1, 0, 0};
  n.Forward();
  n.Grad(false, n.dx.data(), nullptr, nullptr);
  EXPECT_NEAR(n.dx[0], .2290823, 1e-7);
  EXPECT_NEAR(n.dx[1], -.3436200, 1e-7);
  EXPECT_NEAR(n.dx[2], .1145377, 1e-7);
}

TEST(LayerNormTest, LargeMeansLoseNothing) {
  Norm<float> n(1, 4, false, false);
  n.x = {20000, 20001, 20002, 20003};
  n.Forward();
  EXPECT_NEAR(n.y[0], -1.3416354, 1e-6);
  EXPECT_NEAR(n.y[1], -.4472118, 1e-6);
  EXPECT_NEAR(n.y[2], .4472118, 1e-6);
  EXPECT_NEAR(n.y[3], 1.3416354, 1e-6);
}

TEST(LayerNormTest, MomentsOfRowsNearEachOtherInTheLastPlaces) {
  for (const int64_t width : {16, 40, 1500}) {  // one element differs
    Norm<float> n(1, width, false, false, 0);
    std::fill(n.x.begin(), n.x.end(), 1e6f);
    n.x[width / 2] += 1;
    n.Forward();
    const double variance = (width - 1.) / width / width;
    EXPECT_NEAR(n.rstd[0] * std::sqrt(variance), 1, 2e-3) << width;
  }
}

TEST(LayerNormTest, WithoutMeansIsRmsNorm) {
  for (const int64_t width : {1, 12, 16, 17, 64, 100, 700}) {
    const int64_t rows = 37;
    Norm<double> n(rows, width, true, false);
    Norm<float> f(rows, width, true, false);
    LayerNorm<double>(rows, width, .1, n.x.data(), n.gain.data(), nullptr,
                      n.y.data(), nullptr, n.rstd.data());
    LayerNorm<float>(rows, width, .1f, f.x.data(), f.gain.data(), nullptr,
                     f.y.data(), nullptr, f.rstd.data());
    LayerNormGrad<double>(rows, width, n.x.data(), n.gain.data(), nullptr,
                          n.rstd.data(), n.dy.data(), false, n.dx.data(), false,
                          n.dgain.data(), false, nullptr);
    LayerNormGrad<float>(rows, width, f.x.data(), f.gain.data(), nullptr,
                         f.rstd.data(), f.dy.data(), false, f.dx.data(), false,
                         f.dgain.data(), false, nullptr);
    std::vector<double> dgain(width);
    for (int64_t r = 0; r < rows; ++r) {
      double squares = 0, gh = 0;
      for (int64_t i = r * width; i < (r + 1) * width; ++i) {
        squares += n.x[i] * n.x[i] / width;
      }
      const double rstd = 1 / std::sqrt(squares + .1);
      EXPECT_NEAR(n.rstd[r], rstd, 1e-13);
      for (int64_t j = 0; j < width; ++j) {
        const int64_t i = r * width + j;
        gh += n.dy[i] * n.gain[j] * n.x[i] * rstd / width;
        dgain[j] += n.dy[i] * n.x[i] * rstd;
      }
      for (int64_t j = 0; j < width; ++j) {
        const int64_t i = r * width + j;
        const double h = n.x[i] * rstd;
        ASSERT_NEAR(n.y[i], h * n.gain[j], 1e-12);
        ASSERT_NEAR(f.y[i], n.y[i], 3e-6);
        ASSERT_NEAR(n.dx[i], rstd * (n.dy[i] * n.gain[j] - h * gh), 1e-12);
        ASSERT_NEAR(f.dx[i], n.dx[i], 2e-5);
      }
    }
    for (int64_t j = 0; j < width; ++j) {
      ASSERT_NEAR(n.dgain[j], dgain[j], 1e-11);
      ASSERT_NEAR(f.dgain[j], dgain[j], 1e-4);
    }
  }
}

TEST(LayerNormTest, NanStaysInItsRow) {
  for (const int64_t width : {5, 16, 33, 130}) {
    Norm<float> clean(21, width, true, true), n = clean;
    n.x[3 * width + width - 1] = NAN;
    n.Forward();
    n.Grad(false, n.dx.data(), nullptr, nullptr);
    for (int64_t i = 0; i < 21 * width; ++i) {
      if (i / width == 3) {
        EXPECT_TRUE(std::isnan(n.y[i]) && std::isnan(n.dx[i]));
      } else {
        EXPECT_EQ(n.y[i], clean.y[i]);
        EXPECT_EQ(n.dx[i], clean.dx[i]);
      }
    }
  }
}

TEST(LayerNormTest, EqualValuesGiveExactlyTheBias) {
  for (int64_t width = 1; width < 2000; ++width) {
    Norm<float> n(1, width, false, true);
    for (const float value : {777.7f, .1f, -12345.678f, 3.3e-20f, 1e15f}) {
      std::fill(n.x.begin(), n.x.end(), value);
      n.Forward();
      ASSERT_EQ(n.y, n.bias) << width << " times " << value;
    }
  }
}

TEST(LayerNormTest, SameBitsForAnyNumberOfThreadsAndEqualRows) {
  ExpectSameBitsForAnyThreads([] {
    const int64_t rows = 500, width = 132;
    Norm<float> n(rows, width, true, true);
    for (int64_t i = width; i < rows * width; ++i) n.x[i] = n.x[i % width];
    n.Forward();
    for (int64_t i = width; i < rows * width; ++i) {
      EXPECT_EQ(n.y[i], n.y[i % width]);
    }
    n.Grad(true, n.dx.data(), n.dgain.data(), n.dbias.data());
    std::vector<float> all;
    for (const auto* part : {&n.y, &n.dx, &n.dgain, &n.dbias}) {
      all.insert(all.end(), part->begin(), part->end());
    }
    return all;
  });
}

TEST(LayerNormTest, Empty) {
  Norm<float> no_rows(0, 3, true, true);
  EXPECT_EQ(no_rows.dgain, (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(no_rows.dbias, (std::vector<float>{0, 0, 0}));
  const Norm<float> no_columns(3, 0, false, false);
  EXPECT_TRUE(no_columns.dx.empty());
}

}  // namespace
}  // namespace wengert::kernels
