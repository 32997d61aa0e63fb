// Any bytes are an array or an error of one line, and an array that is written
// again is the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "train/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using wengert::train::ElementBytes;
  const auto x = wengert::train::ParseNpy({data, size}, "input");
  if (!x.ok()) {
    if (x.status().message().find('\n') != absl::string_view::npos) abort();
    return 0;
  }
  const std::string header = wengert::train::NpyHeader(*x);
  std::vector<uint8_t> file(header.begin(), header.end());
  file.insert(file.end(), ElementBytes(*x).begin(), ElementBytes(*x).end());
  const auto again = wengert::train::ParseNpy(file, "again");
  if (!again.ok() || again->shape() != x->shape() ||
      again->dtype() != x->dtype() ||
      ElementBytes(*again) != ElementBytes(*x)) {
    abort();
  }
  return 0;
}
