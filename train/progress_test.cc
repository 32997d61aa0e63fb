// The line at every width, and what goes to terminals, pipes and dumb places.
#include "train/progress.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

ProgressState State() {
  return {.step = 1200,
          .total_steps = 5000,
          .loss = 2.3456,
          .lr = 3e-4,
          .units_per_second = 12345,
          .seconds_left = 41.2};
}

TEST(RenderProgress, AtEveryWidth) {
  const auto at = [](int width, bool utf8 = false) {
    return RenderProgress(State(), {.width = width, .utf8 = utf8});
  };
  EXPECT_EQ(at(20), "1200/5000  2.346");
  EXPECT_EQ(at(40), "1200/5000  loss 2.346  12.3k/s  0:42");
  EXPECT_EQ(at(80),
            "[##        ]  step 1200/5000  loss 2.346  lr 3.00e-04  "
            "12.3k tokens/s  0:42 left");
  EXPECT_EQ(at(80, true),
            "▕██▍       ▏  step 1200/5000  loss 2.346  lr 3.00e-04  "
            "12.3k tokens/s  0:42 left");
  EXPECT_EQ(at(200),
            "[#########                             ]  step 1200/5000  "
            "loss 2.346  lr 3.00e-04  12.3k tokens/s  0:42 left");
  EXPECT_EQ(at(200, true),
            "▕█████████                             ▏  step 1200/5000  "
            "loss 2.346  lr 3.00e-04  12.3k tokens/s  0:42 left");
  // No words where they would cost the bar.
  EXPECT_EQ(at(70),
            "[####             ]  1200/5000  loss 2.346  lr 3.00e-04  "
            "12.3k/s  0:42");
}

TEST(RenderProgress, IsNeverWiderThanItMayBe) {
  ProgressState state = State();
  for (const double loss : {2.5, 1e-300, -1e300, kNan}) {
    for (const int64_t total : {int64_t{0}, int64_t{1200}, int64_t{1} << 60}) {
      state.loss = loss;
      state.total_steps = total;
      for (int width = 0; width <= 200; ++width) {
        for (const bool utf8 : {false, true}) {
          const std::string line =
              RenderProgress(state, {.width = width, .utf8 = utf8});
          ASSERT_LE(CountCharacters(line), width) << line;
          ASSERT_EQ(Printable(line), line);
        }
      }
    }
  }
}

TEST(RenderProgress, TheBarFillsInEighths) {
  ProgressState state = {.total_steps = 80};
  const auto bar = [&](int64_t step) {
    state.step = step;
    return RenderProgress(state, {.width = 44, .utf8 = true})
        .substr(0, std::string("▕").size() + 3);
  };
  EXPECT_EQ(bar(0), "▕   ");
  EXPECT_EQ(bar(1), "▕▏");
  EXPECT_EQ(bar(7), "▕▉");
  EXPECT_EQ(bar(8), "▕█");
  state.step = 80;
  EXPECT_THAT(RenderProgress(state, {.width = 44, .utf8 = true}),
              HasSubstr("▕██████████▏"));
  // Past its end, as a run with more steps than it was told.
  state.step = 100;
  EXPECT_THAT(RenderProgress(state, {.width = 44}), HasSubstr("[#########]"));
}

TEST(RenderProgress, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(RenderProgress({.step = 3, .loss = kNan, .lr = 0}, {.width = 80}),
            "step 3  loss nan  lr 0.00e+00");
}

TEST(RenderProgress, NumbersKeepAFewDigits) {
  const auto line = [](double speed, double left) {
    ProgressState state = State();
    state.units_per_second = speed;
    state.seconds_left = left;
    const std::string text =
        RenderProgress(state, {.width = 200, .bar = false});
    return text.substr(text.find("-04") + 5);
  };
  EXPECT_EQ(line(0.126, 0), "0.13 tokens/s  0:00 left");
  EXPECT_EQ(line(9.996, 59.1), "10.0 tokens/s  1:00 left");
  EXPECT_EQ(line(999.4, 3599), "999 tokens/s  59:59 left");
  EXPECT_EQ(line(999.6, 3600), "1.00k tokens/s  1:00:00 left");
  EXPECT_EQ(line(45.6e6, 86399), "45.6M tokens/s  23:59:59 left");
  EXPECT_EQ(line(7e15, 100000), "7000T tokens/s  1d 03h left");
  EXPECT_EQ(line(1, 1e300), "1.00 tokens/s  999d 00h left");
}

// The variables that decide how it looks, put back afterwards.
class ProgressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"NO_COLOR", "COLUMNS", "LC_ALL", "LC_CTYPE"}) {
      unsetenv(name);
    }
    setenv("TERM", "xterm", 1);
    setenv("LANG", "C.UTF-8", 1);
    options_.seconds = [this] { return now_; };
    options_.total_steps = 100;
  }

  void TearDown() override {
    for (const int fd : {reader_, options_.fd}) {
      if (fd > STDERR_FILENO) close(fd);
    }
  }

  void OpenPipe() {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
    reader_ = ends[0], options_.fd = ends[1];
  }

  void OpenTerminal(int width) {
    reader_ = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    ASSERT_GE(reader_, 0);
    ASSERT_EQ(grantpt(reader_), 0);
    ASSERT_EQ(unlockpt(reader_), 0);
    options_.fd = open(ptsname(reader_), O_RDWR | O_NOCTTY);
    ASSERT_GE(options_.fd, 0);
    Resize(width);
  }

  void Resize(int width) {
    const winsize size = {.ws_row = 24,
                          .ws_col = static_cast<unsigned short>(width),
                          .ws_xpixel = 0,
                          .ws_ypixel = 0};
    ASSERT_EQ(ioctl(options_.fd, TIOCSWINSZ, &size), 0);
  }

  // What was written since the last call.
  std::string Written() {
    std::string text;
    char buffer[4096];
    ssize_t n;
    while ((n = read(reader_, buffer, sizeof(buffer))) > 0) {
      text.append(buffer, n);
    }
    return text;
  }

  ProgressOptions options_;
  int reader_ = -1;
  double now_ = 1000;
};

// What a terminal shows after these bytes: its lines, colours apart. It knows
// what a progress line needs; anything else, such as half an escape sequence,
// is a failure.
std::vector<std::string> Screen(absl::string_view bytes) {
  std::vector<std::string> lines = {""};
  std::string rest;  // of the line, after the cursor
  while (!bytes.empty()) {
    size_t length = Utf8Length(bytes);
    if (bytes[0] == '\r') {
      rest = lines.back() + rest;
      lines.back().clear();
    } else if (bytes[0] == '\n') {
      lines.back() += rest;
      lines.push_back("");
      rest.clear();
    } else if (absl::StartsWith(bytes, "\x1B[K")) {
      length = 3;
      rest.clear();
    } else if (bytes[0] == '\x1B') {
      length = bytes.find('m') + 1;
      EXPECT_THAT(std::string(bytes.substr(0, length)),
                  ::testing::AnyOf("\x1B[36m", "\x1B[31m", "\x1B[0m"));
    } else {
      EXPECT_GT(length, 0u);
      absl::StrAppend(&lines.back(), bytes.substr(0, length));
      rest.erase(0, std::max<size_t>(Utf8Length(rest), 1));
    }
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
  lines.back() += rest;
  return lines;
}

TEST_F(ProgressTest, DrawsOneLineOnATerminalAndMessagesAboveIt) {
  OpenTerminal(60);
  Progress progress(options_);
  now_ += 1;
  progress.Update(10, 4, 1e-3, 500);
  std::string all = Written();
  EXPECT_THAT(Screen(all),
              ElementsAre("▕█          ▏  10/100  loss 4.000  lr 1.00e-03"
                          "  500/s  0:09"));
  now_ += 0.05;  // too soon for another draw
  progress.Update(11, 3, 1e-3, 50);
  EXPECT_EQ(Written(), "");
  progress.Message("saved step 10");
  now_ += 0.95;
  progress.Update(20, 2, 1e-3, 450);
  progress.Message("evaluation:\n  loss 2.5");
  progress.Finish();
  all += Written();
  EXPECT_THAT(
      Screen(all),
      ElementsAre("saved step 10", "evaluation:", "  loss 2.5",
                  "▕██▏        ▏  20/100  loss 2.930  lr 1.00e-03  500/s  0:08",
                  ""));
  // Each draw starts at the line's beginning and ends with its end erased.
  EXPECT_THAT(all, Not(HasSubstr("\n\n")));
  EXPECT_THAT(all, HasSubstr("\x1B[36m"));
  progress.Finish();
  EXPECT_EQ(Written(), "");
}

TEST_F(ProgressTest, FollowsTheTerminalsWidth) {
  OpenTerminal(200);
  Progress progress(options_);
  std::string all;
  for (const int width : {200, 80, 40, 20, 1, 200}) {
    Resize(width);
    now_ += 1;
    progress.Update(10, 4, 1e-3, 500);
    const std::string line = Written();
    const std::string seen = Screen(line).back();
    EXPECT_LT(CountCharacters(seen), width);
    EXPECT_GE(CountCharacters(seen), std::min(width - 10, 80)) << seen;
    all += line;
  }
  EXPECT_EQ(Screen(all).size(), 1u);
}

TEST_F(ProgressTest, RespectsNoColorAndPlacesWithoutUtf8) {
  setenv("NO_COLOR", "1", 1);
  setenv("LC_ALL", "C", 1);
  OpenTerminal(60);
  options_.unit = "wörter";
  Progress progress(options_);
  now_ += 1;
  progress.Update(50, kNan, 1e-3, 500);
  progress.Message("zéro \x1B[31m");
  const std::string all = Written();
  EXPECT_THAT(Screen(all),
              ElementsAre("z?ro ?[31m",
                          "[######       ]  50/100  loss nan  lr 1.00e-03  "
                          "500/s  0:01"));
  EXPECT_THAT(all, Not(HasSubstr("m[")));
  EXPECT_THAT(all, Not(HasSubstr("\x1B[0m")));
  for (const char c : all) EXPECT_FALSE(c & 0x80);
}

TEST_F(ProgressTest, PlainLinesWhereOutputIsNoTerminal) {
  OpenPipe();
  Progress progress(options_);
  for (int64_t step = 1; step <= 25; ++step) {
    now_ += 1;
    progress.Update(step, 2, 1e-3, 100);
    if (step == 3) progress.Message("saved step 3");
  }
  progress.Finish();
  EXPECT_EQ(Written(),
            "step 1/100  loss 2.000  lr 1.00e-03  100 tokens/s  1:39 left\n"
            "saved step 3\n"
            "step 11/100  loss 2.000  lr 1.00e-03  100 tokens/s  1:29 left\n"
            "step 21/100  loss 2.000  lr 1.00e-03  100 tokens/s  1:19 left\n"
            "step 25/100  loss 2.000  lr 1.00e-03  100 tokens/s  1:15 left\n");
}

TEST_F(ProgressTest, ADumbTerminalGetsPlainLines) {
  setenv("TERM", "dumb", 1);
  OpenTerminal(80);
  Progress progress(options_);
  progress.Update(1, 2, 1e-3, 100);
  EXPECT_EQ(Written(), "step 1/100  loss 2.000  lr 1.00e-03\r\n");
}

TEST_F(ProgressTest, QuietWritesWarningsAlone) {
  OpenPipe();
  options_.style = ProgressOptions::kQuiet;
  {
    Progress progress(options_);
    progress.Update(1, 2, 1e-3, 100);
    progress.Message("saved step 1");
    progress.Warning("the disk is full");
  }
  EXPECT_EQ(Written(), "the disk is full\n");
}

TEST_F(ProgressTest, SpeedAndTimeLeftAreThoseOfThisRunsLastSeconds) {
  OpenPipe();
  options_.first_step = 50;  // resumed: these took this process no time
  options_.plain_seconds = 1;
  options_.loss_smoothing = 0;
  Progress progress(options_);
  now_ += 1;
  progress.Update(51, 7, 1e-3, 10);
  EXPECT_THAT(Written(), HasSubstr("loss 7.000  lr 1.00e-03  10.0 tokens/s  "
                                   "0:49 left"));
  // Four times as fast for a long time: the first second is forgotten.
  for (int64_t step = 55; step <= 91; step += 4) {
    now_ += 10;
    progress.Update(step, 3, 1e-3, 400);
  }
  EXPECT_THAT(Written(), HasSubstr("step 91/100  loss 3.000  lr 1.00e-03  "
                                   "40.0 tokens/s  0:23 left"));
}

TEST_F(ProgressTest, TheMeanLossLeavesOutWhatIsNotFinite) {
  OpenPipe();
  options_.plain_seconds = 0;
  options_.loss_smoothing = 0.5;
  Progress progress(options_);
  for (const double loss : {4.0, 1.0, kNan, 3.0})
    progress.Update(1, loss, 0, 0);
  EXPECT_EQ(Written(),
            "step 1/100  loss 4.000  lr 0.00e+00\n"
            "step 1/100  loss 2.000  lr 0.00e+00\n"
            "step 1/100  loss nan  lr 0.00e+00\n"
            "step 1/100  loss 2.571  lr 0.00e+00\n");
}

TEST_F(ProgressTest, AStoppedTerminalDoesNotHoldTrainingUp) {
  OpenTerminal(80);
  Progress progress(options_);
  ASSERT_EQ(tcflow(options_.fd, TCOOFF), 0);  // Ctrl-S
  for (int64_t step = 1; step <= 10; ++step) {
    now_ += 1;
    progress.Update(step, 2, 1e-3, 100);
  }
  EXPECT_EQ(Written(), "");
  ASSERT_EQ(tcflow(options_.fd, TCOON), 0);
  now_ += 1;
  progress.Update(11, 2, 1e-3, 100);
  EXPECT_THAT(Screen(Written()).back(), HasSubstr("11/100"));
}

TEST_F(ProgressTest, AFullPipeGetsWholeLines) {
  OpenPipe();
  Progress progress(options_);
  const std::string message(100000, 'x');  // more than a pipe takes at once
  std::string read_back;
  std::thread reader([&] {
    while (read_back.size() <= message.size()) read_back += Written();
  });
  progress.Message(message);
  reader.join();
  EXPECT_EQ(read_back, message + "\n");
}

TEST_F(ProgressTest, APipeThatNobodyReadsDoesNotEndTheProcess) {
  OpenPipe();
  Progress progress(options_);
  close(std::exchange(reader_, -1));
  progress.Message("lost");
  progress.Update(10, 2, 1e-3, 100);
  progress.Finish();
  // A pipe of the program's own still does what it did.
  EXPECT_EXIT((void)!write(options_.fd, "x", 1),
              ::testing::KilledBySignal(SIGPIPE), "");
}

TEST_F(ProgressTest, NothingIsShownBeforeTheFirstStep) {
  OpenTerminal(80);
  Progress(options_).Finish();
  EXPECT_THAT(Written(), IsEmpty());
}

}  // namespace
}  // namespace wengert::train
