#include "train/progress.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "train/clock.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

constexpr char kLineStart[] = "\r\x1B[K";  // and erases what stood there
constexpr char kEraseRest[] = "\x1B[K";
constexpr char kCyan[] = "\x1B[36m";
constexpr char kRed[] = "\x1B[31m";
constexpr char kPlainColor[] = "\x1B[0m";
constexpr int kShortestBar = 10, kLongestBar = 40;
// How long a past speed counts: it weighs 1/e after so many seconds.
constexpr double kSpeedSeconds = 10;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Whether text is UTF-8 here: the first variable of these that is set says it.
bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string locale = absl::AsciiStrToLower(Environment(name));
    if (locale.empty()) continue;
    return absl::StrContains(locale, "utf-8") ||
           absl::StrContains(locale, "utf8");
  }
  return false;
}

std::string WithoutUtf8(absl::string_view text) {
  std::string ascii;
  while (!text.empty()) {
    const size_t length = std::max<size_t>(Utf8Length(text), 1);
    ascii.push_back(length == 1 && !(text[0] & 0x80) ? text[0] : '?');
    text.remove_prefix(length);
  }
  return ascii;
}

// While it lives, a write of this thread to a pipe that nobody reads fails with
// EPIPE and does not end the process.
class NoSigPipe {
 public:
  NoSigPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigPipe() {
    const timespec at_once = {};
    if (!sigismember(&before_, SIGPIPE)) {
      sigtimedwait(&pipe_, nullptr, &at_once);  // takes what came
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_, before_;
};

// Three digits: 0.53, 12.3, 1.23k, 45.6M.
std::string Rounded(double value) {
  const char* suffix = "";
  for (const char* next : {"k", "M", "G", "T"}) {
    if (!(value >= 999.5)) break;
    value /= 1000;
    suffix = next;
  }
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f%s", digits, value, suffix);
}

// 0:07, 12:34, 1:02:03, 3d 04h.
std::string Duration(double seconds) {
  constexpr double kLongest = 999 * 86400.0;
  const auto s = static_cast<int64_t>(std::min(std::ceil(seconds), kLongest));
  const int64_t minutes = s / 60, hours = minutes / 60;
  if (hours >= 24) return absl::StrFormat("%dd %02dh", hours / 24, hours % 24);
  if (hours == 0) return absl::StrFormat("%d:%02d", minutes, s % 60);
  return absl::StrFormat("%d:%02d:%02d", hours, minutes % 60, s % 60);
}

std::string Bar(double done, int width, const ProgressLook& look) {
  const int inside = width - 2;
  std::string bar;
  if (look.utf8) {
    // Eighths of a column.
    const char* kPart[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const int eighths = static_cast<int>(done * inside * 8);
    for (int i = 0; i < eighths / 8; ++i) absl::StrAppend(&bar, "█");
    absl::StrAppend(&bar, kPart[eighths % 8]);
    bar.append(inside - (eighths + 7) / 8, ' ');
  } else {
    const int full = static_cast<int>(done * inside);
    bar = std::string(full, '#') + std::string(inside - full, ' ');
  }
  if (look.color) bar = absl::StrCat(kCyan, bar, kPlainColor);
  return look.utf8 ? absl::StrCat("▕", bar, "▏") : absl::StrCat("[", bar, "]");
}

struct Part {
  std::string words, brief;
  int rank;  // the highest goes first where it is narrow
};

int Columns(const std::vector<std::string>& texts) {
  int64_t columns = 2 * (static_cast<int64_t>(texts.size()) - 1);
  for (const std::string& text : texts) columns += CountCharacters(text);
  return static_cast<int>(columns);
}

}  // namespace

std::string RenderProgress(const ProgressState& state,
                           const ProgressLook& look) {
  const std::string steps =
      state.total_steps > 0 ? absl::StrCat(state.step, "/", state.total_steps)
                            : absl::StrCat(state.step);
  // With its zeros, so that the line does not jump.
  const std::string loss =
      std::isnan(state.loss) ? "nan" : absl::StrFormat("%#.4g", state.loss);
  std::vector<Part> parts = {{"step " + steps, steps, 0},
                             {"loss " + loss, "loss " + loss, 1}};
  const std::string lr = absl::StrFormat("lr %.2e", state.lr);
  parts.push_back({lr, lr, 4});
  if (state.units_per_second > 0) {
    const std::string speed = Rounded(state.units_per_second);
    parts.push_back(
        {absl::StrCat(speed, " ",
                      look.utf8 ? state.unit : WithoutUtf8(state.unit), "/s"),
         speed + "/s", 3});
  }
  if (state.seconds_left >= 0) {
    const std::string left = Duration(state.seconds_left);
    parts.push_back({left + " left", left, 2});
  }

  const bool bar = look.bar && state.total_steps > 0;
  const auto texts_of = [&](std::string Part::*form) {
    std::vector<std::string> texts;
    for (const Part& part : parts) texts.push_back(part.*form);
    return texts;
  };
  std::vector<std::string> texts = texts_of(&Part::words);
  const int wanted = bar ? kShortestBar + 2 : 0;
  if (Columns(texts) + wanted > look.width) texts = texts_of(&Part::brief);
  while (Columns(texts) > look.width && parts.size() > 2) {
    parts.erase(std::max_element(
        parts.begin(), parts.end(),
        [](const Part& a, const Part& b) { return a.rank < b.rank; }));
    texts = texts_of(&Part::brief);
  }
  if (Columns(texts) > look.width) texts = {steps, loss};
  if (Columns(texts) > look.width) texts = {steps.substr(0, look.width)};

  const int room = look.width - Columns(texts) - 2;
  if (look.color && !std::isfinite(state.loss) && texts.size() > 1) {
    texts[1] = absl::StrCat(kRed, texts[1], kPlainColor);
  }
  if (bar && room >= kShortestBar) {
    const double done = static_cast<double>(state.step) /
                        static_cast<double>(state.total_steps);
    texts.insert(texts.begin(), Bar(std::clamp(done, 0.0, 1.0),
                                    std::min(room, kLongestBar), look));
  }
  return absl::StrJoin(texts, "  ");
}

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {
  if (!options_.seconds) options_.seconds = SteadySeconds;
  const std::string terminal = Environment("TERM");
  if (options_.style == ProgressOptions::kAuto) {
    options_.style =
        isatty(options_.fd) && !terminal.empty() && terminal != "dumb"
            ? ProgressOptions::kLine
            : ProgressOptions::kPlain;
  }
  look_.utf8 = LocaleIsUtf8();
  look_.bar = options_.style == ProgressOptions::kLine;
  look_.color = look_.bar && Environment("NO_COLOR").empty();
  state_.step = options_.first_step;
  state_.total_steps = options_.total_steps;
  state_.unit = options_.unit;
  measured_at_ = options_.seconds();
  measured_step_ = options_.first_step;
  next_draw_ = measured_at_;
}

Progress::~Progress() { Finish(); }

void Progress::Update(int64_t step, double loss, double lr, int64_t units) {
  if (options_.style == ProgressOptions::kQuiet) return;
  state_.step = step;
  state_.lr = lr;
  state_.loss = loss;
  if (std::isfinite(loss)) {
    const double past = options_.loss_smoothing;
    loss_sum_ = past * loss_sum_ + (1 - past) * loss;
    loss_weight_ = past * loss_weight_ + (1 - past);
    state_.loss = loss_sum_ / loss_weight_;
  }
  units_ += units;
  pending_ = true;
  const double now = options_.seconds();
  if (now >= next_draw_) Draw(now);
}

void Progress::Draw(double now) {
  const double seconds = now - measured_at_;
  if (seconds > 0) {
    const double past = std::exp(-seconds / kSpeedSeconds);
    recent_seconds_ = past * recent_seconds_ + seconds;
    recent_steps_ = past * recent_steps_ +
                    static_cast<double>(state_.step - measured_step_);
    recent_units_ = past * recent_units_ + static_cast<double>(units_);
    measured_at_ = now;
    measured_step_ = state_.step;
    units_ = 0;
    state_.units_per_second = recent_units_ / recent_seconds_;
    if (state_.total_steps > 0 && recent_steps_ > 0) {
      const int64_t left =
          std::max<int64_t>(state_.total_steps - state_.step, 0);
      state_.seconds_left =
          static_cast<double>(left) * recent_seconds_ / recent_steps_;
    }
  }
  pending_ = false;
  if (options_.style == ProgressOptions::kLine) {
    next_draw_ = now + options_.draw_seconds;
    look_.width = Width() - 1;  // some terminals wrap at the last column
    Write(absl::StrCat("\r", RenderProgress(state_, look_), kEraseRest),
          /*if_ready=*/true);
    drawn_ = true;
  } else {
    next_draw_ = now + options_.plain_seconds;
    look_.width = 1 << 20;
    Write(RenderProgress(state_, look_) + "\n");
  }
}

void Progress::Message(absl::string_view text) {
  if (options_.style != ProgressOptions::kQuiet) Print(text);
}

void Progress::Warning(absl::string_view text) { Print(text); }

void Progress::Print(absl::string_view text) {
  std::string out = drawn_ ? kLineStart : "";
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string printable = Printable(line);
    absl::StrAppend(&out, look_.utf8 ? printable : WithoutUtf8(printable),
                    "\n");
  }
  if (drawn_) {
    look_.width = Width() - 1;
    absl::StrAppend(&out, RenderProgress(state_, look_), kEraseRest);
  }
  Write(out);
}

void Progress::Finish() {
  if (pending_) Draw(options_.seconds());
  if (drawn_) Write("\n");
  drawn_ = false;
}

void Progress::Write(absl::string_view bytes, bool if_ready) {
  const NoSigPipe scope;
  pollfd ready = {options_.fd, POLLOUT, 0};
  if (if_ready && poll(&ready, 1, 0) == 0) return;
  while (!bytes.empty()) {
    const ssize_t n = write(options_.fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(n);
    } else if (errno == EAGAIN) {
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

int Progress::Width() const {
  winsize size;
  if (ioctl(options_.fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  int columns;
  if (absl::SimpleAtoi(Environment("COLUMNS"), &columns) && columns > 1) {
    return columns;
  }
  return 80;
}

}  // namespace wengert::train
