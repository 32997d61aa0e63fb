// Flags of a program, with errors of one line. Flags are Abseil's
// (ABSL_FLAG(int64_t, steps, 300, "...")); Abseil's own parser ignores stray
// words and ends the process by itself.
#ifndef WENGERT_TRAIN_COMMAND_LINE_H_
#define WENGERT_TRAIN_COMMAND_LINE_H_

#include <limits>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace wengert::train {

// Sets the flags from argv: --name=value, --name value, --name and --noname
// for a bool, and -- before words. What is no flag goes into `words`, or is an
// error where there is none. An unknown flag or a value of the wrong kind is an
// error that names it, with the nearest flag; --help gives Cancelled with an
// empty text, once it has printed `about` and every flag that one of `files`,
// or a neighbour of it, defines, with their defaults. The caller's own is
// __FILE__.
absl::Status ParseCommandLine(int argc, const char* const* argv,
                              const std::string& about,
                              const std::vector<std::string>& files,
                              std::vector<std::string>* words = nullptr);

template <class T>
inline constexpr T kNoLimit = std::numeric_limits<T>::has_infinity
                                  ? std::numeric_limits<T>::infinity()
                                  : std::numeric_limits<T>::max();

// An error that names the flag, its value and the limits, unless least <= value
// <= most; NaN is outside.
template <class T>
absl::Status CheckFlag(const absl::Flag<T>& flag, T least,
                       T most = kNoLimit<T>) {
  const T value = absl::GetFlag(flag);
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag.Name(), "=", value, ": wanted ", least,
      most < kNoLimit<T> ? absl::StrCat(" to ", most) : " or more"));
}

// The exit status of a program whose main() calls this: what `run` returns. An
// error or an exception is 2 and, as one line on standard error, "program:
// why"; Cancelled, which ParseCommandLine gives after --help, is 0. Where there
// is not enough memory the line has `advice`: "a smaller --d_model takes less".
int ExitStatus(const std::string& program,
               absl::FunctionRef<absl::StatusOr<int>()> run,
               const std::string& advice = "");

// Where a path that a person typed points: programs started by `bazel run`
// stand in another folder than their user.
std::string UserPath(const std::string& path);

// Where a data file of the project lies at run time, by its path from the
// project's root: in the runfiles of the program (argv[0]), or as it is.
std::string DataPath(const char* program, const std::string& path);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_COMMAND_LINE_H_
