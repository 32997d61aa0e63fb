// The models that the benchmarks train: a toy transformer of the size of
// examples/word_to_symbol, and two GPTs.
//
// Their parameters start from a formula of index instead of a random generator,
// so that another system can begin with the same numbers: peers/ holds the same
// models for others.
#ifndef WENGERT_BENCHMARKS_MODELS_H_
#define WENGERT_BENCHMARKS_MODELS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "nn/parameter_store.h"
#include "train/optimizer.h"

namespace wengert::benchmarks {

// A model with its data and its optimizer.
class Workload {
 public:
  virtual ~Workload() = default;
  // The loss. Without a tape nothing is kept for a backward pass.
  virtual Tensor Forward() = 0;
  // One training step: forward, backward, optimizer. Returns the loss before
  // it.
  Tensor Step();
  virtual int64_t tokens() const = 0;
  // Of a step: 6 * (parameters in products) * tokens and full attention, twice
  // as much backward as forward.
  virtual double flops() const = 0;
  virtual nn::ParameterStore& store() = 0;
  virtual train::Optimizer& optimizer() = 0;
};

struct WorkloadOptions {
  bool checkpointing = false;  // backward runs every layer a second time
  // Of a GPT, in place of its own.
  std::optional<int64_t> layers = {}, batch = {}, length = {};
};

// "toy", "small" or "medium"; null for another name.
std::unique_ptr<Workload> MakeWorkload(const std::string& name,
                                       const WorkloadOptions& options = {});

}  // namespace wengert::benchmarks

#endif  // WENGERT_BENCHMARKS_MODELS_H_
