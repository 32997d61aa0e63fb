// Fused operations, at the sizes of the three models and a few others.
#include <cmath>
#include <utility>

#include "autograd/ops.h"
#include "benchmarks/ops_benchmark.h"

namespace wengert::benchmarks {
namespace {

// The forward pass makes one product, the backward pass two.
void RegisterLinear(int64_t rows, int64_t in, int64_t out) {
  const double flops = 2. * static_cast<double>(rows * in * out);
  RegisterOp(Name("BM_Linear", rows, in, out), {.flops = flops},
             {.flops = 2 * flops}, [=](Inputs& inputs) {
               return
                   [x = inputs.Value({rows, in}), w = inputs.Weight({out, in}),
                    b = inputs.Weight({out})] { return Linear(x, w, b); };
             });
}

void RegisterActivatedLinear(const char* name, Activation f, int64_t rows,
                             int64_t in, int64_t out) {
  const double flops = 2. * static_cast<double>(rows * in * out);
  RegisterOp(Name("BM_ActivatedLinear", name, rows, in, out), {.flops = flops},
             {.flops = 2 * flops}, [=](Inputs& inputs) {
               return [f, x = inputs.Value({rows, in}),
                       w = inputs.Weight({out, in}), b = inputs.Weight({out})] {
                 return ActivatedLinear(f, x, w, b);
               };
             });
}

// Counts the pairs of a query and a key that it sees. Forward makes two
// products of each; backward makes five, the scores again among them.
void RegisterAttention(int64_t batch, int64_t length, int64_t heads,
                       int64_t width, bool causal) {
  const int64_t pairs = causal ? length * (length + 1) / 2 : length * length;
  const double product =
      2. * static_cast<double>(batch * heads * pairs * width);
  RegisterOp(
      Name("BM_Attention", batch, length, heads, width,
           causal ? "Causal" : "Full"),
      {.flops = 2 * product}, {.flops = 5 * product}, [=](Inputs& inputs) {
        return [=, qkv = inputs.Value({batch, length, 3, heads, width})] {
          return PackedAttention(qkv, {.causal = causal});
        };
      });
}

// An operation on rows, reading and writing all once forward, and reading two
// and writing one backward.
template <class F>
void RegisterRows(const char* name, int64_t rows, int64_t width, F f) {
  const double bytes = 4. * static_cast<double>(rows * width);
  RegisterOp(Name(name, rows, width), {.bytes = 2 * bytes},
             {.bytes = 3 * bytes}, [=](Inputs& inputs) {
               return [f, x = inputs.Value({rows, width}),
                       g = inputs.Weight({width}),
                       b = inputs.Weight({width})] { return f(x, g, b); };
             });
}

// Queries of some heads; backward reads and writes as much.
void RegisterRotary(int64_t batch, int64_t length, int64_t heads, int64_t width,
                    bool interleaved) {
  const double bytes = 4. * static_cast<double>(batch * length * heads * width);
  RegisterOp(Name("BM_Rotary", batch, length, heads, width,
                  interleaved ? "Interleaved" : "Halves"),
             {.bytes = 2 * bytes}, {.bytes = 2 * bytes}, [=](Inputs& inputs) {
               return [=, x = inputs.Value({batch, length, heads, width})] {
                 return Rotary(x, {.interleaved = interleaved});
               };
             });
}

void RegisterGroupNorm(int64_t batch, int64_t channels, int64_t places,
                       int64_t groups) {
  const double bytes = 4. * static_cast<double>(batch * channels * places);
  RegisterOp(Name("BM_GroupNorm", batch, channels, places, groups),
             {.bytes = 2 * bytes}, {.bytes = 3 * bytes}, [=](Inputs& inputs) {
               return [=, x = inputs.Value({batch, channels, places}),
                       g = inputs.Weight({channels}),
                       b = inputs.Weight({channels})] {
                 return GroupNorm(x, groups, g, b);
               };
             });
}

// A mean loss of two arrays, with the gradient of the first.
template <class F>
void RegisterPairLoss(const char* name, F f) {
  for (int64_t n : {4096, 768 * 512, 1024 * 1536, 4096 * 4096}) {
    const double bytes = 4. * static_cast<double>(n);
    RegisterOp(Name(name, n), {.bytes = 2 * bytes}, {.bytes = 3 * bytes},
               [=](Inputs& inputs) {
                 return
                     [f, x = inputs.Value({n}),
                      y = inputs.Value({n}, 0, 1).Detach()] { return f(x, y); };
               });
  }
}

void RegisterWeightedCrossEntropy(int64_t rows, int64_t classes) {
  const double bytes = 4. * static_cast<double>(rows * classes);
  RegisterOp(Name("BM_WeightedCrossEntropy", rows, classes), {.bytes = bytes},
             {.bytes = 2 * bytes}, [=](Inputs& inputs) {
               return [x = inputs.Value({rows, classes}),
                       w = inputs.Value({classes}, 0.5, 2).Detach(),
                       y = RandomIds({rows}, classes)] {
                 return CrossEntropy(x, y, {.weight = w});
               };
             });
}

void RegisterCrossEntropy(int64_t rows, int64_t classes) {
  const double bytes = 4. * static_cast<double>(rows * classes);
  RegisterOp(Name("BM_CrossEntropy", rows, classes), {.bytes = bytes},
             {.bytes = 2 * bytes}, [=](Inputs& inputs) {
               return [x = inputs.Value({rows, classes}),
                       y = RandomIds({rows}, classes)] {
                 return CrossEntropy(x, y);
               };
             });
}

// Backward adds rows into a table of zeros.
void RegisterEmbedding(int64_t table_rows, int64_t width, int64_t n) {
  const double rows = 4. * static_cast<double>(n * width);
  const double table = 4. * static_cast<double>(table_rows * width);
  RegisterOp(Name("BM_Embedding", table_rows, width, n), {.bytes = 2 * rows},
             {.bytes = rows + table}, [=](Inputs& inputs) {
               return [x = inputs.Weight({table_rows, width}),
                       ids = RandomIds({n}, table_rows)] {
                 return Embedding(x, ids);
               };
             });
}

void RegisterDropout(int64_t n) {
  const double bytes = 4. * static_cast<double>(n);
  RegisterOp(Name("BM_Dropout", n), {.bytes = 2 * bytes}, {.bytes = 2 * bytes},
             [=](Inputs& inputs) {
               return [x = inputs.Value({n})] { return Dropout(x, 0.1); };
             },
             {.training = true});
}

}  // namespace

void RegisterFused() {
  RegisterLinear(27, 12, 36);
  RegisterLinear(27, 12, 48);
  RegisterLinear(27, 48, 12);
  for (const auto& [rows, width] : {std::pair{768, 128}, {1024, 384}}) {
    RegisterLinear(rows, width, 3 * width);
    RegisterLinear(rows, width, width);
    RegisterLinear(rows, width, 4 * width);
    RegisterLinear(rows, 4 * width, width);
    RegisterLinear(rows, width, 65);
    RegisterActivatedLinear("GeluTanh", Activation::kGeluTanh, rows, 4 * width,
                            width);
  }
  RegisterActivatedLinear("Relu", Activation::kRelu, 27, 48, 12);
  RegisterActivatedLinear("Relu", Activation::kRelu, 1024, 1536, 384);
  RegisterAttention(9, 3, 3, 4, false);
  for (bool causal : {true, false}) {
    RegisterAttention(12, 64, 4, 32, causal);
    RegisterAttention(4, 256, 6, 64, causal);
    RegisterAttention(1, 1024, 6, 64, causal);
  }
  for (const auto& [rows, width] : {std::pair{27, 12},
                                    {768, 128},
                                    {1024, 384},
                                    {4096, 1024},
                                    {16384, 1024}}) {
    RegisterRows("BM_LayerNorm", rows, width,
                 [](auto&... a) { return LayerNorm(a...); });
    RegisterRows(
        "BM_RmsNorm", rows, width,
        [](const Tensor& x, const Tensor& g, auto&) { return RmsNorm(x, g); });
  }
  for (const auto& [rows, width] : {std::pair{81, 3},
                                    {3072, 64},
                                    {6144, 256},
                                    {1024, 4096},
                                    {16384, 1024}}) {
    RegisterRows("BM_Softmax", rows, width,
                 [](const Tensor& x, auto&...) { return Softmax(x); });
    RegisterRows("BM_LogSoftmax", rows, width,
                 [](const Tensor& x, auto&...) { return LogSoftmax(x); });
  }
  RegisterCrossEntropy(27, 12);
  RegisterCrossEntropy(768, 65);
  RegisterCrossEntropy(1024, 65);
  RegisterCrossEntropy(256, 32000);
  RegisterCrossEntropy(512, 32000);
  RegisterWeightedCrossEntropy(1024, 65);
  RegisterWeightedCrossEntropy(256, 32000);
  for (bool interleaved : {false, true}) {
    RegisterRotary(4, 256, 6, 64, interleaved);
    RegisterRotary(1, 1024, 6, 64, interleaved);
    RegisterRotary(1, 16384, 16, 64, interleaved);
  }
  RegisterGroupNorm(8, 64, 1024, 8);
  RegisterGroupNorm(8, 512, 4096, 32);
  RegisterGroupNorm(4, 512, 64, 32);
  RegisterGroupNorm(64, 512, 16, 32);
  RegisterGroupNorm(256, 512, 4, 32);
  RegisterGroupNorm(1024, 384, 1, 32);
  RegisterPairLoss("BM_MseLoss",
                   [](auto& x, auto& y) { return MseLoss(x, y); });
  RegisterPairLoss("BM_L1Loss", [](auto& x, auto& y) { return L1Loss(x, y); });
  RegisterPairLoss("BM_HuberLoss",
                   [](auto& x, auto& y) { return HuberLoss(x, y); });
  RegisterPairLoss("BM_BinaryCrossEntropy", [](auto& x, auto& y) {
    return BinaryCrossEntropyWithLogits(x, y);
  });
  RegisterEmbedding(12, 12, 27);
  RegisterEmbedding(65, 128, 768);
  RegisterEmbedding(65, 384, 1024);
  RegisterEmbedding(32000, 384, 1024);
  RegisterDropout(27 * 48);
  RegisterDropout(768 * 512);
  RegisterDropout(1024 * 1536);
  RegisterDropout(4096 * 4096);
}

}  // namespace wengert::benchmarks
