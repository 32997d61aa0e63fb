#include "autograd/kernels/group_norm.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

// A problem and all that the kernels make of it.
template <class T>
struct Norm {
  GroupNormSizes s;
  std::vector<T> x, gain, bias, dy;
  std::vector<T> y, mean, rstd, dx, dgain, dbias;

  Norm(const GroupNormSizes& s, bool affine) : s(s) {
    const int64_t n = s.batch * s.channels * s.places;
    x = RandomVector<T>(n, 1, 1, 4);
    dy = RandomVector<T>(n, 2);
    if (affine) {
      gain = RandomVector<T>(s.channels, 3);
      bias = RandomVector<T>(s.channels, 4);
    }
    y.assign(n, T(NAN));
    dx.assign(n, T(NAN));
    mean.assign(s.batch * s.groups, T(NAN));
    rstd = mean;
    dgain.assign(s.channels, T(NAN));
    dbias = dgain;
    Run();
  }
  void Run() {
    GroupNorm<T>(s, T(.1), x.data(), gain.empty() ? nullptr : gain.data(),
                 bias.empty() ? nullptr : bias.data(), y.data(), mean.data(),
                 rstd.data());
    Grad(dy.data(), false, dx.data(), dgain.data(), dbias.data());
  }
  void Grad(const T* from, bool accumulate, T* to, T* to_gain, T* to_bias) {
    GroupNormGrad<T>(s, x.data(), gain.empty() ? nullptr : gain.data(),
                     mean.data(), rstd.data(), from, accumulate, to, accumulate,
                     to_gain, accumulate, to_bias);
  }
};

// The formulas of group_norm.h, one element at a time, against n.
void ExpectDefinition(const Norm<double>& n) {
  const int64_t members = n.s.channels / n.s.groups;
  const int64_t width = members * n.s.places;
  std::vector<double> dgain(n.s.channels), dbias(n.s.channels);
  for (int64_t r = 0; r < n.s.batch * n.s.groups; ++r) {
    const auto channel = [&](int64_t i) {
      return (i / n.s.places) % n.s.channels;
    };
    const int64_t begin = r * width, end = begin + width;
    double mean = 0, variance = 0, mean_g = 0, mean_gh = 0;
    for (int64_t i = begin; i < end; ++i) mean += n.x[i] / width;
    for (int64_t i = begin; i < end; ++i) {
      variance += std::pow(n.x[i] - mean, 2) / width;
    }
    const double rstd = 1 / std::sqrt(variance + .1);
    EXPECT_NEAR(n.mean[r], mean, 1e-12);
    EXPECT_NEAR(n.rstd[r], rstd, 1e-12);
    const auto h = [&](int64_t i) { return (n.x[i] - mean) * rstd; };
    const auto g = [&](int64_t i) {
      return n.dy[i] * (n.gain.empty() ? 1 : n.gain[channel(i)]);
    };
    for (int64_t i = begin; i < end; ++i) {
      mean_g += g(i) / width;
      mean_gh += g(i) * h(i) / width;
      dgain[channel(i)] += n.dy[i] * h(i);
      dbias[channel(i)] += n.dy[i];
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = channel(i);
      const double y = n.gain.empty() ? h(i) : h(i) * n.gain[c] + n.bias[c];
      ASSERT_NEAR(n.y[i], y, 1e-12);
      ASSERT_NEAR(n.dx[i], rstd * (g(i) - mean_g - h(i) * mean_gh), 1e-12);
    }
  }
  for (int64_t c = 0; c < n.s.channels; ++c) {
    ASSERT_NEAR(n.dgain[c], dgain[c], 1e-11);
    ASSERT_NEAR(n.dbias[c], dbias[c], 1e-11);
  }
}

TEST(GroupNormKernelTest, AgreesWithTheDefinition) {
  for (const int64_t places : {1, 2, 5, 16, 17, 33, 64, 65, 700}) {
    for (const int64_t members : {1, 3, 20}) {
      for (const int64_t groups : {1, 2, 7}) {
        for (const bool affine : {false, true}) {
          const GroupNormSizes s = {3, members * groups, places, groups};
          const Norm<double> n(s, affine);
          ExpectDefinition(n);
          const Norm<float> f(s, affine);
          for (size_t i = 0; i < n.x.size(); ++i) {
            ASSERT_NEAR(f.y[i], n.y[i], 5e-6);
            ASSERT_NEAR(f.dx[i], n.dx[i], 2e-5);
          }
          for (size_t c = 0; c < n.dgain.size(); ++c) {
            ASSERT_NEAR(f.dgain[c], n.dgain[c], 2e-6 * (places + 10));
            ASSERT_NEAR(f.dbias[c], n.dbias[c], 1e-6 * (places + 10));
          }
        }
      }
    }
  }
}

TEST(GroupNormKernelTest, GradientsAccumulateAndMayBeLeftOutOrInPlace) {
  for (const int64_t places : {1, 5, 17, 65}) {
    Norm<double> n({2, 6, places, 2}, true);
    for (int wanted = 0; wanted < 8; ++wanted) {
      std::vector<double> dx(n.x.size(), 10), dgain(6, 10), dbias(6, 10);
      n.Grad(n.dy.data(), true, wanted & 1 ? dx.data() : nullptr,
             wanted & 2 ? dgain.data() : nullptr,
             wanted & 4 ? dbias.data() : nullptr);
      for (size_t i = 0; i < dx.size(); ++i) {
        ASSERT_NEAR(dx[i], 10 + (wanted & 1 ? n.dx[i] : 0), 1e-12);
      }
      for (int c = 0; c < 6; ++c) {
        EXPECT_NEAR(dgain[c], 10 + (wanted & 2 ? n.dgain[c] : 0), 1e-12);
        EXPECT_NEAR(dbias[c], 10 + (wanted & 4 ? n.dbias[c] : 0), 1e-12);
      }
    }
    std::vector<double> in_place = n.dy;
    n.Grad(in_place.data(), false, in_place.data(), nullptr, nullptr);
    EXPECT_EQ(in_place, n.dx);
  }
}

TEST(GroupNormKernelTest, NanStaysInItsGroup) {
  for (const int64_t places : {1, 5, 17, 65}) {
    const int64_t width = 3 * places;
    Norm<float> clean({4, 6, places, 2}, true), n = clean;
    n.x[3 * width - 1] = NAN;
    n.Run();
    for (int64_t i = 0; i < 8 * width; ++i) {
      if (i / width == 2) {
        EXPECT_TRUE(std::isnan(n.y[i]) && std::isnan(n.dx[i]));
      } else {
        EXPECT_EQ(n.y[i], clean.y[i]);
        EXPECT_EQ(n.dx[i], clean.dx[i]);
      }
    }
  }
}

TEST(GroupNormKernelTest, SameBitsForAnyNumberOfThreadsAndEqualGroups) {
  for (const int64_t places : {4, 20, 100}) {
    ExpectSameBitsForAnyThreads([&] {
      Norm<float> n({300, 12, 2 * places, 4}, true);
      const int64_t image = 12 * 2 * places;
      for (size_t i = image; i < n.x.size(); ++i) {
        n.x[i] = n.x[i % image];
        n.dy[i] = n.dy[i % image];
      }
      n.Run();
      for (size_t i = image; i < n.x.size(); ++i) {
        EXPECT_EQ(n.y[i], n.y[i % image]);
        EXPECT_EQ(n.dx[i], n.dx[i % image]);
      }
      std::vector<float> all;
      for (const auto* part : {&n.y, &n.dx, &n.dgain, &n.dbias}) {
        all.insert(all.end(), part->begin(), part->end());
      }
      return all;
    });
  }
}

TEST(GroupNormKernelTest, Empty) {
  const Norm<float> no_images({0, 4, 3, 2}, true);
  EXPECT_EQ(no_images.dgain, std::vector<float>(4));
  EXPECT_EQ(no_images.dbias, std::vector<float>(4));
  const Norm<float> no_places({2, 4, 0, 2}, true);
  EXPECT_EQ(no_places.dgain, std::vector<float>(4));
  for (const int64_t places : {3, 65}) {
    const Norm<float> no_channels({2, 0, places, 2}, true);
    EXPECT_TRUE(no_channels.dgain.empty());
  }
}

}  // namespace
}  // namespace wengert::kernels
