// What a tape is made of: records, slots and the bump memory they live in.
// Users of the library read tape.h.
#ifndef WENGERT_AUTOGRAD_TAPE_RECORDS_H_
#define WENGERT_AUTOGRAD_TAPE_RECORDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autograd/parallel.h"
#include "autograd/parameter.h"
#include "autograd/storage.h"
#include "autograd/tensor.h"

namespace wengert {

class GradientSink;
class Tape;
using TensorRef = std::reference_wrapper<const Tensor>;

namespace internal {

// A vector in pooled memory, so that a new tape each step costs no malloc.
template <class T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(PoolAllocate(n * sizeof(T))); }
  void deallocate(T* p, size_t) { PoolFree(p); }
  friend bool operator==(PoolAllocator, PoolAllocator) { return true; }
};
template <class T>
using PoolVector = std::vector<T, PoolAllocator<T>>;

// Memory that is handed out upwards and taken back by marks.
class Bump {
 public:
  struct Mark {
    size_t block = 0, used = 0;
  };
  ~Bump();
  // 16-byte aligned.
  void* Allocate(size_t bytes);
  Mark mark() const { return mark_; }
  void Rewind(Mark mark);

 private:
  struct Block {
    char* data;
    size_t size;
  };
  PoolVector<Block> blocks_;
  Mark mark_;
};

// How to handle the closure of one kind of record.
struct ClosureType {
  size_t size;
  void (*move)(void* to, void* from);
  void (*destroy)(void* closure);
  // Null when the record has only a composition (a checkpoint).
  void (*rule)(void* closure, GradientSink& sink, const Tensor* saved);
  // Null for a primitive, whose rule is written with operations.
  Tensor (*compose)(void* closure, const Tensor* saved);
};

// What an operation hands to the tape.
struct NewRecord {
  const char* op;
  absl::Span<const TensorRef> inputs;
  absl::Span<const TensorRef> saved;
  const ClosureType* type;
  void* closure;  // moved from
};

// An index into the tape's slots, or one of these.
enum : int32_t {
  kConstant = -1,  // nothing to differentiate
  kGone = -2,      // recorded by this tape, but emptied since
};

struct Record {
  const char* op;
  const std::string* scope;  // the layer's path, or null
  const ClosureType* type;   // null once released
  int32_t output;
  int32_t n_inputs;
  int32_t n_saved;
  int32_t* inputs;
  Tensor* saved;       // parameters are borrowed: held without a count
  uint64_t* versions;  // of the saved tensors when they were saved
  void* closure;
};

// Where the gradient of one recorded, watched or trained tensor gathers.
struct Slot {
  Slot(const Shape& s, DType t) : dtype(t), shape(s) {}

  DType dtype;
  bool is_leaf = false;
  bool reach = false;  // a wanted gradient lies at or before it
  bool live = false;   // the differentiated value depends on it
  bool keep = false;   // Gradient was asked for it
  bool gone = false;   // its record was a passing one (of a checkpoint)
  int32_t hook = -1;
  Parameter* parameter = nullptr;
  Tensor leaf;  // keeps a watched tensor alive
  Tensor grad;
  Shape shape;
};

// How often the memory of a tensor was written to; 0 for one left out.
inline uint64_t VersionOf(const TensorImpl* p) {
  return p ? p->versioned->version.load(std::memory_order_relaxed) : 0;
}

// A cell of the table from leaves to slots.
struct LeafCell {
  const TensorImpl* tensor = nullptr;
  int32_t slot = 0;
};

// One live tape in its thread's chain. Outlives a tape that ends on another
// thread, so that the chain never dangles.
struct TapeLink {
  std::atomic<Tape*> tape;
  TapeLink* previous;
};

}  // namespace internal
}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_TAPE_RECORDS_H_
