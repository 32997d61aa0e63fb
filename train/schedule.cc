// The formulas of the learning-rate schedules.
#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::train {
namespace {

// A NaN fails every comparison, and so this one.
bool IsRate(double x) { return x >= 0 && std::isfinite(x); }

void CheckStep(const char* name, int64_t step) {
  if (step < 0) {
    throw Error(absl::StrCat(name, ": step ", step, " is below 0"));
  }
}

// min_lr at progress 1, base at 0, along half a cosine.
double Cosine(double base, double min_lr, double progress) {
  return min_lr +
         0.5 * (base - min_lr) * (1 + std::cos(std::numbers::pi * progress));
}

double Ratio(int64_t a, int64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

}  // namespace

ConstantSchedule::ConstantSchedule(double base) : base_(base) {
  if (!IsRate(base)) {
    throw Error(absl::StrCat("ConstantSchedule: base ", base,
                             ", wanted a finite rate >= 0"));
  }
}

double ConstantSchedule::operator()(int64_t step) const {
  CheckStep("ConstantSchedule", step);
  return base_;
}

WarmupCosine::WarmupCosine(double base, int64_t warmup_steps,
                           int64_t total_steps, double min_lr)
    : base_(base),
      warmup_steps_(warmup_steps),
      total_steps_(total_steps),
      min_lr_(min_lr) {
  if (!IsRate(base) || !IsRate(min_lr) || min_lr > base) {
    throw Error(absl::StrCat("WarmupCosine: base ", base, ", min_lr ", min_lr,
                             ", wanted finite rates 0 <= min_lr <= base"));
  }
  if (total_steps < 1 || warmup_steps < 0 || warmup_steps > total_steps) {
    throw Error(absl::StrCat(
        "WarmupCosine: warmup_steps ", warmup_steps, ", total_steps ",
        total_steps,
        ", wanted 0 <= warmup_steps <= total_steps and total_steps >= 1"));
  }
}

double WarmupCosine::operator()(int64_t step) const {
  CheckStep("WarmupCosine", step);
  if (step >= total_steps_) return min_lr_;
  if (step < warmup_steps_) {
    return base_ *
           (static_cast<double>(step + 1) / static_cast<double>(warmup_steps_));
  }
  return Cosine(base_, min_lr_,
                Ratio(step - warmup_steps_, total_steps_ - warmup_steps_));
}

LinearSchedule::LinearSchedule(double begin, double end, int64_t total_steps)
    : begin_(begin), end_(end), total_steps_(total_steps) {
  if (!IsRate(begin) || !IsRate(end) || total_steps < 1) {
    throw Error(absl::StrCat("LinearSchedule: begin ", begin, ", end ", end,
                             ", total_steps ", total_steps,
                             ", wanted finite rates >= 0 and a step or more"));
  }
}

double LinearSchedule::operator()(int64_t step) const {
  CheckStep("LinearSchedule", step);
  if (step >= total_steps_) return end_;
  return begin_ + (end_ - begin_) * Ratio(step, total_steps_);
}

PolynomialSchedule::PolynomialSchedule(double base, int64_t total_steps,
                                       double power, double min_lr)
    : base_(base), total_steps_(total_steps), power_(power), min_lr_(min_lr) {
  if (!IsRate(base) || !IsRate(min_lr) || min_lr > base || total_steps < 1 ||
      !(power > 0 && std::isfinite(power))) {
    throw Error(absl::StrCat(
        "PolynomialSchedule: base ", base, ", total_steps ", total_steps,
        ", power ", power, ", min_lr ", min_lr,
        ", wanted finite 0 <= min_lr <= base, a step or more and power > 0"));
  }
}

double PolynomialSchedule::operator()(int64_t step) const {
  CheckStep("PolynomialSchedule", step);
  if (step >= total_steps_) return min_lr_;
  return min_lr_ +
         (base_ - min_lr_) * std::pow(1 - Ratio(step, total_steps_), power_);
}

StepSchedule::StepSchedule(double base, int64_t every, double factor)
    : base_(base), every_(every), factor_(factor) {
  if (!IsRate(base) || !IsRate(factor) || every < 1) {
    throw Error(absl::StrCat("StepSchedule: base ", base, ", every ", every,
                             ", factor ", factor,
                             ", wanted a finite base and factor >= 0, and "
                             "every >= 1"));
  }
}

double StepSchedule::operator()(int64_t step) const {
  CheckStep("StepSchedule", step);
  return base_ * std::pow(factor_, static_cast<double>(step / every_));
}

CosineRestarts::CosineRestarts(double base, int64_t period, int64_t growth,
                               double min_lr)
    : base_(base), period_(period), growth_(growth), min_lr_(min_lr) {
  if (!IsRate(base) || !IsRate(min_lr) || min_lr > base || period < 1 ||
      growth < 1) {
    throw Error(absl::StrCat(
        "CosineRestarts: base ", base, ", period ", period, ", growth ", growth,
        ", min_lr ", min_lr,
        ", wanted finite 0 <= min_lr <= base, period and growth >= 1"));
  }
}

double CosineRestarts::operator()(int64_t step) const {
  CheckStep("CosineRestarts", step);
  if (growth_ == 1) {
    return Cosine(base_, min_lr_, Ratio(step % period_, period_));
  }
  double at = static_cast<double>(step), period = static_cast<double>(period_);
  while (at >= period) {
    at -= period;
    period *= static_cast<double>(growth_);
  }
  return Cosine(base_, min_lr_, at / period);
}

OneCycle::OneCycle(double max_lr, int64_t total_steps, OneCycleOptions options)
    : max_lr_(max_lr), total_steps_(total_steps), options_(options) {
  if (!IsRate(max_lr) || total_steps < 2 ||
      !(options.rising > 0 && options.rising < 1) ||
      !(options.start_divisor > 0) || !(options.end_divisor > 0)) {
    throw Error(absl::StrCat(
        "OneCycle: max_lr ", max_lr, ", total_steps ", total_steps, ", rising ",
        options.rising, ", start_divisor ", options.start_divisor,
        ", end_divisor ", options.end_divisor,
        ", wanted a finite rate >= 0, 2 steps or more, 0 < rising < 1 and "
        "divisors > 0"));
  }
}

double OneCycle::operator()(int64_t step) const {
  CheckStep("OneCycle", step);
  const double start = max_lr_ / options_.start_divisor;
  const double end = start / options_.end_divisor;
  const double last = static_cast<double>(total_steps_ - 1);
  const double top = options_.rising * static_cast<double>(total_steps_) - 1;
  const double at = std::min(static_cast<double>(step), last);
  if (at < top) return Cosine(start, max_lr_, at / top);
  return Cosine(max_lr_, end, (at - top) / (last - top));
}

InverseSqrt::InverseSqrt(double base, int64_t warmup_steps)
    : base_(base), warmup_steps_(warmup_steps) {
  if (!IsRate(base) || warmup_steps < 1) {
    throw Error(absl::StrCat("InverseSqrt: base ", base, ", warmup_steps ",
                             warmup_steps,
                             ", wanted a finite rate >= 0 and a step or more"));
  }
}

double InverseSqrt::operator()(int64_t step) const {
  CheckStep("InverseSqrt", step);
  const double done = static_cast<double>(step) + 1;
  const double warm = static_cast<double>(warmup_steps_);
  return base_ * (done < warm ? done / warm : std::sqrt(warm / done));
}

ChainedSchedule::ChainedSchedule(std::vector<Part> parts)
    : parts_(std::move(parts)) {
  const bool valid =
      !parts_.empty() &&
      std::all_of(parts_.begin(), parts_.end(), [](const Part& part) {
        return part.schedule && part.steps >= 1;
      });
  if (!valid) {
    throw Error(absl::StrCat("ChainedSchedule: ", parts_.size(),
                             " parts, wanted one or more, each with a schedule "
                             "and a step or more"));
  }
}

double ChainedSchedule::operator()(int64_t step) const {
  CheckStep("ChainedSchedule", step);
  for (size_t i = 0; i + 1 < parts_.size(); ++i) {
    if (step < parts_[i].steps) return parts_[i].schedule(step);
    step -= parts_[i].steps;
  }
  return parts_.back().schedule(step);
}

PlateauSchedule::PlateauSchedule(double lr, PlateauOptions options)
    : options_(options), state_{lr} {
  if (!IsRate(lr) || !IsRate(options.min_lr) || !IsRate(options.threshold) ||
      !IsRate(options.factor) || options.factor >= 1 || options.patience < 0 ||
      options.cooldown < 0) {
    throw Error(absl::StrCat("PlateauSchedule: lr ", lr, ", factor ",
                             options.factor, ", patience ", options.patience,
                             ", threshold ", options.threshold, ", cooldown ",
                             options.cooldown, ", min_lr ", options.min_lr,
                             ", wanted finite numbers >= 0 and factor < 1"));
  }
}

void PlateauSchedule::Observe(double value) {
  const double sign = options_.lower_is_better ? -1 : 1;
  // As PyTorch has it: a part of the best as it stands, also where it is < 0.
  const bool better =
      !std::isnan(value) &&
      (!state_.best ||
       sign * value > sign * *state_.best * (1 + sign * options_.threshold));
  if (better) {
    state_.best = value;
    state_.not_better = 0;
  } else {
    ++state_.not_better;
  }
  if (state_.cooldown > 0) {
    --state_.cooldown;
    state_.not_better = 0;
  }
  if (state_.not_better <= options_.patience) return;
  constexpr double kSmallestStep = 1e-8;  // PyTorch's eps
  const double lr = std::max(state_.lr * options_.factor, options_.min_lr);
  if (state_.lr - lr > kSmallestStep) state_.lr = lr;
  state_.cooldown = options_.cooldown;
  state_.not_better = 0;
}

}  // namespace wengert::train
