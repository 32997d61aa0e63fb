#include "train/checkpoint_metadata.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "train/text_file.h"

namespace wengert::train::internal {
namespace {

constexpr char kVersionKey[] = "wengert.format_version";
constexpr int64_t kVersion = 1;

std::string Print(int64_t x) { return absl::StrCat(x); }
std::string Print(uint64_t x) { return absl::StrCat(x); }
std::string Print(bool x) { return x ? "true" : "false"; }
// As many digits as it takes to read the same number back.
std::string Print(double x) { return absl::StrFormat("%.17g", x); }

bool Parse(const std::string& text, int64_t& x) {
  return absl::SimpleAtoi(text, &x);
}
bool Parse(const std::string& text, uint64_t& x) {
  return absl::SimpleAtoi(text, &x);
}
bool Parse(const std::string& text, double& x) {
  return absl::SimpleAtod(text, &x);
}
bool Parse(const std::string& text, bool& x) {
  x = text == "true";
  return x || text == "false";
}

class Reader {
 public:
  Reader(const SafetensorsFile::Metadata& metadata,
         std::vector<std::string>& faults)
      : metadata_(metadata), faults_(faults) {}

  bool Has(const std::string& key) const { return metadata_.count(key) > 0; }

  std::string Text(const std::string& key) {
    const auto found = metadata_.find(key);
    if (found != metadata_.end()) return found->second;
    faults_.push_back(
        absl::StrCat("the metadata has no '", Printable(key), "'"));
    return "";
  }

  template <class T>
  T Get(const std::string& key) {
    T x{};
    if (!Has(key)) {
      Text(key);
    } else if (!Parse(metadata_.at(key), x)) {
      faults_.push_back(
          absl::StrCat("'", Printable(key), "' of the metadata is ",
                       Quoted(metadata_.at(key)), ", which cannot be read"));
    }
    return x;
  }

  // f(name, key) for the keys `prefix` + name.
  template <class F>
  void ForEach(const std::string& prefix, F f) {
    for (auto it = metadata_.lower_bound(prefix);
         it != metadata_.end() && absl::StartsWith(it->first, prefix); ++it) {
      f(it->first.substr(prefix.size()), it->first);
    }
  }

 private:
  const SafetensorsFile::Metadata& metadata_;
  std::vector<std::string>& faults_;
};

}  // namespace

bool IsCheckpoint(const SafetensorsFile::Metadata& metadata) {
  return metadata.count(kVersionKey) > 0;
}

SafetensorsFile::Metadata PrintMetadata(const CheckpointMetadata& checkpoint) {
  const CheckpointInfo& info = checkpoint.info;
  SafetensorsFile::Metadata metadata = {
      {"format", "pt"},  // Python programs ask for it
      {kVersionKey, Print(kVersion)},
      {"step", Print(info.step)},
      {"schedule", info.schedule},
      {"config", info.config}};
  for (const auto& [name, value] : info.metrics) {
    metadata["metrics." + name] = Print(value);
  }
  if (info.cursor) {
    metadata["batches.n"] = Print(info.cursor->n);
    metadata["batches.seed"] = Print(info.cursor->seed);
    metadata["batches.shuffle"] = Print(info.cursor->shuffle);
    metadata["batches.epoch"] = Print(info.cursor->epoch);
    metadata["batches.position"] = Print(info.cursor->position);
    if (info.cursor->order != 0) {
      metadata["batches.order"] = Print(info.cursor->order);
    }
  }
  if (checkpoint.generator) {
    metadata["generator.seed"] = Print(checkpoint.generator->seed());
    metadata["generator.offset"] = Print(checkpoint.generator->offset());
  }
  if (checkpoint.optimizer) {
    const OptimizerState& state = *checkpoint.optimizer;
    metadata["optimizer.kind"] = state.kind;
    for (const auto& [name, value] : state.options) {
      metadata["optimizer.options." + name] = Print(value);
    }
    for (const auto& [name, entry] : state.parameters) {
      metadata["optimizer.step." + name] = Print(entry.step);
      metadata["optimizer.decay." + name] = Print(entry.decay);
    }
  }
  return metadata;
}

CheckpointMetadata ParseMetadata(const SafetensorsFile::Metadata& metadata,
                                 std::vector<std::string>& faults) {
  Reader reader(metadata, faults);
  CheckpointMetadata checkpoint;
  const auto version = reader.Get<int64_t>(kVersionKey);
  if (version < 1 || version > kVersion) {
    faults.push_back(absl::StrCat("the checkpoint is of format version ",
                                  version, "; this program reads up to ",
                                  kVersion));
    return checkpoint;
  }
  CheckpointInfo& info = checkpoint.info;
  info.step = reader.Get<int64_t>("step");
  info.schedule = reader.Text("schedule");
  info.config = reader.Text("config");
  reader.ForEach("metrics.", [&](const auto& name, const auto& key) {
    info.metrics[name] = reader.Get<double>(key);
  });
  if (reader.Has("batches.n")) {
    info.cursor = {.n = reader.Get<int64_t>("batches.n"),
                   .seed = reader.Get<uint64_t>("batches.seed"),
                   .shuffle = reader.Get<bool>("batches.shuffle"),
                   .epoch = reader.Get<int64_t>("batches.epoch"),
                   .position = reader.Get<int64_t>("batches.position")};
    if (reader.Has("batches.order")) {
      info.cursor->order = reader.Get<uint64_t>("batches.order");
    }
  }
  if (reader.Has("generator.seed")) {
    checkpoint.generator = Generator{reader.Get<uint64_t>("generator.seed"),
                                     reader.Get<uint64_t>("generator.offset")};
  }
  if (reader.Has("optimizer.kind")) {
    OptimizerState& state = checkpoint.optimizer.emplace();
    state.kind = reader.Text("optimizer.kind");
    reader.ForEach("optimizer.options.",
                   [&](const auto& name, const auto& key) {
                     state.options[name] = reader.Get<double>(key);
                   });
    reader.ForEach("optimizer.step.", [&](const auto& name, const auto& key) {
      state.parameters[name].step = reader.Get<int64_t>(key);
      state.parameters[name].decay =
          reader.Get<bool>(absl::StrCat("optimizer.decay.", name));
    });
  }
  return checkpoint;
}

}  // namespace wengert::train::internal
