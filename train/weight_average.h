// A moving average of a model's weights, which often does better than the
// weights that the last steps left.
//
//   WeightAverage average(store, {.decay = 0.999});
//   Loop loop({&store, &optimizer, &generator, &batches, &average}, ...);
//   // or by hand: optimizer.Step(); average.Update();
//   {
//     WeightAverage::Swap swap(average);   // the model has the average here
//     Evaluate(model);
//   }
//
// A checkpoint of a run that has one keeps it beside the weights, in the same
// file: "average.weights.NAME" and "average.updates".
#ifndef WENGERT_TRAIN_WEIGHT_AVERAGE_H_
#define WENGERT_TRAIN_WEIGHT_AVERAGE_H_

#include <cstdint>
#include <vector>

#include "autograd/tensor.h"
#include "nn/parameter_store.h"
#include "train/safetensors.h"

namespace wengert::train {

struct WeightAverageOptions {
  double decay = 0.999;  // d in [0, 1]
  // Update n (from 0) takes min(decay, (1 + n) / (10 + n)), so that what the
  // model began with is soon forgotten.
  bool warm_up = false;
};

// average = d average + (1 - d) weights, after each step. Starts as the weights
// of the moment it is made; those that were made later are not allowed for.
class WeightAverage {
 public:
  // The store must outlive it and keep its place. Throws Error unless the decay
  // is in [0, 1].
  explicit WeightAverage(nn::ParameterStore& store,
                         WeightAverageOptions options = {});
  WeightAverage(const WeightAverage&) = delete;
  WeightAverage& operator=(const WeightAverage&) = delete;

  // To be called after each step of the optimizer. Throws Error during a Swap,
  // and when the store has other parameters than it had.
  void Update();
  int64_t updates() const { return static_cast<int64_t>(updates_.item()); }
  // The averaged weights, by the model's names.
  const nn::ParameterStore& store() const { return average_; }

  // While it lives the model has the averaged weights; then it has its own
  // again, bit by bit. One at a time.
  class Swap {
   public:
    explicit Swap(WeightAverage& average);
    ~Swap();
    Swap(const Swap&) = delete;
    Swap& operator=(const Swap&) = delete;

   private:
    WeightAverage& average_;
  };

  // For checkpoints: the tensors that it consists of, which are its own memory,
  // by "weights.NAME" and "updates". Throws Error during a Swap.
  std::vector<NamedTensor> State();

 private:
  void CheckSettled(const char* op) const;
  void Exchange();

  nn::ParameterStore& weights_;
  nn::ParameterStore average_;
  const WeightAverageOptions options_;
  Tensor updates_;  // a number, float64
  bool swapped_ = false;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_WEIGHT_AVERAGE_H_
