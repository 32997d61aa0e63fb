// The toy model's training step written out by hand for this one model: no
// tape, no tensors, no allocation, every size a constant. It does the same
// arithmetic as the Workload "toy" of models.h; what that one takes longer is
// the price of the framework.
#ifndef WENGERT_BENCHMARKS_STRAIGHT_LINE_H_
#define WENGERT_BENCHMARKS_STRAIGHT_LINE_H_

#include "nn/parameter_store.h"

namespace wengert::benchmarks {

class StraightLineToy {
 public:
  static constexpr int kVocabulary = 12, kLength = 3, kWidth = 12, kHidden = 48;

  // What is trained; gradients and Adam's moments have the same form. Matrices
  // are [in][out], so that a product runs along their rows; `down` is
  // [out][in].
  struct Parameters {
    float words[kVocabulary][kWidth], positions[kLength][kWidth];
    float qkv[kWidth][3 * kWidth], qkv_bias[3 * kWidth];
    float proj[kWidth][kWidth], proj_bias[kWidth];
    float up[kWidth][kHidden], up_bias[kHidden];
    float down[kWidth][kHidden], down_bias[kWidth];
    float gain1[kWidth], bias1[kWidth], gain2[kWidth], bias2[kWidth];
    float out[kWidth][kVocabulary], out_bias[kVocabulary];
  };

  // Starts from the values that the store of MakeWorkload("toy") has now.
  explicit StraightLineToy(const nn::ParameterStore& toy)
      : values_(Values(toy)) {}

  // One training step. Returns the loss before it.
  float Step();

  const Parameters& gradients() const { return gradients_; }  // of that step

  // The values and the gradients that such a store has.
  static Parameters Values(const nn::ParameterStore& toy);
  static Parameters Gradients(const nn::ParameterStore& toy);

 private:
  float ForwardAndBackward();
  void Adam();

  alignas(64) Parameters values_;
  alignas(64) Parameters gradients_ = {}, m_ = {}, v_ = {};
  int n_steps_ = 0;
};

}  // namespace wengert::benchmarks

#endif  // WENGERT_BENCHMARKS_STRAIGHT_LINE_H_
