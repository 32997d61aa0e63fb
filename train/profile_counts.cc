#include "train/profile_counts.h"

#include "absl/strings/string_view.h"

namespace wengert::train::internal {
namespace {

// Somebody else's operation may have the same name: others are passed over.
bool HasRank(const Tensor& x, int rank) {
  return x.defined() && x.rank() == rank;
}

double Size(const Tensor& x, int axis) {
  return static_cast<double>(x.dim(axis));
}

// Pairs of a query and a key in all heads, and the widths of keys and values.
struct AttentionSizes {
  double pairs = 0, d = 0, dv = 0;
};

// `operands` begins with q, k, v, or with qkv.
template <class T>
AttentionSizes SizesOf(absl::string_view op, absl::Span<const T> operands) {
  if (op == "Attention" && operands.size() >= 3) {
    const Tensor &q = operands[0], &k = operands[1], &v = operands[2];
    if (!HasRank(q, 4) || !HasRank(k, 4) || !HasRank(v, 4)) return {};
    return {Size(q, 0) * Size(q, 2) * Size(q, 1) * Size(k, 1), Size(q, 3),
            Size(v, 3)};
  }
  if (op == "PackedAttention" && !operands.empty()) {
    const Tensor& qkv = operands[0];  // [B, T, 3, H, D]
    if (!HasRank(qkv, 5)) return {};
    return {Size(qkv, 0) * Size(qkv, 3) * Size(qkv, 1) * Size(qkv, 1),
            Size(qkv, 4), Size(qkv, 4)};
  }
  return {};
}

// Of one product x Wᵀ, where y is the result or has its shape.
template <class T>
double LinearFlops(absl::Span<const T> operands, const Tensor& y) {
  if (operands.size() < 2) return 0;
  const Tensor& weight = operands[1];  // [out, in]
  if (!HasRank(weight, 2)) return 0;
  return 2 * static_cast<double>(y.size()) * Size(weight, 1);
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
  if (IsLinear(e.op)) return LinearFlops(e.inputs, e.output);
  const Tensor& y = e.output;
  if (absl::string_view(e.op) == "MatMul" && e.inputs.size() == 2 &&
      y.rank() >= 2 && y.size() > 0) {
    const Tensor& a = e.inputs[0];  // [.., m, k] or [.., k, m]; y [.., m, n]
    if (!a.defined() || a.rank() < 2) return 0;
    return 2 * static_cast<double>(y.size()) * Size(a, -1) * Size(a, -2) /
           Size(y, -2);
  }
  const AttentionSizes s = SizesOf(e.op, e.inputs);
  return 2 * s.pairs * (s.d + s.dv);
}

double Flops(const RuleEvent& e) {
  if (e.composed) return 0;
  if (IsLinear(e.op) && e.wanted.size() == 3) {
    return LinearFlops(e.saved, e.dy) *
           ((e.wanted[0] != nullptr) + (e.wanted[1] != nullptr));
  }
  const AttentionSizes s = SizesOf(e.op, e.saved);
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
