// Any bytes are a token file of each type or an error of one line. Its blocks
// hold ids of the vocabulary, or one is outside. The first byte chooses the
// vocabulary.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "train/batch_stream.h"
#include "train/token_file.h"

namespace wengert::train {
namespace {

void Check(absl::Span<const uint8_t> bytes, ElementType type,
           int64_t vocabulary_size) {
  const auto file = TokenFile::Parse(bytes, "input", type, vocabulary_size);
  if (!file.ok()) {
    const auto message = file.status().message();
    if (message.find('\n') != message.npos) abort();
    return;
  }
  if (file->size() * ElementSize(type) > bytes.size()) abort();
  const bool good = file->Check().ok();
  constexpr int64_t kLength = 3;
  if (file->size() <= kLength) return;
  std::vector<int64_t> blocks(NumBlocks(file->size(), kLength));
  std::iota(blocks.begin(), blocks.end(), 0);
  const auto batch = file->Blocks(blocks, kLength);
  if (good && !batch.ok()) abort();
  if (!batch.ok()) return;
  const auto x = batch->x.span<int64_t>(), y = batch->y.span<int64_t>();
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] < 0 || x[i] >= vocabulary_size) abort();
    if (y[i] < 0 || y[i] >= vocabulary_size) abort();
    if (i > 0 && x[i] != y[i - 1]) abort();
  }
}

}  // namespace
}  // namespace wengert::train

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using wengert::train::ElementType;
  if (size == 0) return 0;
  for (const auto type : {ElementType::kU8, ElementType::kU16,
                          ElementType::kU32, ElementType::kI32}) {
    wengert::train::Check({data + 1, size - 1}, type,
                          int64_t{1} << data[0] % 33);
  }
  return 0;
}
