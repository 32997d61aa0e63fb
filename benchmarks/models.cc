#include "benchmarks/models.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "nn/nn.h"
#include "train/adam.h"

namespace wengert::benchmarks {
namespace {

// Element i of the k-th parameter: a number in [-1, 1) that a few lines of any
// language reproduce.
double Start(int64_t k, int64_t i) {
  uint64_t x = static_cast<uint64_t>(k) * 1000003 + static_cast<uint64_t>(i);
  x = (x ^ (x >> 16)) * 0x45d9f3b & 0xffffffff;
  x = (x ^ (x >> 16)) * 0x45d9f3b & 0xffffffff;
  x ^= x >> 16;
  return static_cast<double>(x) / 2147483648.0 - 1;
}

// Embeddings, maps and their biases get 0.02 sqrt(3) Start (a bias of 0 would
// hide a bias that is not added); norms keep their weights of 1 and biases of
// 0.
void StartParameters(nn::ParameterStore& store) {
  int64_t k = 0;
  for (Parameter* p : store.parameters()) {
    if (p->name.find("norm") == std::string::npos) {
      float* w = p->value.mutable_data<float>();
      for (int64_t i = 0; i < p->value.size(); ++i) {
        w[i] = static_cast<float>(0.02 * std::sqrt(3.0) * Start(k, i));
      }
    }
    ++k;
  }
}

Tensor Ids(const Shape& shape, int64_t vocabulary, int64_t stream) {
  std::vector<int64_t> ids(shape.size());
  for (int64_t i = 0; i < shape.size(); ++i) {
    ids[i] = static_cast<int64_t>((Start(1000 + stream, i) + 1) / 2 *
                                  static_cast<double>(vocabulary));
  }
  return Tensor::From(shape, ids);
}

Tensor Places(int64_t length) {
  std::vector<int64_t> places(length);
  for (int64_t t = 0; t < length; ++t) places[t] = t;
  return Tensor::From({length}, places);
}

struct GptSizes {
  int64_t layers, width, heads, length, batch, vocabulary;
};

// The layers of a model one after another, each a checkpoint if wanted.
class Layers {
 public:
  Layers(nn::Params p, int64_t n, const nn::EncoderOptions& options,
         bool checkpointing)
      : checkpointing_(checkpointing) {
    for (int64_t i = 0; i < n; ++i) layers_.emplace_back(p.Sub(i), options);
  }

  Tensor operator()(Tensor x, const AttentionOptions& options = {}) const {
    for (const nn::EncoderLayer& layer : layers_) {
      const auto run = [&layer, options](const Tensor& x) {
        return layer(x, options);
      };
      x = checkpointing_ ? Checkpoint(run, x) : run(x);
    }
    return x;
  }

 private:
  const bool checkpointing_;
  std::vector<nn::EncoderLayer> layers_;
};

// A pre-norm GPT with a tied head.
class Gpt : public Workload {
 public:
  Gpt(const GptSizes& s, const WorkloadOptions& options)
      : s_(s),
        store_(DType::kFloat32, 1),
        words_(store_.root().Sub("wte"), s.vocabulary, s.width),
        positions_(store_.root().Sub("wpe"), s.length, s.width),
        layers_(store_.root().Sub("layers"), s.layers,
                {.d_model = s.width,
                 .n_heads = s.heads,
                 .hidden = 4 * s.width,
                 .activation = Activation::kGeluTanh,
                 .norm = nn::Norm::kPre},
                options.checkpointing),
        norm_(store_.root().Sub("norm"), s.width),
        places_(Places(s.length)),
        x_(Ids({s.batch, s.length}, s.vocabulary, 0)),
        y_(Ids({s.batch, s.length}, s.vocabulary, 1)),
        optimizer_(store_, {.lr = 1e-3, .beta2 = 0.99, .weight_decay = 0.1}) {
    StartParameters(store_);
  }

  Tensor Forward() override {
    Tensor h = words_(x_) + positions_(places_);
    h = norm_(layers_(std::move(h), {.causal = true}));
    return CrossEntropy(wengert::Linear(h, words_.weight()), y_);
  }

  int64_t tokens() const override { return s_.batch * s_.length; }
  double flops() const override {
    const double c = static_cast<double>(s_.width);
    const double n = static_cast<double>(tokens());
    const double products = 12 * c * c * static_cast<double>(s_.layers) +
                            c * static_cast<double>(s_.vocabulary);
    const double attention = 12 * c * n * static_cast<double>(s_.length) *
                             static_cast<double>(s_.layers);
    return 6 * products * n + attention;
  }
  nn::ParameterStore& store() override { return store_; }
  train::Optimizer& optimizer() override { return optimizer_; }

 private:
  const GptSizes s_;
  nn::ParameterStore store_;
  nn::Embedding words_, positions_;
  Layers layers_;
  nn::LayerNorm norm_;
  Tensor places_, x_, y_;
  train::AdamW optimizer_;
};

// One post-norm layer on nine sentences of three words.
class Toy : public Workload {
 public:
  explicit Toy(const WorkloadOptions& options)
      : store_(DType::kFloat32, 1),
        words_(store_.root().Sub("wte"), kVocabulary, kWidth),
        positions_(store_.root().Sub("wpe"), kLength, kWidth),
        layers_(store_.root().Sub("layers"), 1,
                {.d_model = kWidth, .n_heads = 3, .hidden = kHidden},
                options.checkpointing),
        out_(store_.root().Sub("out"), kWidth, kVocabulary),
        places_(Places(kLength)),
        optimizer_(store_, {.lr = 1e-3}) {
    std::vector<int64_t> x, y;  // "a is b" -> "A = B"
    for (int64_t a = 0; a < 3; ++a) {
      for (int64_t b = 0; b < 3; ++b) {
        x.insert(x.end(), {a, 3, b});
        y.insert(y.end(), {a + 4, 7, b + 4});
      }
    }
    x_ = Tensor::From({kBatch, kLength}, x);
    y_ = Tensor::From({kBatch, kLength}, y);
    StartParameters(store_);
  }

  Tensor Forward() override {
    Tensor h = words_(x_) + positions_(places_);
    return CrossEntropy(out_(layers_(std::move(h))), y_);
  }

  int64_t tokens() const override { return kBatch * kLength; }
  double flops() const override {
    const double products =
        4 * kWidth * kWidth + 2 * kWidth * kHidden + kWidth * kVocabulary;
    return 6 * products * static_cast<double>(tokens()) +
           12.0 * kWidth * kBatch * kLength * kLength;
  }
  nn::ParameterStore& store() override { return store_; }
  train::Optimizer& optimizer() override { return optimizer_; }

 private:
  static constexpr int64_t kWidth = 12, kLength = 3, kBatch = 9,
                           kVocabulary = 12, kHidden = 48;
  nn::ParameterStore store_;
  nn::Embedding words_, positions_;
  Layers layers_;
  nn::Linear out_;
  Tensor places_, x_, y_;
  train::Adam optimizer_;
};

}  // namespace

Tensor Workload::Step() {
  Tape tape;
  const Tensor loss = Forward();
  tape.Backward(loss);
  optimizer().Step();
  return loss;
}

std::unique_ptr<Workload> MakeWorkload(const std::string& name,
                                       const WorkloadOptions& options) {
  if (name == "toy") return std::make_unique<Toy>(options);
  GptSizes sizes;
  if (name == "small") {
    sizes = {.layers = 4,
             .width = 128,
             .heads = 4,
             .length = 64,
             .batch = 12,
             .vocabulary = 65};
  } else if (name == "medium") {
    sizes = {.layers = 6,
             .width = 384,
             .heads = 6,
             .length = 256,
             .batch = 4,
             .vocabulary = 65};
  } else {
    return nullptr;
  }
  sizes.layers = options.layers.value_or(sizes.layers);
  sizes.batch = options.batch.value_or(sizes.batch);
  sizes.length = options.length.value_or(sizes.length);
  return std::make_unique<Gpt>(sizes, options);
}

}  // namespace wengert::benchmarks
