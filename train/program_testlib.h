// Runs a program as a person does.
#ifndef WENGERT_TRAIN_PROGRAM_TESTLIB_H_
#define WENGERT_TRAIN_PROGRAM_TESTLIB_H_

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert::train {

struct ProgramResult {
  int status;
  std::string out;  // standard output and error as they come, by default
};

// Runs "program flags" in a shell.
inline ProgramResult RunProgram(const std::string& program,
                                const std::string& flags,
                                const std::string& redirect = "2>&1") {
  const std::string command = program + " " + flags + " " + redirect;
  FILE* pipe = popen(command.c_str(), "r");
  ProgramResult result{-1, ""};
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) {
    result.out.append(buffer, n);
  }
  result.status = WEXITSTATUS(pclose(pipe));
  return result;
}

// A wrong call ends with status 2 and one line, which begins with the program's
// name and says what is wrong.
inline void ExpectRefused(const std::string& program, const std::string& flags,
                          const std::string& why) {
  const ProgramResult r = RunProgram(program, flags);
  EXPECT_EQ(r.status, 2) << flags << "\n" << r.out;
  const std::string name = program.substr(program.rfind('/') + 1) + ": ";
  EXPECT_THAT(r.out, ::testing::AllOf(::testing::StartsWith(name),
                                      ::testing::HasSubstr(why),
                                      ::testing::MatchesRegex("[^\n]*\n")));
}

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_PROGRAM_TESTLIB_H_
