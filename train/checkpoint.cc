#include "train/checkpoint.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "autograd/error.h"
#include "train/checkpoint_metadata.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

constexpr char kOptimizerPrefix[] = "optimizer.";
constexpr char kAveragePrefix[] = "average.";

// Whether a checkpoint has this name for something else than a parameter.
bool IsReserved(const std::string& name) {
  return absl::StartsWith(name, kOptimizerPrefix) ||
         absl::StartsWith(name, kAveragePrefix);
}

std::string Describe(const SafetensorsFile::Entry& entry) {
  return absl::StrCat(ElementName(entry.type), " ", entry.shape.ToString());
}

// Pairs what a file holds with what a run has, and gathers every difference.
// Nothing of the run changes before Copy.
class Loader {
 public:
  Loader(const SafetensorsFile& file, nn::ParameterStore& store,
         const LoadOptions& options)
      : file_(file),
        store_(store.state()),
        options_(options),
        is_checkpoint_(internal::IsCheckpoint(file.metadata())) {}

  std::vector<std::string>& faults() { return faults_; }

  void MatchParameters() {
    std::map<const Parameter*, const SafetensorsFile::Entry*> found;
    for (const SafetensorsFile::Entry& entry : file_.entries()) {
      if (is_checkpoint_ && IsReserved(entry.name)) continue;
      const Parameter* p = Find(entry.name);
      if (p == nullptr) {
        Differ(absl::StrCat("the store has no ", Show(entry.name)));
        continue;
      }
      const auto [it, first] = found.emplace(p, &entry);
      if (!first &&
          (it->second->type != entry.type || it->second->shape != entry.shape ||
           it->second->bytes != entry.bytes)) {
        faults_.push_back(absl::StrCat(
            Show(it->second->name), " and ", Show(entry.name),
            " are one parameter, and their values differ in the file"));
      }
    }
    for (const Parameter* p : store_.parameters) {
      const auto it = found.find(p);
      if (it == found.end()) {
        Differ(absl::StrCat("the file has no '", p->name, "'"));
      } else {
        Fit(*it->second, p->value);
      }
    }
  }

  // The state to load, whose tensors are those of `own`, which Copy fills.
  OptimizerState MatchOptimizer(const OptimizerState& saved,
                                const OptimizerState& own) {
    OptimizerState state{saved.kind, saved.options, {}};
    if (saved.kind != own.kind) {
      faults_.push_back(absl::StrCat("the optimizer is ", Printable(saved.kind),
                                     " in the file; wanted ", own.kind));
      return state;
    }
    for (const auto& [name, entry] : saved.parameters) {
      const Parameter* p = Find(name);
      if (p == nullptr) {
        Differ(absl::StrCat("the store has no ", Show(name),
                            ", of which the file has the optimizer's state"));
        continue;
      }
      OptimizerState::Entry to = own.parameters.at(p->name);
      to.step = entry.step;
      to.decay = entry.decay;
      for (auto& [tensor, value] : to.tensors) {
        const std::string full =
            absl::StrCat(kOptimizerPrefix, tensor, ".", name);
        if (const SafetensorsFile::Entry* from = file_.Find(full)) {
          Fit(*from, value);
        } else {
          faults_.push_back(absl::StrCat("the file has no '", full, "'"));
        }
      }
      if (!state.parameters.emplace(p->name, std::move(to)).second) {
        faults_.push_back(absl::StrCat(
            "the file has the optimizer's state of '", p->name, "' twice"));
      }
    }
    for (const auto& [name, entry] : own.parameters) {
      if (state.parameters.emplace(name, entry).second) {
        Differ(absl::StrCat("the file has no state of the optimizer for '",
                            name, "'"));
      }
    }
    return state;
  }

  void MatchAverage(WeightAverage& average) {
    for (const NamedTensor& to : average.State()) {
      const std::string full = absl::StrCat(kAveragePrefix, to.name);
      if (const SafetensorsFile::Entry* from = file_.Find(full)) {
        Fit(*from, to.tensor);
      } else {
        Differ(absl::StrCat("the file has no '", full, "'"));
      }
    }
  }

  // OK, or one line with every difference.
  absl::Status Verdict() const {
    if (faults_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        file_.path(), ": ",
        faults_.size() > 1 ? absl::StrCat(faults_.size(), " differences: ")
                           : "",
        absl::StrJoin(faults_, "; ")));
  }

  void Copy() {
    for (auto& [from, to] : copies_) {
      WithFloat(to.dtype(), [&, from = from, &to = to]<class T>(T) {
        CopyElements(*from, to.dtype(), to.mutable_data<T>());
      });
    }
    if (options_.passed_over) *options_.passed_over = std::move(passed_over_);
  }

 private:
  std::string Rename(const std::string& name) const {
    for (const auto& [from, to] : options_.rename) {
      if (absl::StartsWith(name, from)) {
        return absl::StrCat(to, name.substr(from.size()));
      }
    }
    return name;
  }

  // A name in the file, with the one that it goes by.
  std::string Show(const std::string& name) const {
    const std::string renamed = Rename(name);
    return renamed == name
               ? absl::StrCat("'", name, "'")
               : absl::StrCat("'", renamed, "' (in the file '", name, "')");
  }

  const Parameter* Find(const std::string& name) const {
    const auto* known = store_.FindName(Rename(name));
    return known ? known->parameter : nullptr;
  }

  // What only a strict load objects to.
  void Differ(std::string what) {
    (options_.strict ? faults_ : passed_over_).push_back(std::move(what));
  }

  void Fit(const SafetensorsFile::Entry& from, const Tensor& to) {
    const bool type_fits = options_.round ? Converts(from.type, to.dtype())
                                          : FitsExactly(from.type, to.dtype());
    if (type_fits && from.shape == to.shape()) {
      copies_.emplace_back(&from, to);
    } else {
      faults_.push_back(absl::StrCat(Show(from.name), " is ", Describe(from),
                                     " in the file; wanted ",
                                     wengert::Describe(to)));
    }
  }

  const SafetensorsFile& file_;
  nn::internal::StoreState& store_;
  const LoadOptions& options_;
  const bool is_checkpoint_;
  std::vector<std::string> faults_;
  std::vector<std::string> passed_over_;
  std::vector<std::pair<const SafetensorsFile::Entry*, Tensor>> copies_;
};

absl::StatusOr<SafetensorsFile> OpenCheckpoint(const std::string& path) {
  auto file = SafetensorsFile::Open(path);
  if (file.ok() && !internal::IsCheckpoint(file->metadata())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is no checkpoint of a training run"));
  }
  return file;
}

}  // namespace

absl::StatusOr<CheckpointContents> CollectCheckpoint(
    const TrainingRun& run, const CheckpointInfo& info) {
  if (run.batches && !info.cursor) {
    throw Error(
        "SaveCheckpoint: the run has batches, and there is no cursor of them");
  }
  run.parameters->state().CheckUsable("SaveCheckpoint");
  CheckpointContents contents;
  for (const Parameter* p : run.parameters->parameters()) {
    if (IsReserved(p->name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the name '", p->name,
                       "' of a parameter is one that a checkpoint keeps for an "
                       "optimizer or an average"));
    }
    contents.tensors.push_back({p->name, p->value});
  }
  internal::CheckpointMetadata metadata{info, {}, {}};
  if (run.generator) metadata.generator = *run.generator;
  if (run.optimizer) {
    metadata.optimizer = run.optimizer->SharedState();
    for (const auto& [name, entry] : metadata.optimizer->parameters) {
      for (const auto& [tensor, value] : entry.tensors) {
        contents.tensors.push_back(
            {absl::StrCat(kOptimizerPrefix, tensor, ".", name), value});
      }
    }
  }
  if (run.average) {
    for (const NamedTensor& x : run.average->State()) {
      contents.tensors.push_back(
          {absl::StrCat(kAveragePrefix, x.name), x.tensor});
    }
  }
  contents.metadata = internal::PrintMetadata(metadata);
  return contents;
}

absl::Status SaveCheckpoint(const std::string& path, const TrainingRun& run,
                            const CheckpointInfo& info) {
  const auto contents = CollectCheckpoint(run, info);
  if (!contents.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": cannot be written: ", contents.status().message()));
  }
  return WriteSafetensors(path, contents->tensors, contents->metadata);
}

absl::StatusOr<CheckpointInfo> LoadCheckpoint(const std::string& path,
                                              const TrainingRun& run,
                                              const LoadOptions& options) {
  run.parameters->state().CheckUsable("LoadCheckpoint");
  const auto file = OpenCheckpoint(path);
  if (!file.ok()) return file.status();
  Loader loader(*file, *run.parameters, options);
  std::vector<std::string>& faults = loader.faults();
  const internal::CheckpointMetadata saved =
      internal::ParseMetadata(file->metadata(), faults);
  // What is malformed would make more differences that are none.
  if (!faults.empty()) return loader.Verdict();

  loader.MatchParameters();
  if (run.average) loader.MatchAverage(*run.average);
  if (run.generator && !saved.generator) {
    faults.push_back("the file has no generator");
  }
  // The stream and the optimizer check by themselves what they take over. They
  // get back what they had when something else does not fit.
  BatchStream::State old_cursor;
  bool restored = false;
  if (run.batches && !saved.info.cursor) {
    faults.push_back("the file has no place in a stream of batches");
  } else if (run.batches) {
    old_cursor = run.batches->state();
    const absl::Status status = run.batches->Restore(*saved.info.cursor);
    restored = status.ok();
    if (!restored) faults.emplace_back(status.message());
  }
  OptimizerState own;
  bool loaded = false;
  if (run.optimizer && !saved.optimizer) {
    faults.push_back("the file has no optimizer");
  } else if (run.optimizer) {
    own = run.optimizer->SharedState();
    const size_t before = faults.size();
    const OptimizerState state = loader.MatchOptimizer(*saved.optimizer, own);
    if (faults.size() == before) {
      try {
        run.optimizer->Load(state);
        loaded = true;
      } catch (const Error& error) {
        faults.emplace_back(error.what());
      }
    }
  }
  if (!faults.empty()) {
    if (restored) (void)run.batches->Restore(old_cursor);
    if (loaded) run.optimizer->Load(own);
    return loader.Verdict();
  }
  loader.Copy();
  if (run.generator) *run.generator = *saved.generator;
  run.parameters->ZeroGrad();
  return saved.info;
}

absl::StatusOr<CheckpointInfo> ReadCheckpointInfo(const std::string& path) {
  const auto file = OpenCheckpoint(path);
  if (!file.ok()) return file.status();
  std::vector<std::string> faults;
  CheckpointInfo info = internal::ParseMetadata(file->metadata(), faults).info;
  if (faults.empty()) return info;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", absl::StrJoin(faults, "; ")));
}

absl::Status SaveParameters(const std::string& path,
                            const nn::ParameterStore& store,
                            std::optional<ElementType> float_type) {
  store.state().CheckUsable("SaveParameters");
  std::vector<NamedTensor> tensors;
  for (const Parameter* p : store.parameters()) {
    tensors.push_back({p->name, p->value});
  }
  return WriteSafetensors(path, tensors, {{"format", "pt"}}, float_type);
}

absl::Status LoadParameters(const std::string& path, nn::ParameterStore& store,
                            const LoadOptions& options) {
  store.state().CheckUsable("LoadParameters");
  const auto file = SafetensorsFile::Open(path);
  if (!file.ok()) return file.status();
  Loader loader(*file, store, options);
  loader.MatchParameters();
  const absl::Status verdict = loader.Verdict();
  if (!verdict.ok()) return verdict;
  loader.Copy();
  store.ZeroGrad();
  return absl::OkStatus();
}

}  // namespace wengert::train
