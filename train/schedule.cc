// The formulas of the learning-rate schedules.
#include "train/schedule.h"

#include <cmath>
#include <numbers>

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
  const double progress = static_cast<double>(step - warmup_steps_) /
                          static_cast<double>(total_steps_ - warmup_steps_);
  return min_lr_ +
         0.5 * (base_ - min_lr_) * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace wengert::train
