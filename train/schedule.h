// Learning-rate schedules: pure functions of the step, so that a run resumed at
// any step goes on with the rate it would have had.
#ifndef WENGERT_TRAIN_SCHEDULE_H_
#define WENGERT_TRAIN_SCHEDULE_H_

#include <cstdint>

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

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_SCHEDULE_H_
