#include "nn/key_value_cache.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::nn {
namespace {

constexpr int64_t kFirstCapacity = 16;

// Copies the first `length` rows of sequence rows[i] of `from` [B, T, ...] to
// sequence i of `to`, behind its row `at`.
template <class Rows>
void CopySequences(const Tensor& from, const Rows& rows, int64_t length,
                   int64_t at, Tensor& to) {
  if (from.size() == 0) return;
  const int64_t width = from.dim(2) * from.dim(3);
  WithFloat(from.dtype(), [&]<class T>(T) {
    const T* x = from.data<T>();
    T* y = to.mutable_data<T>() + at * width;
    for (int64_t i = 0; i < to.dim(0); ++i) {
      std::copy_n(x + rows(i) * from.dim(1) * width, length * width,
                  y + i * to.dim(1) * width);
    }
  });
}

Tensor Room(const Tensor& like, int64_t batch, int64_t capacity) {
  return Tensor::Empty({batch, capacity, like.dim(2), like.dim(3)},
                       like.dtype());
}

int64_t Same(int64_t i) { return i; }

}  // namespace

void KeyValueCache::Append(const Tensor& k, const Tensor& v) {
  const bool sound = k.rank() == 4 && k.shape() == v.shape() &&
                     k.dtype() == v.dtype() && IsFloat(k.dtype());
  const bool fits = sound && keys_.defined() && k.dtype() == keys_.dtype() &&
                    k.dim(0) == keys_.dim(0) && k.dim(2) == keys_.dim(2) &&
                    k.dim(3) == keys_.dim(3);
  if (!sound || (!fits && length_ > 0)) {
    throw Error(absl::StrCat(
        "KeyValueCache::Append: k ", Describe(k), ", v ", Describe(v),
        " to a cache of ", length_, " positions ", Describe(keys_),
        "; wanted k and v [B, T, Hkv, D], with the cache's B, Hkv and D"));
  }
  if (!fits) keys_ = values_ = Tensor();
  const int64_t length = length_ + k.dim(1);
  const int64_t capacity = keys_.defined() ? keys_.dim(1) : 0;
  // Memory that a copy of this cache sees too is not written to.
  const bool shared = keys_.defined() && !(keys_.unique() && values_.unique());
  if (!keys_.defined() || length > capacity || shared) {
    const int64_t room = std::max(
        {length, length > capacity ? 2 * capacity : capacity, kFirstCapacity});
    Tensor keys = Room(k, k.dim(0), room), values = Room(v, k.dim(0), room);
    if (keys_.defined()) {
      CopySequences(keys_, Same, length_, 0, keys);
      CopySequences(values_, Same, length_, 0, values);
    }
    keys_ = keys;
    values_ = values;
  }
  CopySequences(k, Same, k.dim(1), length_, keys_);
  CopySequences(v, Same, v.dim(1), length_, values_);
  length_ = length;
}

void KeyValueCache::Truncate(int64_t length) {
  if (length < 0 || length > length_) {
    throw Error(absl::StrCat("KeyValueCache::Truncate: to ", length,
                             " positions; wanted 0 to ", length_));
  }
  length_ = length;
}

void KeyValueCache::Select(absl::Span<const int64_t> rows) {
  const int64_t batch = keys_.defined() ? keys_.dim(0) : 0;
  for (const int64_t row : rows) {
    if (row < 0 || row >= batch) {
      throw Error(absl::StrCat("KeyValueCache::Select: row ", row, " of ",
                               Describe(keys_),
                               "; wanted 0 or more and less "
                               "than ",
                               batch));
    }
  }
  const auto n = static_cast<int64_t>(rows.size());
  bool same = n == batch;
  for (int64_t i = 0; i < n; ++i) same = same && rows[i] == i;
  if (same) return;
  Tensor keys = Room(keys_, n, keys_.dim(1));
  Tensor values = Room(values_, n, values_.dim(1));
  const auto row = [&](int64_t i) { return rows[i]; };
  CopySequences(keys_, row, length_, 0, keys);
  CopySequences(values_, row, length_, 0, values);
  keys_ = keys;
  values_ = values;
}

void CheckCaches(const char* op, size_t n_caches, size_t n_layers) {
  if (n_caches == n_layers) return;
  throw Error(absl::StrCat(op, ": ", n_caches, " caches for ", n_layers,
                           " layers; Start makes them"));
}

Tensor StepOrRestore(absl::Span<KeyValueCache> caches,
                     absl::FunctionRef<Tensor()> f) {
  std::vector<int64_t> lengths;
  for (const KeyValueCache& cache : caches) lengths.push_back(cache.length());
  try {
    return f();
  } catch (...) {
    for (size_t i = 0; i < caches.size(); ++i) caches[i].Truncate(lengths[i]);
    throw;
  }
}

}  // namespace wengert::nn
