// Tables of numbers from CSV files: a header of names, then rows.
//
//   x,y,"a name, quoted"
//   1,2.5,-1e-3
//
// Fields are quoted as RFC 4180 says. Lines end in \n or \r\n, a byte-order
// mark may stand first and blank lines last. A number is decimal, and is
// rounded to the nearest: 1e-999 is 0, and 1e999 is an error. It may stand in
// quotes and between spaces. nan, inf, infinity and these with a minus (but not
// -nan), in either case, are numbers too; an empty field is none.
#ifndef WENGERT_TRAIN_CSV_H_
#define WENGERT_TRAIN_CSV_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autograd/tensor.h"

namespace wengert::train {

struct CsvTable {
  std::vector<std::string> columns;
  Tensor values;  // [rows, columns]
};

// The columns of these names, in this order; all, if there are none. Of other
// columns only the fields are counted. dtype is float32 or float64, else Error
// is thrown. Errors, "path:line:column: what", the column in characters: quotes
// out of place, another number of fields than the header's, what is no number
// or too large for the dtype, a name twice in the header or not there, no rows;
// and what MappedFile::Open reports.
absl::StatusOr<CsvTable> ReadCsv(const std::string& path,
                                 const std::vector<std::string>& columns = {},
                                 DType dtype = DType::kFloat32);

// Those of a file with this text.
absl::StatusOr<CsvTable> ParseCsv(absl::string_view text,
                                  const std::string& path,
                                  const std::vector<std::string>& columns = {},
                                  DType dtype = DType::kFloat32);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_CSV_H_
