// The fills run in parallel and work on whole groups of elements, written
// without branches, so that the compiler turns them into vector code.
#include "autograd/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/parallel.h"
#include "autograd/philox_lanes.h"
#include "autograd/random_math.h"

namespace wengert {
namespace {

using internal::kGroup;
using internal::PhiloxLanes;
using internal::ToDouble;

constexpr int64_t kGrain = 1 << 14;

// The finalizer of splitmix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014).
uint64_t Mix(uint64_t z) {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// y[i] for i < n by groups: group(i, bits, values) makes kGroup doubles, those
// from element i on, of which the last ones may be beyond n.
template <typename T, typename Group>
void Fill(uint64_t seed, uint64_t offset, int64_t n, T* y, Group group) {
  ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    const PhiloxLanes philox(seed, offset);
    alignas(64) uint64_t bits[kGroup];
    double values[kGroup];
    for (int64_t i = begin; i < end; i += kGroup) {
      for (int l = 0; l < kGroup; l += 2 * philox.kLanes) {
        philox.Draw((i + l) / 2, bits + l);
      }
      for (int l = 0; l < kGroup; ++l) bits[l] >>= 11;  // the upper 53
      group(i, bits, values);
      const int64_t count = std::min<int64_t>(kGroup, end - i);
      for (int64_t l = 0; l < count; ++l) y[i + l] = static_cast<T>(values[l]);
    }
  });
}

// P(normal < z)
double Below(double z) { return std::erfc(-z * (std::numbers::sqrt2 / 2)) / 2; }

}  // namespace

int64_t UniformInt(uint64_t seed, uint64_t offset, uint64_t element,
                   int64_t n) {
  if (n < 1) throw Error(absl::StrCat("UniformInt: want n >= 1, got ", n));
  const unsigned __int128 product =
      static_cast<unsigned __int128>(RandomBits64(seed, offset, element)) * n;
  return static_cast<int64_t>(product >> 64);
}

template <typename T>
void FillUniform(uint64_t seed, uint64_t offset, double lo, double hi,
                 int64_t n, T* y) {
  if (!(lo <= hi)) {
    throw Error(
        absl::StrCat("FillUniform: want lo <= hi, got ", lo, " and ", hi));
  }
  // Rounding could reach hi. The fma is explicit to give the same bits
  // whatever the compiler contracts.
  const T last = std::nextafter(static_cast<T>(hi), static_cast<T>(lo));
  const double most = last;
  Fill(seed, offset, n, y, [=](int64_t, const uint64_t* bits, double* values) {
    for (int l = 0; l < kGroup; ++l) {
      const double u = ToDouble(bits[l]) * 0x1p-53;
      const double v = static_cast<T>(std::fma(hi - lo, u, lo));
      values[l] = v < most ? v : most;
    }
  });
}

template <typename T>
void FillNormal(uint64_t seed, uint64_t offset, double mean, double stddev,
                int64_t n, T* y) {
  if (!(stddev >= 0)) {
    throw Error(absl::StrCat("FillNormal: want stddev >= 0, got ", stddev));
  }
  Fill(seed, offset, n, y, [=](int64_t, const uint64_t* bits, double* values) {
    double radius[kGroup / 2], turns[kGroup / 2];
    for (int k = 0; k < kGroup / 2; ++k) {
      const double u = (ToDouble(bits[2 * k]) + 1) * 0x1p-53;  // in (0, 1]
      radius[k] = stddev * std::sqrt(-2 * internal::LogOf(u));
      turns[k] = ToDouble(bits[2 * k + 1]) * 0x1p-53;
    }
    for (int k = 0; k < kGroup / 2; ++k) {
      const internal::Turn turn = internal::TurnOf(turns[k]);
      values[2 * k] = std::fma(radius[k], turn.cosine, mean);
      values[2 * k + 1] = std::fma(radius[k], turn.sine, mean);
    }
  });
}

double NormalProbability(double a, double b) {
  // On the side where the probabilities below are small, and so exact.
  if (a > 0) a = -std::exchange(b, -a);
  return Below(b) - Below(a);
}

template <typename T>
void FillTruncatedNormal(uint64_t seed, uint64_t offset, double mean,
                         double stddev, double lo, double hi, int64_t n, T* y) {
  double a = (lo - mean) / stddev, b = (hi - mean) / stddev;
  const double width = NormalProbability(a, b);
  if (!(stddev > 0 && width > 1e-300)) {
    throw Error(absl::StrCat("FillTruncatedNormal: mean ", mean, ", stddev ",
                             stddev, ", bounds ", lo, " and ", hi,
                             "; want stddev > 0 and more than 1e-300 of the ",
                             "distribution between the bounds"));
  }
  const bool flip = a > 0;
  if (flip) a = -std::exchange(b, -a);
  const double from = Below(a), above = Below(-b);
  const double least = static_cast<T>(lo), most = static_cast<T>(hi);
  const double scale = flip ? -stddev : stddev;
  Fill(seed, offset, n, y, [=](int64_t, const uint64_t* bits, double* values) {
    double smaller[kGroup], side[kGroup], z[kGroup];
    for (int l = 0; l < kGroup; ++l) {
      // In (0, 1), and so is 1 - u, exactly.
      const double u = (ToDouble(bits[l] >> 1) + 0.5) * 0x1p-52;
      const double p = std::fma(u, width, from);
      const double q = std::fma(1 - u, width, above);
      smaller[l] = std::min(p, q);
      side[l] = p < q ? scale : -scale;
    }
    internal::NormalQuantiles(smaller, z);
    for (int l = 0; l < kGroup; ++l) {
      const double v = std::fma(side[l], z[l], mean);
      values[l] = std::min(std::max(v, least), most);
    }
  });
}

template <typename T>
void FillBernoulli(uint64_t seed, uint64_t offset, int64_t n, const T* p,
                   T* y) {
  Fill(seed, offset, n, y,
       [=](int64_t i, const uint64_t* bits, double* values) {
         double chance[kGroup] = {};
         std::copy_n(p + i, std::min<int64_t>(kGroup, n - i), chance);
         for (int l = 0; l < kGroup; ++l) {
           values[l] = ToDouble(bits[l]) * 0x1p-53 < chance[l] ? 1 : 0;
         }
       });
}

template void FillUniform(uint64_t, uint64_t, double, double, int64_t, float*);
template void FillUniform(uint64_t, uint64_t, double, double, int64_t, double*);
template void FillNormal(uint64_t, uint64_t, double, double, int64_t, float*);
template void FillNormal(uint64_t, uint64_t, double, double, int64_t, double*);
template void FillTruncatedNormal(uint64_t, uint64_t, double, double, double,
                                  double, int64_t, float*);
template void FillTruncatedNormal(uint64_t, uint64_t, double, double, double,
                                  double, int64_t, double*);
template void FillBernoulli(uint64_t, uint64_t, int64_t, const float*, float*);
template void FillBernoulli(uint64_t, uint64_t, int64_t, const double*,
                            double*);

std::vector<int64_t> Permutation(uint64_t seed, uint64_t offset, int64_t n) {
  if (n < 0) throw Error(absl::StrCat("Permutation: want n >= 0, got ", n));
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(order[i], order[UniformInt(seed, offset, i, i + 1)]);
  }
  return order;
}

// FNV-1a of the name, mixed with the seed.
uint64_t StreamKey(uint64_t seed, const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001B3;
  return Mix(Mix(seed) ^ hash);
}

}  // namespace wengert
