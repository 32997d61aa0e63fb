// Writes files of every kind for .ci/interop_test.py to read, and reads those
// that Python wrote.
#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/ops.h"
#include "nlohmann/json.hpp"
#include "nn/parameter_store.h"
#include "train/adam.h"
#include "train/byte_pair.h"
#include "train/character_tokenizer.h"
#include "train/checkpoint.h"
#include "train/metrics_log.h"
#include "train/npy.h"
#include "train/npz.h"
#include "train/safetensors.h"
#include "train/tensorboard.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Numbers that a reader may trip over; the test has the same list.
const std::vector<double> kNumbers = {
    0,          -0.0,    1,         -1.5,   3.141592653589793,
    1e-40,      6e-8,    65504,     65520,  1.0009765,
    3e38,       -3.4e38, 1e300,     5e-324, kInfinity,
    -kInfinity, kNan,    1.00390625};

void Check(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}

template <class T>
T Take(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

void WriteTensors(const std::string& folder) {
  const auto n = static_cast<int64_t>(kNumbers.size());
  const Tensor numbers = Tensor::From({2, n / 2}, kNumbers);
  const int64_t big = std::numeric_limits<int64_t>::min();
  const std::vector<NamedTensor> tensors = {
      {"f64", numbers},
      {"f32", numbers.To(DType::kFloat32)},
      {"i32", Tensor::Of<int32_t>({3}, {-2147483647 - 1, 0, 2147483647})},
      {"i64", Tensor::Of<int64_t>({2, 1}, {big, 9007199254740993})},
      {"bool", Tensor::Of<bool>({3}, {true, false, true})},
      {"empty", Tensor::Zeros({0, 5})},
      {"scalar", Tensor::Scalar(-7)},
      {"naïve name", Tensor::Scalar(2)}};
  Check(WriteSafetensors(folder + "/types.safetensors", tensors,
                         {{"who", "Wengert"}, {"text", "ä \"x\"\n"}}));
  Check(WriteSafetensors(folder + "/f16.safetensors", {{"f64", numbers}}, {},
                         ElementType::kF16));
  Check(WriteSafetensors(folder + "/bf16.safetensors", {{"f64", numbers}}, {},
                         ElementType::kBF16));
}

void WriteArrays(const std::string& folder) {
  const auto n = static_cast<int64_t>(kNumbers.size());
  const Tensor numbers = Tensor::From({2, n / 2}, kNumbers);
  const std::vector<NamedTensor> tensors = {
      {"f64", numbers},
      {"f32", numbers.To(DType::kFloat32)},
      {"i32", Tensor::Of<int32_t>({3}, {-2147483647 - 1, 0, 2147483647})},
      {"i64", Tensor::Of<int64_t>({2, 1}, {-1, 9007199254740993})},
      {"bool", Tensor::Of<bool>({3}, {true, false, true})},
      {"empty", Tensor::Zeros({0, 5})},
      {"scalar", Tensor::Scalar(-7)},
      {"naïve/name", Tensor::Scalar(2)}};
  Check(SaveNpz(folder + "/stored.npz", tensors));
  Check(SaveNpz(folder + "/deflated.npz", tensors, {.compress = true}));
  Check(SaveNpy(folder + "/numbers.npy", numbers));
}

// Tokenisers, and the ids that they give the lines of text.txt.
void WriteTokenizers(const std::string& folder) {
  const std::string text =
      "It's the reader's book; they've read it  twice.\n größer 12½ 你好 "
      "👍🏽\n";
  const auto pairs = Take(BytePairTokenizer::Train(
      {text, text}, {.vocabulary_size = 400, .special_tokens = {"<|end|>"}}));
  const auto characters = Take(CharacterTokenizer::Train(
      {text}, {.special_tokens = {"<unk>"}, .unknown = "<unk>"}));
  const auto bytes = Take(BytePairTokenizer::Bytes({"<|end|>"}));
  nlohmann::json ids = {{"text", text}};
  const std::pair<const char*, const Tokenizer*> all[] = {
      {"pairs", &pairs}, {"characters", &characters}, {"bytes", &bytes}};
  for (const auto& [name, tokenizer] : all) {
    Check(tokenizer->Save(absl::StrCat(folder, "/", name, ".json")));
    ids[name] = Take(tokenizer->Encode(text));
  }
  Check(WriteFile(folder + "/ids.json", ids.dump()));
}

// Writes the arrays of a .npz file again.
void CopyArrays(const std::string& from, const std::string& to) {
  Check(SaveNpz(to, Take(LoadNpz(from))));
}

// A checkpoint, and expected.json with what is in it.
void WriteCheckpoint(const std::string& folder) {
  nn::ParameterStore store(DType::kFloat32, 1);
  const Tensor w = store.root().Sub("layer").Normal("weight", {3, 4}, 1);
  store.root().Tied("head", w);
  AdamW optimizer(store);
  Generator generator(7);
  for (int i = 0; i < 3; ++i) {
    Tape tape(generator);
    tape.Backward(Sum(Square(w - 1.0)));
    optimizer.Step();
  }
  const TrainingRun run = {
      .parameters = &store, .optimizer = &optimizer, .generator = &generator};
  const CheckpointInfo info = {
      .step = 3, .config = "{\"lr\": 1}", .metrics = {{"loss", 0.1}}};
  Check(SaveCheckpoint(folder + "/checkpoint.safetensors", run, info));
  nlohmann::json expected;
  for (const NamedTensor& x : Take(CollectCheckpoint(run, info)).tensors) {
    expected[x.name] = {
        {"shape", std::vector<int64_t>(x.tensor.shape().dims().begin(),
                                       x.tensor.shape().dims().end())},
        {"values", x.tensor.ToVector()}};
  }
  Check(WriteFile(folder + "/expected.json", expected.dump()));
}

void WriteLogs(const std::string& folder) {
  // Two grey pixels, one above the other: black and white.
  const std::string png = absl::HexStringToBytes(
      "89504e470d0a1a0a0000000d4948445200000001000000020800000000bceae9fb"
      "0000000c49444154789c636060f80f00010301000889c2ec"
      "0000000049454e44ae426082");
  EventWriter events = Take(EventWriter::Open(folder, -1));
  MetricsLog log = Take(
      MetricsLog::Open(folder + "/metrics.csv", folder + "/metrics.jsonl", -1));
  const std::vector<std::vector<Metric>> rows = {
      {{"loss", 3.25}, {"time/s", .5}},
      {{"loss", 0.1}, {"eval/loss", 1e-300}, {"time/s", 1.5}},
      {{"loss", kNan}, {"eval/loss", -kInfinity}, {"time/s", kInfinity}}};
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto step = static_cast<int64_t>(10 * (i + 1));
    Check(events.Scalars(step, rows[i]));
    Check(log.Write(step, rows[i]));
  }
  Check(events.Histogram(30, "weights",
                         Tensor::Of({8}, {-1, -1, 0, .5, .5, .5, 2, kNan})));
  Check(events.Image(30, "attention/layer0", png));
}

// Writes the tensors of a file again: floats as float64 parameters that were
// loaded, the rest as they are.
void Copy(const std::string& from, const std::string& to) {
  const SafetensorsFile file = Take(SafetensorsFile::Open(from));
  nn::ParameterStore store(DType::kFloat64, 1);
  std::vector<NamedTensor> tensors;
  for (const SafetensorsFile::Entry& e : file.entries()) {
    if (IsFloat(e.type)) {
      tensors.push_back({e.name, store.root().Zeros(e.name, e.shape)});
      continue;
    }
    for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kBool}) {
      if (StoredAs(dtype) != e.type) continue;
      const Tensor x = Tensor::Empty(e.shape, dtype);
      CopyElements(e, dtype, x.impl()->data);
      tensors.push_back({e.name, x});
    }
  }
  Check(LoadParameters(from, store, {.strict = false}));
  Check(WriteSafetensors(to, tensors, file.metadata()));
}

}  // namespace
}  // namespace wengert::train

int main(int argc, char** argv) {
  using namespace wengert::train;
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 2 && words[0] == "write") {
      WriteTensors(words[1]);
      WriteArrays(words[1]);
      WriteTokenizers(words[1]);
      WriteCheckpoint(words[1]);
      WriteLogs(words[1]);
      return 0;
    }
    if (words.size() == 3 && words[0] == "copy") {
      const bool arrays = absl::EndsWith(words[1], ".npz");
      (arrays ? CopyArrays : Copy)(words[1], words[2]);
      return 0;
    }
    std::cerr << "interop: wanted write FOLDER, or copy FROM TO\n";
  } catch (const std::exception& e) {
    std::cerr << "interop: " << e.what() << "\n";
  }
  return 2;
}
