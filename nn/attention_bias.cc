#include "nn/attention_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::nn {
namespace {

void CheckLengths(const char* what, int64_t queries, int64_t keys) {
  if (queries < 0 || keys < 0) {
    throw Error(absl::StrCat(what, ": ", queries, " queries, ", keys,
                             " keys; wanted 0 or more"));
  }
}

}  // namespace

Tensor AlibiSlopes(int64_t n_heads, DType dtype) {
  if (n_heads < 1) {
    throw Error(
        absl::StrCat("AlibiSlopes: n_heads ", n_heads, "; wanted 1 or more"));
  }
  int64_t power = 1;
  while (2 * power <= n_heads) power *= 2;
  std::vector<double> slopes;
  for (int64_t i = 1; i <= power; ++i) {
    slopes.push_back(
        std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(power)));
  }
  for (int64_t i = 1; i <= n_heads - power; ++i) {
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(2 * i - 1) /
                               static_cast<double>(power)));
  }
  return Tensor::From({n_heads}, slopes).To(dtype);
}

Tensor AlibiBias(int64_t n_heads, int64_t queries, int64_t keys, DType dtype) {
  CheckLengths("AlibiBias", queries, keys);
  std::vector<double> distances;
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t distance = std::abs(j - (i + keys - queries));
      distances.push_back(-static_cast<double>(distance));
    }
  }
  return Reshape(AlibiSlopes(n_heads, dtype), {1, n_heads, 1, 1}) *
         Tensor::From({queries, keys}, distances).To(dtype);
}

RelativeBias::RelativeBias(Params p, int64_t n_heads, RelativeBiasOptions o)
    : options_(o), path_(p.layer_path()) {
  const int64_t one_way = o.bidirectional ? o.num_buckets / 2 : o.num_buckets;
  if (n_heads < 1 || one_way < 2 || o.max_distance <= one_way / 2) {
    throw Error(absl::StrCat(
        "nn::RelativeBias: n_heads ", n_heads, ", num_buckets ", o.num_buckets,
        ", max_distance ", o.max_distance,
        "; wanted a head, two buckets in each direction, and a distance beyond "
        "the buckets of one distance"));
  }
  weight_ = p.Normal("weight", {o.num_buckets, n_heads}, o.stddev);
}

int64_t RelativeBias::Bucket(int64_t distance) const {
  int64_t buckets = options_.num_buckets, first = 0;
  int64_t far = std::max<int64_t>(0, -distance);
  if (options_.bidirectional) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
    far = std::abs(distance);
  }
  const int64_t exact = buckets / 2;
  if (far < exact) return first + far;
  // In float, as T5 does: where spans meet, another rounding would put a
  // distance into its neighbour.
  const float log =
      std::log(static_cast<float>(static_cast<double>(far) /
                                  static_cast<double>(exact))) /
      static_cast<float>(std::log(static_cast<double>(options_.max_distance) /
                                  static_cast<double>(exact)));
  const float span = log * static_cast<float>(buckets - exact);
  return first + std::min(exact + static_cast<int64_t>(span), buckets - 1);
}

Tensor RelativeBias::operator()(int64_t queries, int64_t keys) const {
  const auto scope = path_.Open();
  CheckLengths("nn::RelativeBias", queries, keys);
  std::vector<int64_t> buckets;
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      buckets.push_back(Bucket(j - (i + keys - queries)));
    }
  }
  const Tensor rows =
      wengert::Embedding(weight_, Tensor::From({queries, keys}, buckets));
  return path_.Out(
      Reshape(Permute(rows, {2, 0, 1}), {1, weight_.dim(1), queries, keys}));
}

}  // namespace wengert::nn
