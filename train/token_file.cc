#include "train/token_file.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "train/batch_stream.h"

namespace wengert::train {
namespace {

constexpr size_t kHeaderBytes = 1024;

struct HeaderKind {
  int32_t magic;
  int32_t version;
  ElementType type;
};
constexpr HeaderKind kHeaderKinds[] = {{20240520, 1, ElementType::kU16},
                                       {20240801, 7, ElementType::kU32}};

// The kind of header that a file begins with. Its magic number would be no id
// in a file without one; in a text it may stand.
const HeaderKind* FindHeader(absl::Span<const uint8_t> bytes,
                             ElementType type) {
  int32_t magic;
  if (bytes.size() < sizeof(magic) || type == ElementType::kU8) return nullptr;
  std::memcpy(&magic, bytes.data(), sizeof(magic));
  for (const HeaderKind& kind : kHeaderKinds) {
    if (kind.magic == magic) return &kind;
  }
  return nullptr;
}

// What is wrong with the header, or nothing.
std::string FaultOfHeader(absl::Span<const uint8_t> bytes,
                          const HeaderKind& kind, ElementType type) {
  if (bytes.size() < kHeaderBytes) {
    return absl::StrCat("is cut off: the header has ", kHeaderBytes,
                        " bytes, of which ", bytes.size(), " are there");
  }
  int32_t words[3];
  std::memcpy(words, bytes.data(), sizeof(words));
  if (words[1] != kind.version) {
    return absl::StrCat("has a header of version ", words[1], "; wanted ",
                        kind.version);
  }
  if (type != kind.type) {
    return absl::StrCat("has tokens of ", ElementName(kind.type), "; wanted ",
                        ElementName(type));
  }
  const size_t left = bytes.size() - kHeaderBytes;
  const size_t size = ElementSize(type);
  if (words[2] < 0 || words[2] * size != left) {
    return absl::StrCat("has ", words[2], " tokens of ", size,
                        " bytes by its header, and ", left,
                        " bytes behind that");
  }
  return "";
}

template <class T>
int64_t Load(const uint8_t* data, int64_t i) {
  T x;
  std::memcpy(&x, data + i * sizeof(T), sizeof(T));
  return x;
}

}  // namespace

template <class F>
decltype(auto) TokenFile::WithTokens(F f) const {
  switch (type_) {
    case ElementType::kU8:
      return f(uint8_t{});
    case ElementType::kU16:
      return f(uint16_t{});
    case ElementType::kU32:
      return f(uint32_t{});
    default:
      return f(int32_t{});
  }
}

absl::Status TokenFile::Outside(int64_t id, int64_t position) const {
  return absl::InvalidArgumentError(
      absl::StrCat(path_, ": token ", position, " is ", id,
                   ", outside a vocabulary of ", vocabulary_size_));
}

absl::StatusOr<TokenFile> TokenFile::Open(const std::string& path,
                                          ElementType type,
                                          int64_t vocabulary_size) {
  auto mapped = MappedFile::Open(path);
  if (!mapped.ok()) return mapped.status();
  auto file = Parse(mapped->bytes(), path, type, vocabulary_size);
  if (!file.ok()) return file;
  mapped->SetReadAhead(false);  // a shuffled epoch jumps about
  file->mapping_ = *std::move(mapped);
  return file;
}

absl::StatusOr<TokenFile> TokenFile::Parse(absl::Span<const uint8_t> bytes,
                                           const std::string& path,
                                           ElementType type,
                                           int64_t vocabulary_size) {
  if (type != ElementType::kU8 && type != ElementType::kU16 &&
      type != ElementType::kU32 && type != ElementType::kI32) {
    throw Error(absl::StrCat("TokenFile: type ", ElementName(type),
                             ", wanted U8, U16, U32 or I32"));
  }
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", what...));
  };
  if (const HeaderKind* header = FindHeader(bytes, type)) {
    const std::string fault = FaultOfHeader(bytes, *header, type);
    if (!fault.empty()) return error(fault);
    bytes.remove_prefix(kHeaderBytes);
  }
  if (bytes.size() % ElementSize(type) != 0) {
    return error("has ", bytes.size(), " bytes, no whole number of tokens of ",
                 ElementName(type));
  }
  TokenFile file;
  file.path_ = path;
  file.type_ = type;
  file.data_ = bytes.data();
  file.size_ = static_cast<int64_t>(bytes.size() / ElementSize(type));
  file.vocabulary_size_ = vocabulary_size;
  return file;
}

absl::StatusOr<TokenFile::Batch> TokenFile::Blocks(
    absl::Span<const int64_t> indices, int64_t length) const {
  const int64_t n = NumBlocks(size_, length);
  const Shape shape{static_cast<int64_t>(indices.size()), length};
  Batch batch{Tensor::Empty(shape, DType::kInt64),
              Tensor::Empty(shape, DType::kInt64)};
  int64_t* x = batch.x.mutable_data<int64_t>();
  int64_t* y = batch.y.mutable_data<int64_t>();
  for (const int64_t index : indices) {
    if (index < 0 || index >= n) {
      throw Error(absl::StrCat("TokenFile::Blocks: block ", index,
                               ", wanted 0 <= block < ", n));
    }
    const int64_t start = index * length;
    const absl::Status status = WithTokens([&]<class T>(T) {
      for (int64_t i = 0; i <= length; ++i) {
        const int64_t id = Load<T>(data_, start + i);
        if (id < 0 || id >= vocabulary_size_) return Outside(id, start + i);
        if (i < length) x[i] = id;
        if (i > 0) y[i - 1] = id;
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    x += length;
    y += length;
  }
  return batch;
}

absl::Status TokenFile::Check() const {
  if (mapping_) mapping_->SetReadAhead(true);
  const absl::Status status = WithTokens([&]<class T>(T) {
    for (int64_t i = 0; i < size_; ++i) {
      const int64_t id = Load<T>(data_, i);
      if (id < 0 || id >= vocabulary_size_) return Outside(id, i);
    }
    return absl::OkStatus();
  });
  if (mapping_) mapping_->SetReadAhead(false);
  return status;
}

}  // namespace wengert::train
