// What stands behind a ParameterStore: the flat memory of its parameters and
// the table of their names. Layers, tapes and optimizers count on it, so it
// outlives the store until the last of them has let go.
#ifndef WENGERT_NN_STORE_STATE_H_
#define WENGERT_NN_STORE_STATE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autograd/parameter.h"
#include "autograd/tensor.h"

namespace wengert::nn {

class ForwardHook;

// A stretch of memory that never moves, with the parameters that lie in it, in
// the order of their making and of their places.
struct Segment {
  Tensor values;     // one dimension
  Tensor gradients;  // parallel to values; undefined before the first Backward
  std::vector<Parameter*> parameters;
  std::vector<int64_t> offsets;  // multiples of 64 bytes
  // Elements up to the last parameter's end and its gap; what lies between
  // parameters is zero, what lies behind is not initialised.
  int64_t used = 0;
};

namespace internal {

class StoreState final : public ParameterOwner {
 public:
  // A name, canonical or tied. Those of a clone are open until a layer takes
  // them up.
  struct Name {
    std::string text;
    Parameter* parameter;
    bool open;

    bool tied() const { return parameter->name != text; }
  };

  StoreState(DType dtype, uint64_t seed) : dtype(dtype), seed(seed) {}
  ~StoreState() override;

  void AllocateGradients() override;

  // Memory for a new parameter; its elements are for the caller to write.
  Parameter* Place(const std::string& name, const Shape& shape, bool open);
  void AddName(const std::string& name, Parameter* parameter, bool open);
  // Null when there is none.
  Name* FindName(const std::string& name);
  // Throws Error, which starts with `op`, when the store has ended or a
  // backward pass is writing into it.
  void CheckUsable(const char* op) const;
  // Likewise when a backward pass threw half-way and left partial gradients.
  void CheckGradients(const char* op) const;

  const DType dtype;
  const uint64_t seed;
  std::vector<Segment> segments;
  std::vector<Parameter*> parameters;  // in the order of their making
  std::vector<Name> names;             // likewise
  std::set<std::string> paths;         // of layers; the text stays in its place
  std::vector<ForwardHook*> hooks;     // in the order of their making

 private:
  std::deque<Parameter> memory_;
  std::map<std::string, size_t> name_index_;
  size_t n_with_gradients_ = 0;
};

// What messages say of two things that differ: "a; b", the first ten, and how
// many more there are, so that a line of another model stays a line to read.
std::string JoinDifferences(absl::Span<const std::string> differences);

}  // namespace internal
}  // namespace wengert::nn

#endif  // WENGERT_NN_STORE_STATE_H_
