// The gradient checker: compares the gradients that a tape computes with
// central differences, for any operation, layer or loss, in double.
//
//   EXPECT_TRUE(GradCheck([](auto x) { return MatMul(x[0], x[1]); }, {a, b}));
//
// A failure names the function, the input, the index and both values.
#ifndef WENGERT_AUTOGRAD_GRADCHECK_H_
#define WENGERT_AUTOGRAD_GRADCHECK_H_

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autograd/random.h"
#include "autograd/tensor.h"

namespace wengert {

struct GradCheckOptions {
  std::string name = "GradCheck";             // of the function, for the report
  std::vector<std::string> input_names = {};  // none: "input 0", ...
  // 1: the gradient. 2: also the gradient of the gradient, by the inputs and by
  // the cotangent, and that a recorded pass gives the gradient of a plain one.
  int order = 1;
  // 0: every element by itself, two calls of the function for each. k > 0: k
  // random directions in each input, none of whose elements is 0; a direction
  // that fails is halved until the element is found.
  int directions = 0;
  // An element moves by `step` to either side. Values agree when they differ by
  // no more than atol + rtol times the larger one.
  double step = 1e-5;
  double rtol = 1e-6;
  double atol = 1e-7;
  // Of the cotangent and the directions.
  uint64_t seed = 0;
  // When set, calls run under training tapes and draw from it, each from where
  // it stands at the start, and there it is left.
  Generator* generator = nullptr;
  // Which inputs to differentiate by; empty: all that are float64.
  std::vector<bool> wanted = {};
  // Also asks for the gradients of every proper subset of the inputs (of more
  // than four: each alone, and all but each).
  bool subsets = true;
};

struct GradCheckReport {
  bool ok = true;
  std::string message;  // of the first check that failed
  double worst = 0;     // the largest difference over what was allowed

  explicit operator bool() const { return ok; }
};
std::ostream& operator<<(std::ostream& out, const GradCheckReport& report);

using GradCheckFunction =
    std::function<Tensor(absl::Span<const Tensor> inputs)>;

// Checks the gradient of f (float64, any shape) by `inputs`, for a random
// cotangent: against differences, with each subset of inputs, when something
// else has added to the same gradients before, and, where inputs are
// parameters, as Backward leaves it.
//
// A layer is checked by its input and its parameters: these are moved in place
// and put back, so f may read them where it holds them. Other inputs are
// copied. The same tensor given twice is one variable in two places. f must
// give the same value in every call. Backward runs only if there are
// parameters among the inputs; it puts those back, but leaves a gradient in
// other parameters that f reads.
// Throws Error when an input or the result cannot be checked, and whatever f
// throws.
GradCheckReport GradCheck(const GradCheckFunction& f,
                          absl::Span<const Tensor> inputs,
                          GradCheckOptions options = {});

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_GRADCHECK_H_
