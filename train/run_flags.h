// The flags that every training program has: where its run is kept, how often
// things happen, and what it prints.
#ifndef WENGERT_TRAIN_RUN_FLAGS_H_
#define WENGERT_TRAIN_RUN_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "train/loop.h"
#include "train/recorder.h"

namespace wengert::train {

// ParseCommandLine (command_line.h), which knows these flags besides those of
// the program's `file`, __FILE__, and takes no words: what a run is, its flags
// say. Cancelled after --help. With --resume=DIR the
// flags that argv does not set are as the run in DIR last had them, by its
// config.json, so that --resume=DIR alone goes on with it. Checks these flags'
// ranges. Standard files that are closed become /dev/null.
absl::Status ParseRunCommandLine(int argc, const char* const* argv,
                                 const std::string& about,
                                 const std::string& file);

// What the flags say. The rest of the options is the program's.
RecorderOptions RecorderFlags(uint64_t seed);
LoopOptions LoopFlags();

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_RUN_FLAGS_H_
