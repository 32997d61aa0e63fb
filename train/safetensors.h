// The safetensors format: named arrays in one file, which Python's safetensors
// package and most model hubs write too.
//
// A file is the size of its header (8 bytes, little-endian), the header, which
// is JSON, and the arrays' bytes, row-major and little-endian, without a gap:
//   {"__metadata__": {"format": "pt"},
//    "weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
#ifndef WENGERT_TRAIN_SAFETENSORS_H_
#define WENGERT_TRAIN_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autograd/shape.h"
#include "autograd/tensor.h"
#include "train/mapped_file.h"

namespace wengert::train {

// Element types, in the order of the names that ElementName gives.
enum class ElementType : uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kI64,
  kU64,
  kF64,
};

// "BF16"; nullopt for a name that is none of them.
const char* ElementName(ElementType type);
std::optional<ElementType> ElementTypeOf(absl::string_view name);
size_t ElementSize(ElementType type);  // bytes
// Whether it converts to and from float and double.
bool IsFloat(ElementType type);
// What a tensor of this dtype is stored as.
ElementType StoredAs(DType dtype);

// A file that is mapped into memory and known to be whole: all sizes and places
// fit each other and the file.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    ElementType type;
    Shape shape;
    absl::Span<const uint8_t> bytes;  // aligned to nothing
  };
  using Metadata = std::map<std::string, std::string>;

  SafetensorsFile(SafetensorsFile&&) = default;
  SafetensorsFile& operator=(SafetensorsFile&&) = default;

  // The errors are of one line: "path: what is wrong, where". They cost no
  // memory beyond the header that is there.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);
  // A file's bytes, which must outlive the result; `path` is for messages.
  static absl::StatusOr<SafetensorsFile> Parse(absl::Span<const uint8_t> bytes,
                                               const std::string& path);

  const std::string& path() const { return path_; }
  // In the order of their bytes.
  absl::Span<const Entry> entries() const { return entries_; }
  // Null when there is none.
  const Entry* Find(absl::string_view name) const;
  const Metadata& metadata() const { return metadata_; }

 private:
  SafetensorsFile() = default;

  std::string path_;
  std::optional<MappedFile> mapping_;  // none: somebody else's memory
  std::vector<Entry> entries_;
  std::map<absl::string_view, size_t> index_;
  Metadata metadata_;
};

// Whether each value of `type` is one of the other: F16 is one of float64, and
// F64 is none of float32.
bool FitsExactly(ElementType type, DType dtype);
// Whether CopyElements can: both are floats, or one is the other's stored form.
bool Converts(ElementType type, DType dtype);
// Writes the elements to `to`, rounded to the nearest where they do not fit
// exactly. A byte of BOOL that is not 0 is true. Throws Error unless the type
// converts.
void CopyElements(const SafetensorsFile::Entry& from, DType dtype, void* to);

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Writes the file whole or leaves what was there. Tensors stand in the order
// given, those with larger elements first, so that each is aligned. Floats are
// stored as `float_type`, rounded to the nearest even where they must be, or
// else as they are. Needs no memory for a copy. Errors: the same name twice,
// text that is not UTF-8, a header that no reader accepts, and what FileWriter
// reports.
absl::Status WriteSafetensors(const std::string& path,
                              absl::Span<const NamedTensor> tensors,
                              const SafetensorsFile::Metadata& metadata = {},
                              std::optional<ElementType> float_type = {});

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_SAFETENSORS_H_
