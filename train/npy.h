// NumPy's .npy: one array in a file, as np.save writes it.
//
// A file is "\x93NUMPY", the version (1.0, 2.0 or 3.0), the size of the header
// (2 bytes, from version 2.0 on 4), the header, which is a Python literal, and
// the elements:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
#ifndef WENGERT_TRAIN_NPY_H_
#define WENGERT_TRAIN_NPY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autograd/tensor.h"

namespace wengert::train {

// The array of a file. Its dtype is f4, f8, i4, i8 or b1 (float32, float64,
// int32, int64, bool); big-endian and Fortran order are converted. Errors, of
// one line: "path: what is wrong", any other dtype among them. They cost no
// memory beyond the file's size.
absl::StatusOr<Tensor> LoadNpy(const std::string& path);
// That of a file with these bytes; `path` is for messages.
absl::StatusOr<Tensor> ParseNpy(absl::Span<const uint8_t> bytes,
                                const std::string& path);

// Writes the file whole or leaves what was there: version 1.0, little-endian,
// row-major. Errors: what FileWriter reports.
absl::Status SaveNpy(const std::string& path, const Tensor& x);

// What stands before the elements in such a file; its size is a multiple of 64.
std::string NpyHeader(const Tensor& x);
// The elements as they stand there.
absl::Span<const uint8_t> ElementBytes(const Tensor& x);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_NPY_H_
