#include "train/stop_signals.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "autograd/tensor_testlib.h"
#include "gtest/gtest.h"

namespace wengert::train {
namespace {

void (*HandlerOf(int signal))(int) {
  struct sigaction action;
  sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

TEST(StopSignals, NotesTheFirst) {
  {
    StopSignals signals;
    EXPECT_EQ(signals.received(), 0);
    raise(SIGTERM);
    EXPECT_EQ(signals.received(), SIGTERM);
    raise(SIGINT);  // at once: the same one again
    EXPECT_EQ(signals.received(), SIGTERM);
  }
  raise(SIGTERM);                          // still, while a run saves
  EXPECT_EQ(StopSignals().received(), 0);  // a new one begins anew
  EXPECT_EQ(HandlerOf(SIGTERM), SIG_DFL);  // and sets back what was there
}

TEST(StopSignals, SetsBackAHandlerOfTheProgram) {
  void (*own)(int) = [](int) {};
  const auto before = std::signal(SIGINT, own);
  {
    StopSignals signals;
    raise(SIGINT);
    EXPECT_EQ(signals.received(), SIGINT);
  }
  EXPECT_EQ(HandlerOf(SIGINT), own);
  std::signal(SIGINT, before);
}

TEST(StopSignalsDeathTest, TheSecondEndsTheProcess) {
  EXPECT_EXIT(
      {
        StopSignals signals;
        raise(SIGINT);
        usleep(600'000);
        raise(SIGINT);
        std::exit(0);
      },
      ::testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(
      {
        {
          StopSignals signals;
          raise(SIGINT);
        }
        usleep(600'000);
        raise(SIGTERM);
        std::exit(0);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignals, WhatIsIgnoredStaysIgnored) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    StopSignals signals;
    raise(SIGHUP);
    EXPECT_EQ(signals.received(), 0);
    raise(SIGINT);
    EXPECT_EQ(HandlerOf(SIGHUP), SIG_IGN);
  }
  EXPECT_EQ(HandlerOf(SIGHUP), SIG_IGN);
  std::signal(SIGHUP, before);
}

TEST(StopSignals, ThereIsOneAtATime) {
  const StopSignals signals;
  EXPECT_EQ(ErrorOf([] { StopSignals second; }),
            "StopSignals: the process has one already; wanted one at most");
}

}  // namespace
}  // namespace wengert::train
