#include "nn/embedding.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::nn {
namespace {

int64_t CheckPadding(int64_t padding_id, int64_t n) {
  if (padding_id < -1 || padding_id >= n) {
    throw Error(absl::StrCat("nn::Embedding: padding_id ", padding_id,
                             " with a table of ", n, " rows"));
  }
  return padding_id;
}

}  // namespace

Embedding::Embedding(Params p, int64_t n, int64_t dim, EmbeddingOptions options)
    : padding_id_(CheckPadding(options.padding_id, n)),
      scale_(options.scale_by_sqrt_dim ? std::sqrt(static_cast<double>(dim))
                                       : 1),
      weight_(p.Normal("weight", {n, dim}, 1)),
      path_(p.layer_path()) {
  if (padding_id_ < 0) return;
  WithFloat(p.dtype(), [&]<class T>(T zero) {
    std::fill_n(weight_.mutable_data<T>() + padding_id_ * dim, dim, zero);
  });
}

}  // namespace wengert::nn
