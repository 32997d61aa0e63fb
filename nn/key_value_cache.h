// The keys and values that attention has computed already, so that a model
// which makes its tokens one at a time computes each position once.
#ifndef WENGERT_NN_KEY_VALUE_CACHE_H_
#define WENGERT_NN_KEY_VALUE_CACHE_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "autograd/tensor.h"

namespace wengert::nn {

// A plain value that the caller owns: one for each attention layer. Copies are
// independent. For inference: what reads it throws where a tape records.
class KeyValueCache {
 public:
  int64_t length() const { return length_; }
  // [B, capacity, Hkv, D], of which the first length() rows of each sequence
  // are in use; undefined while nothing was appended.
  const Tensor& keys() const { return keys_; }
  const Tensor& values() const { return values_; }

  // Appends k and v [B, T, Hkv, D]. What is appended to an empty cache sets B,
  // Hkv, D and the dtype; throws Error, and appends nothing, where later ones
  // differ.
  // Memory grows geometrically.
  void Append(const Tensor& k, const Tensor& v);
  // Forgets all but the first `length` positions; throws Error where there are
  // fewer.
  void Truncate(int64_t length);
  // Sequence i becomes a copy of what sequence rows[i] was, as beam search
  // wants; there may be more or fewer. Throws Error for a row that is not
  // there, or when nothing was appended.
  void Select(absl::Span<const int64_t> rows);

 private:
  void Detach();

  int64_t length_ = 0;
  Tensor keys_, values_;
};

// Throws Error, which starts with `op`, unless there is a cache for each layer.
void CheckCaches(const char* op, size_t n_caches, size_t n_layers);
// f(), or, when it throws, the caches as they were.
Tensor StepOrRestore(absl::Span<KeyValueCache> caches,
                     absl::FunctionRef<Tensor()> f);

}  // namespace wengert::nn

#endif  // WENGERT_NN_KEY_VALUE_CACHE_H_
