#include "train/clip.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/kernels/optimizer.h"

namespace wengert::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// f(T{}, gradient) for each gradient gathered since the last Step.
template <class F>
void ForEachGradient(nn::ParameterStore& store, F f) {
  for (Parameter* p : store.parameters()) {
    if (p->state != Parameter::Grad::kFresh) continue;
    WithFloat(store.dtype(), [&](auto t) { f(t, p->grad); });
  }
}

double SumSquares(nn::ParameterStore& store, double scale) {
  double sum = 0;
  ForEachGradient(store, [&]<class T>(T, const Tensor& g) {
    sum += kernels::SumSquares(g.size(), scale, g.data<T>());
  });
  return sum;
}

double Norm(nn::ParameterStore& store) {
  const double sum = SumSquares(store, 1);
  if (sum >= 0x1p-900 && sum < kInfinity) return std::sqrt(sum);
  // The squares of finite doubles may overflow, or vanish.
  const double scale = sum < 1 ? 0x1p600 : 0x1p-600;
  return std::sqrt(SumSquares(store, scale)) / scale;
}

void CheckUsable(const char* op, const nn::ParameterStore& store,
                 const char* limit, double value) {
  if (!(value >= 0)) {
    throw Error(
        absl::StrCat(op, ": ", limit, " is ", value, "; wanted a number >= 0"));
  }
  store.state().CheckUsable(op);
  store.state().CheckGradients(op);
}

ClipResult Drop(nn::ParameterStore& store) {
  for (Parameter* p : store.parameters()) {
    if (p->state == Parameter::Grad::kFresh) p->state = Parameter::Grad::kNone;
  }
  return {.norm = kInfinity, .clipped = false, .finite = false};
}

}  // namespace

ClipResult ClipGradNorm(nn::ParameterStore& store, double max_norm) {
  CheckUsable("ClipGradNorm", store, "max_norm", max_norm);
  const double norm = Norm(store);
  if (!(norm < kInfinity)) return Drop(store);
  if (norm <= max_norm) return {.norm = norm, .clipped = false, .finite = true};
  ScaleGradients(store, max_norm / norm);
  return {.norm = norm, .clipped = true, .finite = true};
}

ClipResult ClipGradValue(nn::ParameterStore& store, double max_value) {
  CheckUsable("ClipGradValue", store, "max_value", max_value);
  const double norm = Norm(store);
  bool nan = false, clipped = false;
  ForEachGradient(store, [&]<class T>(T, const Tensor& g) {
    for (const T x : g.span<T>()) {
      nan |= x != x;
      clipped |= std::abs(x) > max_value;
    }
  });
  if (nan) return Drop(store);
  if (!clipped) return {.norm = norm, .clipped = false, .finite = true};
  ForEachGradient(store, [&]<class T>(T, Tensor& g) {
    const T limit = static_cast<T>(max_value);
    T* const x = g.mutable_data<T>();
    for (int64_t i = 0; i < g.size(); ++i) {
      x[i] = std::min(limit, std::max(-limit, x[i]));
    }
  });
  return {.norm = norm, .clipped = true, .finite = true};
}

void ScaleGradients(nn::ParameterStore& store, double factor) {
  store.state().CheckUsable("ScaleGradients");
  store.state().CheckGradients("ScaleGradients");
  ForEachGradient(store, [&]<class T>(T, Tensor& g) {
    kernels::Scale(g.size(), factor, g.mutable_data<T>());
  });
}

}  // namespace wengert::train
