#include "train/stop_signals.h"

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
  const auto before = HandlerOf(SIGINT);
  {
    StopSignals signals;
    EXPECT_EQ(signals.received(), 0);
    raise(SIGTERM);
    EXPECT_EQ(signals.received(), SIGTERM);
    EXPECT_EQ(HandlerOf(SIGINT), SIG_DFL);
  }
  EXPECT_EQ(HandlerOf(SIGINT), before);
  EXPECT_EQ(StopSignals().received(), 0);  // a new one begins anew
}

TEST(StopSignalsDeathTest, TheSecondEndsTheProcess) {
  EXPECT_EXIT(
      {
        StopSignals signals;
        raise(SIGINT);
        raise(SIGINT);
        std::exit(0);
      },
      ::testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(
      {
        StopSignals signals;
        raise(SIGINT);
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
