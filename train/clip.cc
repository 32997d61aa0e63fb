#include "train/clip.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/kernels/optimizer.h"

namespace wengert::train {
namespace {

constexpr char kOp[] = "ClipGradNorm";
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

}  // namespace

ClipResult ClipGradNorm(nn::ParameterStore& store, double max_norm) {
  if (!(max_norm >= 0)) {
    throw Error(absl::StrCat(kOp, ": max_norm is ", max_norm,
                             "; wanted a number >= 0"));
  }
  store.state().CheckUsable(kOp);
  store.state().CheckGradients(kOp);
  const double norm = Norm(store);
  if (!(norm < kInfinity)) {
    for (Parameter* p : store.parameters()) {
      if (p->state == Parameter::Grad::kFresh) {
        p->state = Parameter::Grad::kNone;
      }
    }
    return {.norm = kInfinity, .clipped = false, .finite = false};
  }
  if (norm <= max_norm) return {.norm = norm, .clipped = false, .finite = true};
  ScaleGradients(store, max_norm / norm);
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
