// What the heads of one layer do with one sentence, to be looked at: in a run's
// report (report.h) or as a picture (png.h).
#ifndef WENGERT_TRAIN_ATTENTION_MAP_H_
#define WENGERT_TRAIN_ATTENTION_MAP_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autograd/tensor.h"

namespace wengert::train {

struct AttentionMap {
  std::string sentence;              // by which a reader picks
  std::string layer;                 // "encoder.0.self"
  std::vector<std::string> queries;  // labels the rows
  std::vector<std::string> keys;     // labels the columns
  // A head's weights, [Tq, Tk] row-major.
  std::vector<std::vector<float>> heads;
};

// The maps of one sentence: weights[i] is what layer i's heads do, [1, H, Tq,
// Tk] float32, as nn::Encoder::WithWeights gives it. Throws Error for other
// shapes.
std::vector<AttentionMap> AttentionMaps(const std::string& sentence,
                                        const std::vector<std::string>& queries,
                                        const std::vector<std::string>& keys,
                                        absl::Span<const Tensor> weights);

// Throws Error, which starts with `op`, where a head's size does not fit the
// labels or nothing is there to be looked at.
void CheckAttentionMap(const char* op, const AttentionMap& map);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_ATTENTION_MAP_H_
