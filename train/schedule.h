// Learning-rate schedules: pure functions of the step, so that a run resumed at
// any step goes on with the rate it would have had; and one that follows a
// measure, whose state a checkpoint keeps.
#ifndef WENGERT_TRAIN_SCHEDULE_H_
#define WENGERT_TRAIN_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace wengert::train {

// lr(step) = base. Throws Error unless base is finite and >= 0.
class ConstantSchedule {
 public:
  explicit ConstantSchedule(double base);
  double operator()(int64_t step) const;

 private:
  double base_;
};

// Steps count from 0. With w = warmup_steps, T = total_steps:
//   step < w: base (step + 1) / w, above 0 at once and base at the w-th step;
//   w <= step < T: min_lr + (base - min_lr) (1 + cos(pi (step - w)/(T - w)))/2;
//   step >= T: min_lr.
// A warm-up as long as the run (w = T) has no middle part. Throws Error unless
// 0 <= min_lr <= base, both finite, and 0 <= w <= T, T >= 1.
class WarmupCosine {
 public:
  WarmupCosine(double base, int64_t warmup_steps, int64_t total_steps,
               double min_lr = 0);
  double operator()(int64_t step) const;

 private:
  double base_;
  int64_t warmup_steps_;
  int64_t total_steps_;
  double min_lr_;
};

// From `begin` to `end` in a straight line over total_steps, and `end` from
// then on (PyTorch's LinearLR). Throws Error unless both are finite and >= 0,
// and total_steps >= 1.
class LinearSchedule {
 public:
  LinearSchedule(double begin, double end, int64_t total_steps);
  double operator()(int64_t step) const;

 private:
  double begin_, end_;
  int64_t total_steps_;
};

// min_lr + (base - min_lr) (1 - step / T)^power up to T = total_steps, min_lr
// from then on (PolynomialLR). Throws Error unless 0 <= min_lr <= base, both
// finite, T >= 1 and power > 0.
class PolynomialSchedule {
 public:
  PolynomialSchedule(double base, int64_t total_steps, double power = 1,
                     double min_lr = 0);
  double operator()(int64_t step) const;

 private:
  double base_;
  int64_t total_steps_;
  double power_, min_lr_;
};

// base factor^n after n times `every` steps (StepLR). Throws Error unless base
// and factor are finite and >= 0, and every >= 1.
class StepSchedule {
 public:
  StepSchedule(double base, int64_t every, double factor = 0.1);
  double operator()(int64_t step) const;

 private:
  double base_;
  int64_t every_;
  double factor_;
};

// Cosines from base down to min_lr that begin again: the first takes `period`
// steps, each other `growth` times as many as the one before (Loshchilov,
// Hutter 2017; CosineAnnealingWarmRestarts). Throws Error unless 0 <= min_lr <=
// base, both finite, period >= 1 and growth >= 1.
class CosineRestarts {
 public:
  CosineRestarts(double base, int64_t period, int64_t growth = 1,
                 double min_lr = 0);
  double operator()(int64_t step) const;

 private:
  double base_;
  int64_t period_, growth_;
  double min_lr_;
};

// Up from max_lr / start_divisor to max_lr over the first part of the steps,
// then down to max_lr / (start_divisor end_divisor) at the last, each along
// half a cosine; that from then on (Smith, Topin 2018; OneCycleLR). Throws
// Error unless max_lr is finite and >= 0, total_steps >= 2, 0 < rising < 1 and
// the divisors are > 0.
struct OneCycleOptions {
  double rising = 0.3;  // part of the steps
  double start_divisor = 25;
  double end_divisor = 1e4;
};
class OneCycle {
 public:
  OneCycle(double max_lr, int64_t total_steps, OneCycleOptions options = {});
  double operator()(int64_t step) const;

 private:
  double max_lr_;
  int64_t total_steps_;
  OneCycleOptions options_;
};

// base (step + 1) / w for the first w = warmup_steps, then base sqrt(w / (step
// + 1)) (Vaswani et al. 2017, where base is 1 / sqrt(d_model w)). Throws Error
// unless base is finite and >= 0, and w >= 1.
class InverseSqrt {
 public:
  InverseSqrt(double base, int64_t warmup_steps);
  double operator()(int64_t step) const;

 private:
  double base_;
  int64_t warmup_steps_;
};

// One schedule after the other, each of which counts its steps from 0: a part
// lasts as many steps as it says, the last goes on for ever (SequentialLR).
// Throws Error unless there is a part and each lasts 1 step or more.
class ChainedSchedule {
 public:
  struct Part {
    std::function<double(int64_t step)> schedule;
    int64_t steps = 1;
  };
  explicit ChainedSchedule(std::vector<Part> parts);
  double operator()(int64_t step) const;

 private:
  std::vector<Part> parts_;
};

// Lowers the rate when a measure has not become better for a while (PyTorch's
// ReduceLROnPlateau). A measure is better than the best so far by more than the
// part `threshold` of it. After more than `patience` in a row that are not
// better, NaN among them, the rate is multiplied by factor, but no lower than
// min_lr; then `cooldown` measures are not counted. What it depends on is its
// state: with LoopOptions::plateau a checkpoint keeps it.
struct PlateauOptions {
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  int64_t cooldown = 0;
  double min_lr = 0;
  bool lower_is_better = true;
};
class PlateauSchedule {
 public:
  // Throws Error unless lr and the options are finite and >= 0, and factor < 1.
  explicit PlateauSchedule(double lr, PlateauOptions options = {});
  // Takes the next measure.
  void Observe(double value);
  double lr() const { return state_.lr; }

  struct State {
    double lr;
    std::optional<double> best = {};
    int64_t not_better = 0;  // in a row
    int64_t cooldown = 0;    // measures left of it
  };
  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  PlateauOptions options_;
  State state_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_SCHEDULE_H_
