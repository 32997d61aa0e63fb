#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/kernels/blocked_sum.h"
#include "autograd/random.h"

namespace wengert::nn::init {
namespace {

void Check(bool valid, const char* what, double value, const char* wanted) {
  if (!valid) {
    throw Error(absl::StrCat("init::", what, " ", value, "; wanted ", wanted));
  }
}

void CheckGain(const char* what, double gain) {
  Check(std::isfinite(gain) && gain >= 0, what, gain, "a finite number >= 0");
}

// f(T*) with the elements of w, which is float32 or float64.
template <class F>
void Write(Tensor& w, const F& f) {
  WithFloat(w.dtype(), [&]<class T>(T) { f(w.mutable_data<T>()); });
}

void FillNormal(uint64_t key, double stddev, double mean, Tensor& w) {
  Write(w, [&](auto* y) {
    wengert::FillNormal(key, 0, mean, stddev, w.size(), y);
  });
}

struct Fans {
  double in, out;
};
Fans FansOf(const char* what, const Shape& shape) {
  if (shape.rank() < 2) {
    throw Error(absl::StrCat("init::", what, ": shape ", shape.ToString(),
                             "; wanted [out, in, ...]"));
  }
  double places = 1;
  for (int i = 2; i < shape.rank(); ++i) {
    places *= static_cast<double>(shape[i]);
  }
  return {static_cast<double>(shape[1]) * places,
          static_cast<double>(shape[0]) * places};
}

// Values of standard deviation gain / sqrt(divisor(fans)).
template <class Divisor>
Initializer OfFans(const char* what, double gain, bool uniform,
                   Divisor divisor) {
  CheckGain(what, gain);
  return [=](uint64_t key, Tensor& w) {
    const double d = divisor(FansOf(what, w.shape()));
    const double stddev = d > 0 ? gain / std::sqrt(d) : 0;
    if (!uniform) return FillNormal(key, stddev, 0, w);
    const double bound = std::sqrt(3) * stddev;
    Write(w, [&](auto* y) { FillUniform(key, 0, -bound, bound, w.size(), y); });
  };
}

double MeanFan(Fans fans) { return (fans.in + fans.out) / 2; }

Initializer Kaiming(const char* what, KaimingOptions o, bool uniform) {
  return OfFans(what, o.gain, uniform, [fan = o.fan](Fans fans) {
    return fan == Fan::kIn ? fans.in : fans.out;
  });
}

// One normal number within `bound`, the element's own first draw that is.
double DrawWithin(uint64_t key, uint64_t element, double bound) {
  for (uint64_t draw = 0;; ++draw) {
    const double u = 1 - Uniform01(key, draw, 2 * element);
    const double v = Uniform01(key, draw, 2 * element + 1);
    const double z =
        std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    if (std::fabs(z) <= bound) return z;
  }
}

// Makes the `n` rows of x [n, width], n <= width, orthonormal: of each, twice,
// what lies along those before it is taken off.
void Orthonormalise(int64_t n, int64_t width, double* x) {
  const auto dot = [=](const double* a, const double* b) {
    return kernels::BlockedSum<double>(width,
                                       [=](int64_t j) { return a[j] * b[j]; });
  };
  for (int64_t i = 0; i < n; ++i) {
    double* const row = x + i * width;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t k = 0; k < i; ++k) {
        const double* const other = x + k * width;
        const double along = dot(row, other);
        for (int64_t j = 0; j < width; ++j) row[j] -= along * other[j];
      }
    }
    const double length = std::sqrt(dot(row, row));
    for (int64_t j = 0; j < width; ++j) row[j] /= length;
  }
}

}  // namespace

Initializer Constant(double value) {
  return [=](uint64_t, Tensor& w) {
    Write(w, [&]<class T>(T* y) {
      std::fill_n(y, w.size(), static_cast<T>(value));
    });
  };
}

Initializer Uniform(double lo, double hi) {
  if (!(lo <= hi && std::isfinite(hi - lo))) {
    throw Error(absl::StrCat("init::Uniform: [", lo, ", ", hi,
                             "); wanted finite bounds in order"));
  }
  return [=](uint64_t key, Tensor& w) {
    Write(w, [&](auto* y) { FillUniform(key, 0, lo, hi, w.size(), y); });
  };
}

Initializer Normal(double stddev, double mean) {
  CheckGain("Normal: deviation", stddev);
  return [=](uint64_t key, Tensor& w) { FillNormal(key, stddev, mean, w); };
}

Initializer TruncatedNormal(double stddev, double mean, double bound) {
  CheckGain("TruncatedNormal: deviation", stddev);
  Check(bound >= 0.01, "TruncatedNormal: bound", bound, "one >= 0.01");
  return [=](uint64_t key, Tensor& w) {
    Write(w, [&]<class T>(T* y) {
      for (int64_t i = 0; i < w.size(); ++i) {
        y[i] = static_cast<T>(mean + stddev * DrawWithin(key, i, bound));
      }
    });
  };
}

Initializer XavierUniform(double gain) {
  return OfFans("XavierUniform", gain, /*uniform=*/true, MeanFan);
}
Initializer XavierNormal(double gain) {
  return OfFans("XavierNormal", gain, /*uniform=*/false, MeanFan);
}
Initializer KaimingUniform(KaimingOptions options) {
  return Kaiming("KaimingUniform", options, /*uniform=*/true);
}
Initializer KaimingNormal(KaimingOptions options) {
  return Kaiming("KaimingNormal", options, /*uniform=*/false);
}

Initializer Orthogonal(double gain) {
  CheckGain("Orthogonal", gain);
  return [=](uint64_t key, Tensor& w) {
    FansOf("Orthogonal", w.shape());
    if (w.size() == 0) return;
    const int64_t rows = w.dim(0), columns = w.size() / rows;
    const int64_t n = std::min(rows, columns), width = std::max(rows, columns);
    std::vector<double> q(w.size());
    wengert::FillNormal(key, 0, 0, 1, w.size(), q.data());
    Orthonormalise(n, width, q.data());
    Write(w, [&]<class T>(T* y) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          y[i * columns + j] = static_cast<T>(
              gain * q[rows <= columns ? i * width + j : j * width + i]);
        }
      }
    });
  };
}

Initializer ScaledResidual(int64_t n_layers, double stddev) {
  Check(n_layers >= 1, "ScaledResidual: n_layers",
        static_cast<double>(n_layers), "1 or more");
  return Normal(stddev / std::sqrt(2 * static_cast<double>(n_layers)));
}

}  // namespace wengert::nn::init
