// Token files: a corpus as its token ids, one after the other, in a file of any
// size, of which only the blocks that are asked for are read.
//
// Such a file is the ids alone, little-endian (the .bin of nanoGPT), or, as
// llm.c writes it, a header of 256 int32 and the ids. The header's first words
// are 20240520, version 1 and the count for uint16, 20240801, version 7 and the
// count for uint32. As kU8 a text is a token file too: its bytes are the ids.
#ifndef WENGERT_TRAIN_TOKEN_FILE_H_
#define WENGERT_TRAIN_TOKEN_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autograd/tensor.h"
#include "train/mapped_file.h"
#include "train/safetensors.h"

namespace wengert::train {

class TokenFile {
 public:
  // `type` is kU8, kU16, kU32 or kI32, else Error is thrown. Ids are below
  // `vocabulary_size`. Errors, of one line: what MappedFile::Open reports; a
  // size that is no whole number of ids; a header of another type or version,
  // or whose count is not that of the file.
  static absl::StatusOr<TokenFile> Open(const std::string& path,
                                        ElementType type,
                                        int64_t vocabulary_size);
  // A file's bytes, which must outlive the result; `path` is for messages.
  static absl::StatusOr<TokenFile> Parse(absl::Span<const uint8_t> bytes,
                                         const std::string& path,
                                         ElementType type,
                                         int64_t vocabulary_size);

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }  // tokens

  // Blocks to learn from: x [B, T] has the T tokens of each, and y [B, T] the
  // token behind each of those. Block i begins at i * T, for 0 <= i <
  // NumBlocks(size(), T); Error is thrown for others. A batch of indices from
  // BatchStream(NumBlocks(size(), T), B, seed) is one of blocks. Error status:
  // an id outside the vocabulary, with its position.
  struct Batch {
    Tensor x, y;  // int64
  };
  absl::StatusOr<Batch> Blocks(absl::Span<const int64_t> indices,
                               int64_t length) const;

  // Whether all ids are in the vocabulary. Reads the whole file.
  absl::Status Check() const;

 private:
  TokenFile() = default;
  template <class F>
  decltype(auto) WithTokens(F f) const;
  absl::Status Outside(int64_t id, int64_t position) const;

  std::string path_;
  std::optional<MappedFile> mapping_;  // none: somebody else's memory
  ElementType type_;
  const uint8_t* data_ = nullptr;  // aligned to nothing
  int64_t size_ = 0;
  int64_t vocabulary_size_ = 0;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_TOKEN_FILE_H_
