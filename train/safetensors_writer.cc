// Writing of safetensors files.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "train/file_writer.h"
#include "train/half.h"
#include "train/safetensors.h"
#include "train/safetensors_header.h"

namespace wengert::train {
namespace {

// Rounds x to `type` and writes it piece by piece.
template <class T>
void WriteRounded(absl::Span<const T> x, ElementType type, FileWriter& file) {
  const auto write = [&]<class To>(To, auto round) {
    std::vector<To> piece(std::min<size_t>(x.size(), 1 << 14));
    while (!x.empty()) {
      const size_t n = std::min(piece.size(), x.size());
      std::transform(x.begin(), x.begin() + n, piece.begin(), round);
      file.Write(piece.data(), n * sizeof(To));
      x.remove_prefix(n);
    }
  };
  switch (type) {
    case ElementType::kF16:
      return write(uint16_t{}, ToFloat16);
    case ElementType::kBF16:
      return write(uint16_t{}, ToBfloat16);
    case ElementType::kF32:
      return write(float{}, [](T v) { return static_cast<float>(v); });
    default:
      return write(double{}, [](T v) { return static_cast<double>(v); });
  }
}

}  // namespace

absl::Status WriteSafetensors(const std::string& path,
                              absl::Span<const NamedTensor> tensors,
                              const SafetensorsFile::Metadata& metadata,
                              std::optional<ElementType> float_type) {
  if (float_type && !IsFloat(*float_type)) {
    throw Error(absl::StrCat("WriteSafetensors: float_type is ",
                             ElementName(*float_type),
                             "; wanted F16, BF16, F32 or F64"));
  }
  const auto stored_as = [&](const NamedTensor& x) {
    const DType dtype = x.tensor.dtype();
    return float_type && IsFloat(dtype) ? *float_type : StoredAs(dtype);
  };
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& x : tensors) order.push_back(&x);
  std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) {
    return ElementSize(stored_as(*a)) > ElementSize(stored_as(*b));
  });
  internal::SafetensorsHeader header{metadata, {}};
  uint64_t at = 0;
  for (const NamedTensor* x : order) {
    const ElementType type = stored_as(*x);
    const absl::Span<const int64_t> dims = x->tensor.shape().dims();
    const uint64_t end = at + x->tensor.size() * ElementSize(type);
    header.entries.push_back(
        {x->name, type, {dims.begin(), dims.end()}, at, end});
    at = end;
  }
  const auto json = internal::PrintHeader(header);
  if (!json.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot be written: ", json.status().message()));
  }
  const uint64_t header_size = json->size();
  FileWriter file(path);
  file.Write(&header_size, sizeof(header_size));
  file.Write(json->data(), json->size());
  for (const NamedTensor* x : order) {
    const DType dtype = x->tensor.dtype();
    const ElementType type = stored_as(*x);
    if (type == StoredAs(dtype)) {
      file.Write(x->tensor.impl()->data, x->tensor.size() * ByteSize(dtype));
    } else {
      WithFloat(dtype, [&]<class T>(T) {
        WriteRounded(x->tensor.span<T>(), type, file);
      });
    }
  }
  return file.Commit();
}

}  // namespace wengert::train
