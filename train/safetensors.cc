#include "train/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/error.h"
#include "train/array_bytes.h"
#include "train/half.h"
#include "train/safetensors_header.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

static_assert(std::endian::native == std::endian::little);

struct ElementInfo {
  const char* name;
  size_t size;
};
constexpr ElementInfo kElements[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
    {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
    {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};

// What is wrong with a tensor whose bytes should begin at `at`, of `size`; or
// nothing. `before` is the tensor that ends there, null for the first.
std::string FaultOf(const internal::HeaderEntry& entry, uint64_t at,
                    const internal::HeaderEntry* before, uint64_t size) {
  const std::string offsets =
      absl::StrCat("[", entry.begin, ", ", entry.end, "]");
  if (entry.end < entry.begin) {
    return absl::StrCat("its data_offsets ", offsets, " end before they begin");
  }
  if (entry.begin != at) {
    return absl::StrCat(
        "its data_offsets ", offsets,
        entry.begin < at ? " overlap those of " : " leave a gap behind ",
        before ? Quoted(before->name) : "the header");
  }
  const std::optional<uint64_t> bytes =
      internal::ArrayBytes(ElementSize(entry.type), entry.dims);
  const std::string what = absl::StrCat(ElementName(entry.type), " [",
                                        absl::StrJoin(entry.dims, ", "), "]");
  if (!bytes) {
    return absl::StrCat("it is ", what, ", more bytes than 64 bits can count");
  }
  if (*bytes != entry.end - entry.begin) {
    return absl::StrCat("it is ", what, ", which takes ", *bytes,
                        " bytes; its data_offsets are ", offsets);
  }
  if (entry.end > size) {
    return absl::StrCat("its data_offsets ", offsets,
                        " go beyond the end of the file, which holds ", size,
                        " bytes of data");
  }
  return "";
}

template <class From, class To, class F>
void Convert(absl::Span<const uint8_t> from, void* to, F f) {
  const size_t n = from.size() / sizeof(From);
  for (size_t i = 0; i < n; ++i) {
    From x;
    std::memcpy(&x, from.data() + i * sizeof(From), sizeof(From));
    static_cast<To*>(to)[i] = static_cast<To>(f(x));
  }
}

}  // namespace

const char* ElementName(ElementType type) {
  return kElements[static_cast<int>(type)].name;
}

size_t ElementSize(ElementType type) {
  return kElements[static_cast<int>(type)].size;
}

bool IsFloat(ElementType type) {
  return type == ElementType::kF16 || type == ElementType::kBF16 ||
         type == ElementType::kF32 || type == ElementType::kF64;
}

std::optional<ElementType> ElementTypeOf(absl::string_view name) {
  for (size_t i = 0; i < std::size(kElements); ++i) {
    if (name == kElements[i].name) return static_cast<ElementType>(i);
  }
  return {};
}

ElementType StoredAs(DType dtype) {
  constexpr ElementType kStored[] = {ElementType::kF32, ElementType::kF64,
                                     ElementType::kI32, ElementType::kI64,
                                     ElementType::kBool};
  return kStored[static_cast<int>(dtype)];
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  auto mapped = MappedFile::Open(path);
  if (!mapped.ok()) return mapped.status();
  auto file = Parse(mapped->bytes(), path);
  if (file.ok()) file->mapping_ = *std::move(mapped);
  return file;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Parse(
    absl::Span<const uint8_t> bytes, const std::string& path) {
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", what...));
  };
  uint64_t header_size;
  if (bytes.size() < sizeof(header_size)) {
    return error("is no safetensors file: it has ", bytes.size(), " bytes");
  }
  std::memcpy(&header_size, bytes.data(), sizeof(header_size));
  bytes.remove_prefix(sizeof(header_size));
  if (header_size > internal::kMaxHeaderSize) {
    return error("is no safetensors file: its header would have ", header_size,
                 " bytes; wanted at most ", internal::kMaxHeaderSize);
  }
  if (header_size > bytes.size()) {
    return error("is cut off: the header has ", header_size,
                 " bytes, of which ", bytes.size(), " are there");
  }
  internal::SafetensorsHeader header;
  const absl::Status status = internal::ParseHeader(
      {reinterpret_cast<const char*>(bytes.data()), header_size}, header);
  if (!status.ok()) return error(status.message());
  bytes.remove_prefix(header_size);

  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const auto& a, const auto& b) {
                     return std::pair(a.begin, a.end) <
                            std::pair(b.begin, b.end);
                   });
  SafetensorsFile file;
  file.path_ = path;
  file.metadata_ = std::move(header.metadata);
  file.entries_.reserve(header.entries.size());
  uint64_t at = 0;
  const internal::HeaderEntry* before = nullptr;
  for (const internal::HeaderEntry& entry : header.entries) {
    const std::string fault = FaultOf(entry, at, before, bytes.size());
    if (!fault.empty()) {
      return error("tensor ", Quoted(entry.name), ": ", fault);
    }
    file.entries_.push_back({entry.name, entry.type, Shape(entry.dims),
                             bytes.subspan(at, entry.end - at)});
    at = entry.end;
    before = &entry;
  }
  if (at != bytes.size()) {
    return error("the last tensor ends at byte ", at,
                 " of the data, which has ", bytes.size());
  }
  for (size_t i = 0; i < file.entries_.size(); ++i) {
    file.index_[file.entries_[i].name] = i;
  }
  return file;
}

const SafetensorsFile::Entry* SafetensorsFile::Find(
    absl::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

bool Converts(ElementType type, DType dtype) {
  return type == StoredAs(dtype) || (IsFloat(type) && IsFloat(dtype));
}

bool FitsExactly(ElementType type, DType dtype) {
  return Converts(type, dtype) &&
         (type != ElementType::kF64 || dtype == DType::kFloat64);
}

void CopyElements(const SafetensorsFile::Entry& from, DType dtype, void* to) {
  if (!Converts(from.type, dtype)) {
    throw Error(absl::StrCat("CopyElements: ", Quoted(from.name), " is ",
                             ElementName(from.type),
                             "; wanted a type that converts to ", Name(dtype)));
  }
  if (dtype == DType::kBool) {
    return Convert<uint8_t, bool>(from.bytes, to, [](uint8_t x) { return x; });
  }
  if (from.type == StoredAs(dtype)) {
    if (!from.bytes.empty()) {
      std::memcpy(to, from.bytes.data(), from.bytes.size());
    }
    return;
  }
  WithFloat(dtype, [&]<class T>(T) {
    switch (from.type) {
      case ElementType::kF16:
        return Convert<uint16_t, T>(from.bytes, to, FromFloat16);
      case ElementType::kBF16:
        return Convert<uint16_t, T>(from.bytes, to, FromBfloat16);
      case ElementType::kF32:
        return Convert<float, T>(from.bytes, to, [](float x) { return x; });
      default:
        return Convert<double, T>(from.bytes, to, [](double x) { return x; });
    }
  });
}

}  // namespace wengert::train
