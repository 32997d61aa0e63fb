#include "train/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <new>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

// The flags that the files' folders define.
std::map<std::string, absl::CommandLineFlag*> FlagsOf(
    const std::vector<std::string>& files) {
  std::map<std::string, absl::CommandLineFlag*> flags;
  for (const std::string& file : files) {
    // Abseil drops a leading slash.
    const std::string folder =
        std::filesystem::path(std::string(absl::StripPrefix(file, "/")))
            .parent_path();
    for (const auto& [name, flag] : absl::GetAllFlags()) {
      const std::filesystem::path defined(flag->Filename());
      if (defined.parent_path() == folder) {
        flags.emplace(std::string(name), flag);
      }
    }
  }
  return flags;
}

void PrintHelp(const std::string& about,
               const std::map<std::string, absl::CommandLineFlag*>& flags) {
  std::cout << about << "\n\nFlags:\n";
  for (const auto& [name, flag] : flags) {
    const std::string value = flag->DefaultValue();
    std::cout << "  --" << name << "  (default "
              << (value.empty() ? "none" : value) << ")\n      " << flag->Help()
              << "\n";
  }
  std::cout << "  --help\n      Print this.\n" << std::flush;
}

// The flag with the longest beginning in common, for a hint.
std::string Nearest(
    const std::string& name,
    const std::map<std::string, absl::CommandLineFlag*>& flags) {
  size_t best = 0;
  std::string nearest;
  for (const auto& [known, flag] : flags) {
    const auto end =
        std::mismatch(name.begin(), name.end(), known.begin(), known.end());
    const size_t common = end.first - name.begin();
    if (common > best) {
      best = common;
      nearest = known;
    }
  }
  return nearest.empty() ? "--help lists the flags"
                         : absl::StrCat("did you mean --", nearest, "?");
}

}  // namespace

absl::Status ParseCommandLine(int argc, const char* const* argv,
                              const std::string& about,
                              const std::vector<std::string>& files,
                              std::vector<std::string>* words) {
  const auto flags = FlagsOf(files);
  std::vector<std::string> others;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--") {
      others.insert(others.end(), argv + i + 1, argv + argc);
      break;
    }
    if (!absl::StartsWith(arg, "-") || arg == "-") {
      others.push_back(arg);
      continue;
    }
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(absl::StripPrefix(absl::StripPrefix(arg, "-"), "-"),
                       absl::MaxSplits('=', 1));
    std::string name = parts.first, value = parts.second;
    const bool has_value = absl::StrContains(arg, '=');
    if (name == "help" || name == "h") {
      PrintHelp(about, flags);
      return absl::CancelledError("");
    }
    auto found = flags.find(name);
    if (found == flags.end() && absl::StartsWith(name, "no") && !has_value) {
      found = flags.find(name.substr(2));
      if (found != flags.end() && found->second->IsOfType<bool>()) {
        value = "false";
      } else {
        found = flags.end();
      }
    } else if (found != flags.end() && !has_value) {
      if (found->second->IsOfType<bool>()) {
        value = "true";
      } else if (i + 1 < argc) {
        value = argv[++i];
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat("--", name, " wants a value"));
      }
    }
    if (found == flags.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown flag ", Printable(arg), ": ", Nearest(name, flags)));
    }
    std::string error;
    if (!found->second->ParseFrom(value, &error)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", found->first, "=", Printable(value), ": ",
          error.empty() ? absl::StrCat("not a value for this flag, such as ",
                                       found->second->DefaultValue())
                        : error));
    }
  }
  if (!words && !others.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected word ", Quoted(others[0]), "; see --help"));
  }
  if (words) *words = std::move(others);
  return absl::OkStatus();
}

int ExitStatus(const std::string& program,
               absl::FunctionRef<absl::StatusOr<int>()> run,
               const std::string& advice) {
  absl::StatusOr<int> result = 0;
  try {
    result = run();
  } catch (const std::bad_alloc&) {
    result = absl::ResourceExhaustedError(
        absl::StrCat("not enough memory", advice.empty() ? "" : "; ", advice));
  } catch (const std::exception& e) {
    result = absl::InvalidArgumentError(e.what());
  }
  if (result.ok()) return *result;
  if (absl::IsCancelled(result.status())) return 0;
  std::cerr << program << ": " << Printable(result.status().message()) << "\n";
  return 2;
}

std::string UserPath(const std::string& path) {
  const char* folder = std::getenv("BUILD_WORKING_DIRECTORY");
  if (!folder || path.empty()) return path;
  return std::filesystem::path(folder) / path;
}

std::string DataPath(const char* program, const std::string& path) {
  const std::filesystem::path runfiles =
      absl::StrCat(program, ".runfiles/wengert");
  std::error_code ignored;
  return std::filesystem::exists(runfiles / path, ignored)
             ? (runfiles / path).string()
             : path;
}

}  // namespace wengert::train
