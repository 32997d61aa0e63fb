// Any text is a table or an error with its place. A table that is written down
// again has the same names and bits.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "train/csv.h"
#include "train/place_fuzz.h"

namespace wengert::train {
namespace {

std::string Print(const CsvTable& table) {
  std::string text;
  for (const std::string& name : table.columns) {
    absl::StrAppend(&text, text.empty() ? "" : ",", "\"",
                    absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
  }
  const int64_t columns = table.values.dim(1);
  const double* x = table.values.data<double>();
  for (int64_t i = 0; i < table.values.size(); ++i) {
    absl::StrAppend(&text, i % columns == 0 ? "\n" : ",",
                    absl::StrFormat("%.17g", x[i]));
  }
  return text;
}

void Check(absl::string_view text) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const auto table = ParseCsv(text, "input", {}, dtype);
    if (!table.ok()) {
      CheckPlace(table.status(), "input", text);
      continue;
    }
    if (dtype != DType::kFloat64) continue;
    const auto again = ParseCsv(Print(*table), "again", {}, dtype);
    if (!again.ok() || again->columns != table->columns) abort();
    if (again->values.shape() != table->values.shape()) abort();
    if (std::memcmp(again->values.data<double>(), table->values.data<double>(),
                    table->values.size() * sizeof(double)) != 0) {
      abort();
    }
  }
  const auto some = ParseCsv(text, "input", {"y", "x"});
  if (!some.ok()) CheckPlace(some.status(), "input", text);
}

}  // namespace
}  // namespace wengert::train

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wengert::train::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
