// What all optimizers share: which parameters a step updates, how the state
// lies in memory, and how it is saved and restored by name.
//
//   AdamW optimizer(store, {.lr = 3e-4, .decay_filter = IsMatrix});
//   tape.Backward(loss);   // several of them add up
//   ClipGradNorm(store, 1.0);
//   optimizer.Step();
#ifndef WENGERT_TRAIN_OPTIMIZER_H_
#define WENGERT_TRAIN_OPTIMIZER_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autograd/parameter.h"
#include "autograd/tensor.h"
#include "nn/parameter_store.h"

namespace wengert::train {

// Which parameters decay: asked once for each, when the optimizer first sees
// it. Without a filter all do.
using DecayFilter =
    std::function<bool(const std::string& name, const Tensor& value)>;
// The usual choice: weights and embeddings, not biases and gains.
inline bool IsMatrix(const std::string&, const Tensor& value) {
  return value.rank() >= 2;
}

// All that a run needs to go on as if it had not stopped.
struct OptimizerState {
  struct Entry {
    int64_t step = 0;  // updates so far
    bool decay = true;
    std::map<std::string, Tensor> tensors;  // such as "m" and "v"
  };
  std::string kind;                       // "AdamW"
  std::map<std::string, double> options;  // by their names in the options
  std::map<std::string, Entry> parameters;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates each parameter that got a gradient since the last Step. Any other
  // keeps its value (it does not decay) and its count of updates. Gradients
  // stay readable; the next Backward replaces them. Throws Error, and changes
  // nothing, after a Backward that threw, until ZeroGrad. Infinite gradients
  // are taken as they are: ClipGradNorm sorts them out.
  virtual void Step();

  double lr() const { return lr_; }
  // Throws Error unless lr is finite and >= 0.
  void set_lr(double lr);

  // A copy of the state of every parameter of the store.
  OptimizerState State();
  // The same, but the tensors are the optimizer's own memory: for who copies
  // them at once, or fills them and then passes them to Load.
  OptimizerState SharedState();
  // Takes over state and options, by name (for a tied parameter any of its
  // names), in whatever order the store lists them. Throws Error, which lists
  // the differences, unless the state is one of this kind of optimizer for
  // exactly the parameters of the store; then nothing is changed.
  void Load(const OptimizerState& state);

 protected:
  // Elements of a segment that are updated alike.
  struct Run {
    int64_t begin, size;
    int64_t step;  // the number of this update, from 1
    bool decay;
    nn::Segment& segment;
    // Parallel to the segment, or the own state of the one parameter.
    absl::Span<Tensor> state;
    const Parameter* parameter;  // the first of them

    template <class T>
    T* At(Tensor& x) const {
      return x.mutable_data<T>() + begin;
    }
  };

  // A tensor of the state that is a parameter's own: it starts as zeros.
  struct OwnTensor {
    std::string name;
    Shape shape;
    DType dtype;
  };
  using OwnState = std::function<std::vector<OwnTensor>(const Parameter&)>;

  // `kind` names the optimizer, `tensors` its state of each parameter, which
  // starts as zeros and is of the parameter's shape and dtype.
  Optimizer(nn::ParameterStore& store, const char* kind,
            std::vector<std::string> tensors, double lr,
            DecayFilter decay_filter);
  // The state of each parameter is what own_state, asked once, says: then a Run
  // is one parameter.
  Optimizer(nn::ParameterStore& store, const char* kind, OwnState own_state,
            double lr, DecayFilter decay_filter);
  virtual void Update(const Run& run) = 0;
  // The options but lr. set_options throws Error, and sets none, unless all
  // are valid; it is given those that options() lists.
  virtual std::map<std::string, double> options() const = 0;
  virtual void set_options(const std::map<std::string, double>& options) = 0;

  DType dtype() const { return store_.dtype; }
  // Throws Error, with the option's value and what was wanted, unless `valid`.
  void Check(bool valid, const char* option, double value,
             const char* wanted) const;
  // The same for an option "eps": finite and > 0, in the store's dtype too, as
  // a gradient that is 0 from the start is divided by it.
  void CheckEps(double eps, const char* option = "eps") const;
  // The same for options of which each is in [0, 1), finite and >= 0, or 0
  // or 1.
  using Options = std::map<std::string, double>;
  void CheckFractions(const Options& options,
                      std::initializer_list<const char*> names) const;
  void CheckNonNegative(const Options& options,
                        std::initializer_list<const char*> names) const;
  void CheckSwitches(const Options& options,
                     std::initializer_list<const char*> names) const;

  struct Entry {  // of one parameter
    int64_t step;
    bool decay;
    std::vector<std::string> names;
    std::vector<Tensor> tensors;  // its part of the segment's, or its own
  };
  // In the order of the store's parameters.
  std::vector<Entry>& entries() {
    Grow();
    return entries_;
  }
  nn::internal::StoreState& store() const { return store_; }
  // Throws Error, which names the function, where the store has ended.
  void CheckUsable(const char* what) const;

 private:
  struct SegmentState {
    std::vector<Tensor> tensors;  // one for each of tensor_names_
    int64_t used = 0;
  };
  void CheckLr(double lr) const;
  void Grow();
  Entry MakeEntry(const Parameter& parameter, const SegmentState& state,
                  int64_t offset) const;
  std::vector<const OptimizerState::Entry*> Match(
      const OptimizerState& state, std::vector<std::string>& faults) const;

  OwnerHandle owner_;
  nn::internal::StoreState& store_;
  const char* const kind_;
  const std::vector<std::string> tensor_names_;
  const OwnState own_state_;  // null: tensor_names_ are the state
  double lr_;
  const DecayFilter decay_filter_;
  std::vector<Entry> entries_;          // in the order of the parameters
  std::vector<SegmentState> segments_;  // in the order of the segments
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_OPTIMIZER_H_
