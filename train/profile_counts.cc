#include "train/profile_counts.h"

#include "absl/strings/string_view.h"

namespace wengert::train::internal {
namespace {

// Multiply-adds per pair of a query and a key; q, k [.., H, D], v [.., H, Dv].
struct AttentionSizes {
  double pairs = 0, d = 0, dv = 0;
};

AttentionSizes SizesOf(const Tensor& q, const Tensor& k, const Tensor& v) {
  const auto n = [](const Tensor& x, int axis) {
    return static_cast<double>(x.dim(axis));
  };
  return {n(q, 0) * n(q, 2) * n(q, 1) * n(k, 1), n(q, 3), n(v, 3)};
}

AttentionSizes SizesOf(const Tensor& qkv) {  // [B, T, 3, H, D]
  const auto n = [&](int axis) { return static_cast<double>(qkv.dim(axis)); };
  return {n(0) * n(3) * n(1) * n(1), n(4), n(4)};
}

double BytesOf(const Shape& shape, DType dtype) {
  return static_cast<double>(shape.size()) *
         static_cast<double>(ByteSize(dtype));
}

double BytesOf(const Tensor& x) {
  return x.defined() ? BytesOf(x.shape(), x.dtype()) : 0;
}

bool LooksUp(absl::string_view op) {
  return op == "Embedding" || op == "Gather";
}

bool IsLinear(absl::string_view op) {
  return op == "Linear" || op == "ActivatedLinear";
}

}  // namespace

double Flops(const OperationEvent& e) {
  const absl::string_view op = e.op;
  const auto outputs = [&] { return static_cast<double>(e.output.size()); };
  if (IsLinear(op) && e.inputs.size() == 3) {
    return 2 * outputs() * static_cast<double>(e.inputs[0].get().dim(-1));
  }
  if (op == "MatMul" && e.inputs.size() == 2 && e.output.size() > 0) {
    // The left operand is [.., m, k] or [.., k, m].
    const Tensor& a = e.inputs[0];
    const int64_t k = a.dim(-1) * a.dim(-2) / e.output.dim(-2);
    return 2 * outputs() * static_cast<double>(k);
  }
  AttentionSizes s;
  if (op == "Attention" && e.inputs.size() == 3) {
    s = SizesOf(e.inputs[0], e.inputs[1], e.inputs[2]);
  } else if (op == "PackedAttention" && e.inputs.size() == 1) {
    s = SizesOf(e.inputs[0].get());
  }
  return 2 * s.pairs * (s.d + s.dv);
}

double Flops(const RuleEvent& e) {
  if (e.composed) return 0;
  const absl::string_view op = e.op;
  if (IsLinear(op) && e.wanted.size() == 3) {
    const double product = 2 * static_cast<double>(e.dy.size()) *
                           static_cast<double>(e.saved[0].dim(-1));
    return product * ((e.wanted[0] != nullptr) + (e.wanted[1] != nullptr));
  }
  AttentionSizes s;
  if (op == "Attention" && e.wanted.size() == 3) {
    s = SizesOf(e.saved[0], e.saved[1], e.saved[2]);
  } else if (op == "PackedAttention" && e.wanted.size() == 1) {
    s = SizesOf(e.saved[0]);
  }
  // Scores again, dq, dk; dp, dv.
  return 2 * s.pairs * (3 * s.d + 2 * s.dv);
}

double Bytes(const OperationEvent& e) {
  if (e.output.impl()->storage) return 0;  // shares its operand's memory
  double bytes = BytesOf(e.output);
  if (LooksUp(e.op)) return 2 * bytes;
  for (const Tensor& x : e.inputs) bytes += BytesOf(x);
  return bytes;
}

double Bytes(const RuleEvent& e) {
  if (absl::string_view(e.op) == "Reshape") return 0;
  double bytes = BytesOf(e.dy);
  if (LooksUp(e.op)) return 3 * bytes;  // rows are read, added to and written
  for (const Tensor& x : e.saved) bytes += BytesOf(x);
  for (const Shape* s : e.wanted) {
    if (s) bytes += BytesOf(*s, e.dy.dtype());
  }
  return bytes;
}

}  // namespace wengert::train::internal
