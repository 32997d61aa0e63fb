// What a person sees of a run while it trains: on a terminal one line that is
// drawn again and again, with messages above it; anywhere else a plain line
// every few seconds.
//
//   Progress progress({.total_steps = 5000, .unit = "tokens"});
//   progress.Update(step, loss, lr, n_tokens);   // after every step
//   progress.Message("evaluation: loss 1.93");
//   progress.Finish();
#ifndef WENGERT_TRAIN_PROGRESS_H_
#define WENGERT_TRAIN_PROGRESS_H_

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace wengert::train {

// The numbers of one line.
struct ProgressState {
  int64_t step = 0;
  int64_t total_steps = 0;  // 0: not known; no bar and no time left then
  double loss = 0;
  double lr = 0;
  double units_per_second = 0;  // 0: not known yet
  double seconds_left = -1;     // negative: not known yet
  std::string unit = "tokens";
};

struct ProgressLook {
  int width = 80;  // columns that may be used
  bool bar = true;
  bool utf8 = false;
  bool color = false;
};

// One line of at most look.width columns, without an end. Where it is narrow,
// words go first, then lr, speed, time left and loss, so that the step stays.
std::string RenderProgress(const ProgressState& state,
                           const ProgressLook& look);

struct ProgressOptions {
  // kAuto: kLine on a terminal that can move its cursor, kPlain elsewhere.
  // kQuiet writes warnings alone.
  enum Style { kAuto, kLine, kPlain, kQuiet };

  int64_t total_steps = 0;
  int64_t first_step = 0;  // where a resumed run goes on
  std::string unit = "tokens";
  Style style = kAuto;
  double draw_seconds = 0.1;    // between two draws of the line
  double plain_seconds = 10;    // between two plain lines
  double loss_smoothing = 0.9;  // weight of the past in the mean; 0: no mean
  int fd = STDERR_FILENO;
  std::function<double()> seconds = {};  // a clock; a steady one if empty
};

// To be used by one thread at a time. What cannot be written is dropped, also
// where nobody reads it any more: a pipe's end does not end the training.
class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // Finish
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // After a step: how many are done, its loss and learning rate, and how many
  // units (tokens, ...) it took. A loss that is not finite is shown, but stays
  // out of the mean.
  void Update(int64_t step, double loss, double lr, int64_t units);
  // A text of one or more lines, above the line: an evaluation, a checkpoint.
  void Message(absl::string_view text);
  // The same, also where it is quiet.
  void Warning(absl::string_view text);
  // The last state, which then stays.
  void Finish();

 private:
  void Draw(double now);
  void Print(absl::string_view text);
  // All of it, so that no escape sequence is cut. With `if_ready`, nothing
  // where the terminal was stopped, so that training goes on.
  void Write(absl::string_view bytes, bool if_ready = false);
  int Width() const;

  ProgressOptions options_;
  ProgressLook look_;
  ProgressState state_;
  double loss_sum_ = 0, loss_weight_ = 0;
  double next_draw_ = 0;
  double measured_at_;  // when and where speed was last measured
  int64_t measured_step_;
  int64_t units_ = 0;  // since then
  double recent_seconds_ = 0, recent_steps_ = 0, recent_units_ = 0;
  bool drawn_ = false;    // a line stands on the terminal
  bool pending_ = false;  // the state is newer than what was drawn
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_PROGRESS_H_
