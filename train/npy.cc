#include "train/npy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "autograd/error.h"
#include "train/array_bytes.h"
#include "train/file_writer.h"
#include "train/mapped_file.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;
constexpr int64_t kMaxRank = 64;  // NumPy's

const char* DescrOf(DType dtype) {
  constexpr const char* kDescr[] = {"<f4", "<f8", "<i4", "<i8", "|b1"};
  return kDescr[static_cast<int>(dtype)];
}

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Reads the Python literal of a header, of the form that NumPy writes: a dict
// of the three keys in any order.
class HeaderReader {
 public:
  explicit HeaderReader(absl::string_view text) : rest_(text) {}

  // What is wrong, or nothing.
  std::string Read(Header& header) {
    if (!Take("{")) return "wanted a dict";
    bool seen[3] = {};
    while (!Take("}")) {
      std::string key;
      if (!TakeString(key) || !Take(":")) return "wanted keys and values";
      constexpr const char* kKeys[] = {"descr", "fortran_order", "shape"};
      const auto* const found =
          std::find(std::begin(kKeys), std::end(kKeys), key);
      if (found == std::end(kKeys)) {
        return absl::StrCat("there is no key ", Quoted(key));
      }
      if (std::exchange(seen[found - kKeys], true)) {
        return absl::StrCat("the key ", key, " stands twice");
      }
      const bool good = key == "descr"   ? TakeString(header.descr)
                        : key == "shape" ? TakeShape(header.shape)
                                         : TakeBool(header.fortran_order);
      if (!good) {
        return absl::StrCat("the value of ", key, " is none that can be read");
      }
      if (Take(",")) continue;
      if (!Take("}")) return "wanted , or }";
      break;
    }
    for (const bool s : seen) {
      if (!s) return "wanted descr, fortran_order and shape";
    }
    if (!absl::StripAsciiWhitespace(rest_).empty()) {
      return "text stands behind the dict";
    }
    return "";
  }

 private:
  bool Take(absl::string_view token) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    return absl::ConsumePrefix(&rest_, token);
  }

  bool TakeString(std::string& text) {
    const char* const quote = Take("'") ? "'" : Take("\"") ? "\"" : nullptr;
    if (quote == nullptr) return false;
    const size_t end = rest_.find(quote);
    if (end == rest_.npos) return false;
    text = std::string(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool TakeBool(bool& value) {
    value = Take("True");
    return value || Take("False");
  }

  bool TakeShape(std::vector<int64_t>& shape) {
    if (!Take("(")) return false;
    while (!Take(")")) {
      size_t digits = 0;
      rest_ = absl::StripLeadingAsciiWhitespace(rest_);
      while (digits < rest_.size() && absl::ascii_isdigit(rest_[digits])) {
        ++digits;
      }
      int64_t d;
      if (!absl::SimpleAtoi(rest_.substr(0, digits), &d)) return false;
      rest_.remove_prefix(digits);
      shape.push_back(d);
      if (!Take(",")) return shape.size() > 1 && Take(")");  // (3) is a number
    }
    return true;
  }

  absl::string_view rest_;
};

// nullopt for one that a tensor cannot have.
std::optional<DType> DTypeOf(absl::string_view descr) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32,
                            DType::kInt64, DType::kBool}) {
    const absl::string_view known = DescrOf(dtype);
    if (descr.size() != 3 || descr.substr(1) != known.substr(1)) continue;
    if (absl::StrContains(dtype == DType::kBool ? "|<>=" : "<>=", descr[0])) {
      return dtype;
    }
  }
  return std::nullopt;
}

// Copies elements of `size` bytes, turned around where they are big-endian.
void CopyElements(absl::Span<const uint8_t> from, size_t size, bool swap,
                  uint8_t* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
  if (!swap) return;
  for (size_t i = 0; i < from.size(); i += size) {
    std::reverse(to + i, to + i + size);
  }
}

// Puts elements that stand in Fortran order, the first index fastest, into
// row-major order.
void FromFortran(const Shape& shape, size_t size, const uint8_t* from,
                 uint8_t* to) {
  std::vector<int64_t> index(shape.rank(), 0), stride(shape.rank(), 1);
  for (int k = 1; k < shape.rank(); ++k) {
    stride[k] = stride[k - 1] * shape.dim(k - 1);
  }
  int64_t at = 0;
  for (int64_t i = 0; i < shape.size(); ++i) {
    std::memcpy(to + i * size, from + at * size, size);
    for (int k = shape.rank() - 1; k >= 0; --k) {
      at += stride[k];
      if (++index[k] < shape.dim(k)) break;
      at -= index[k] * stride[k];
      index[k] = 0;
    }
  }
}

}  // namespace

absl::StatusOr<Tensor> LoadNpy(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  return ParseNpy(file->bytes(), path);
}

absl::StatusOr<Tensor> ParseNpy(absl::Span<const uint8_t> bytes,
                                const std::string& path) {
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", what...));
  };
  if (bytes.size() < kMagicSize + 2 ||
      std::memcmp(bytes.data(), kMagic, kMagicSize) != 0) {
    return error("is no .npy file: it does not begin with \\x93NUMPY");
  }
  const int major = bytes[kMagicSize], minor = bytes[kMagicSize + 1];
  if (major < 1 || major > 3 || minor != 0) {
    return error("is of version ", major, ".", minor,
                 "; wanted 1.0, 2.0 or 3.0");
  }
  bytes.remove_prefix(kMagicSize + 2);
  const size_t length_size = major == 1 ? 2 : 4;
  uint32_t length = 0;
  if (bytes.size() < length_size) return error("is cut off in the header");
  std::memcpy(&length, bytes.data(), length_size);
  bytes.remove_prefix(length_size);
  if (length > bytes.size()) {
    return error("is cut off: the header has ", length, " bytes, of which ",
                 bytes.size(), " are there");
  }
  Header header;
  const std::string fault =
      HeaderReader({reinterpret_cast<const char*>(bytes.data()), length})
          .Read(header);
  if (!fault.empty()) return error("the header: ", fault);
  bytes.remove_prefix(length);

  const std::optional<DType> dtype = DTypeOf(header.descr);
  if (!dtype) {
    return error("the dtype is ", Quoted(header.descr),
                 "; wanted f4, f8, i4, i8 or b1");
  }
  const std::string shape_text =
      absl::StrCat("[", absl::StrJoin(header.shape, ", "), "]");
  if (header.shape.size() > static_cast<size_t>(kMaxRank)) {
    return error("the array has ", header.shape.size(),
                 " dimensions; wanted at most ", kMaxRank);
  }
  const size_t element = ByteSize(*dtype);
  const std::optional<uint64_t> size =
      internal::ArrayBytes(element, header.shape);
  if (!size || *size != bytes.size()) {
    return error("an array ", shape_text, " of ", Name(*dtype), " takes ",
                 size ? absl::StrCat(*size) : "more than 2^63",
                 " bytes; there are ", bytes.size());
  }
  const Tensor x = Tensor::Empty(Shape(header.shape), *dtype);
  auto* const to = static_cast<uint8_t*>(x.impl()->data);
  if (*dtype == DType::kBool) {  // a byte that is not 0 is true
    std::transform(bytes.begin(), bytes.end(), to,
                   [](uint8_t b) { return uint8_t{b != 0}; });
  } else {
    CopyElements(bytes, element, header.descr[0] == '>', to);
  }
  if (!header.fortran_order || x.rank() < 2) return x;
  const Tensor y = Tensor::Empty(x.shape(), *dtype);
  FromFortran(x.shape(), element, to, static_cast<uint8_t*>(y.impl()->data));
  return y;
}

std::string NpyHeader(const Tensor& x) {
  const auto dims = x.shape().dims();
  std::string text = absl::StrCat("{'descr': '", DescrOf(x.dtype()),
                                  "', 'fortran_order': False, 'shape': (",
                                  absl::StrJoin(dims, ", "),
                                  dims.size() == 1 ? ",), }" : "), }");
  constexpr size_t kPrefix = kMagicSize + 4;
  const size_t size = (kPrefix + text.size() + 1 + 63) / 64 * 64;
  text.resize(size - kPrefix - 1, ' ');
  const auto length = static_cast<uint16_t>(text.size() + 1);
  const char prefix[] = {'\x01', '\x00', static_cast<char>(length & 0xFF),
                         static_cast<char>(length >> 8)};
  return absl::StrCat(absl::string_view(kMagic, kMagicSize),
                      absl::string_view(prefix, sizeof(prefix)), text, "\n");
}

absl::Span<const uint8_t> ElementBytes(const Tensor& x) {
  return {static_cast<const uint8_t*>(x.impl()->data),
          static_cast<size_t>(x.size()) * ByteSize(x.dtype())};
}

absl::Status SaveNpy(const std::string& path, const Tensor& x) {
  FileWriter file(path);
  const std::string header = NpyHeader(x);
  file.Write(header.data(), header.size());
  const absl::Span<const uint8_t> bytes = ElementBytes(x);
  file.Write(bytes.data(), bytes.size());
  return file.Commit();
}

}  // namespace wengert::train
