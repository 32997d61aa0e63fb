#include "train/profile.h"

#include "absl/strings/str_split.h"
#include "autograd/error.h"
#include "autograd/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "train/adam.h"
#include "train/files_testlib.h"
#include "train/gpt_testlib.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using Kind = Profile::Kind;
using Row = Profile::Row;

// By a clock that the test sets.
class ProfileTest : public FilesTest {
 protected:
  Row Find(const std::string& name, Kind kind, const std::string& layer = "") {
    for (const Row& row : profile_.Rows(!layer.empty())) {
      if (row.name == name && row.kind == kind && row.layer == layer) {
        return row;
      }
    }
    return {.name = name, .layer = layer, .kind = kind};
  }
  int64_t Time(const std::string& name, Kind kind) {
    return Find(name, kind).nanoseconds;
  }
  int64_t Total() {
    int64_t total = 0;
    for (const Row& row : profile_.Rows()) total += row.nanoseconds;
    return total;
  }
  // y = x, which takes `forward`, and its rule `backward`.
  Tensor Slow(const Tensor& x, int64_t forward, int64_t backward) {
    time_ += forward;
    Tensor y = x.Clone();
    Record("Slow", y, {x}, Save(), [this, backward](GradientSink& g) {
      time_ += backward;
      g.Add(0, g.dy());
    });
    return y;
  }
  std::vector<nlohmann::json> Trace() {
    const auto status = profile_.WriteChromeTrace(Path("trace.json"));
    EXPECT_TRUE(status.ok()) << status;
    trace_ = nlohmann::json::parse(Contents(Path("trace.json")));
    std::vector<nlohmann::json> slices;
    for (const auto& event : trace_["traceEvents"]) {
      if (event["ph"] == "X") slices.push_back(event);
    }
    return slices;
  }
  // Runs the tape's usual work once.
  void Step() {
    Tape tape;
    tape.set_observer(&profile_);
    tape.Backward(Sum(Slow(w_, 1, 1)));
  }

  int64_t time_ = 1'000'000;
  Profile profile_{{.now = [this] { return time_; }}};
  nn::ParameterStore store_{DType::kFloat32, 1};
  Tensor w_ = store_.root().Zeros("w", {2, 3});
  nlohmann::json trace_;
};

TEST_F(ProfileTest, ChargesEachMomentOnce) {
  {
    const Profile::Span span(&profile_, "data");
    time_ += 1;
  }
  time_ += 10;
  Tape tape;
  tape.set_observer(&profile_);
  time_ += 100;  // before the operation, so its own
  const Tensor y = Sum(Slow(w_, 1'000, 10'000) * 2.0);
  tape.OnGradient(y, [this](const Tensor&) {
    time_ += 100'000;
    return Tensor();
  });
  tape.Backward(y);
  {
    const Profile::Span step(&profile_, "optimizer");
    time_ += 1'000'000;
    const Profile::Span inner(&profile_, "clip");
    time_ += 10'000'000;
  }
  time_ += 100'000'000;
  EXPECT_EQ(Time("data", Kind::kSpan), 1);
  EXPECT_EQ(Time("Slow", Kind::kForward), 1'100);
  EXPECT_EQ(Time("Slow", Kind::kBackward), 10'000);
  EXPECT_EQ(Time("Backward", Kind::kSpan), 100'000);
  EXPECT_EQ(Time("optimizer", Kind::kSpan), 1'000'000);
  EXPECT_EQ(Time("clip", Kind::kSpan), 10'000'000);
  EXPECT_EQ(Time("(between)", Kind::kSpan), 100'000'010);
  EXPECT_EQ(Total(), 111'111'111);
  EXPECT_EQ(Find("Slow", Kind::kForward).calls, 1);
  EXPECT_EQ(Find("Affine", Kind::kBackward).calls, 1);
  EXPECT_EQ(Find("Affine", Kind::kForward).calls, 1);  // not the rule's own
}

TEST_F(ProfileTest, ItsOwnTimeIsLeftOut) {
  // Each look at the clock takes 7; between looks nothing happens.
  int64_t looks = 0;
  Profile profile({.now = [&] { return 7 * looks++; }});
  {
    const Profile::Span outer(&profile, "outer");
    const Profile::Span inner(&profile, "inner");
  }
  int64_t total = 0;
  for (const Row& row : profile.Rows()) total += row.nanoseconds;
  // Begin, begin, end, end, Rows: four stretches between them.
  EXPECT_EQ(total, 4 * 7);
  EXPECT_EQ(looks, 5 * 2);
}

TEST_F(ProfileTest, NestsCheckpointedRecomputation) {
  Tape tape;
  tape.set_observer(&profile_);
  const auto f = [this](const Tensor& x) { return Slow(x, 10, 100); };
  tape.Backward(Sum(Checkpoint(f, w_)));
  EXPECT_EQ(Time("Slow", Kind::kForward), 10);
  EXPECT_EQ(Time("Slow", Kind::kAgain), 10);
  EXPECT_EQ(Time("Slow", Kind::kBackward), 100);
  EXPECT_EQ(Find("Slow", Kind::kAgain).calls, 1);
  EXPECT_EQ(Find("Checkpoint", Kind::kBackward).calls, 1);
  EXPECT_EQ(Time("Checkpoint", Kind::kBackward), 0);
  EXPECT_EQ(Total(), 120);
}

TEST_F(ProfileTest, ASecondOrderGradient) {
  Tape tape;
  tape.set_observer(&profile_);
  const Tensor x = Tensor::Ones({4, 3});
  const Tensor y = Sum(Square(Linear(x, w_)));
  const Tensor dw = tape.Gradient(y, w_, {.create_graph = true});
  // The composition is a product, and its gradient another.
  EXPECT_EQ(Find("Linear", Kind::kBackward).flops, 0);
  EXPECT_EQ(Find("MatMul", Kind::kAgain).flops, 2 * 4 * 3 * 2);
  EXPECT_EQ(Find("MatMul", Kind::kBackward).flops, 2 * 4 * 3 * 2);
  tape.Gradient(Sum(dw), w_);
  EXPECT_EQ(Find("Gradient", Kind::kSpan).calls, 2);
  EXPECT_EQ(Find("Linear", Kind::kForward).calls, 1);
}

TEST_F(ProfileTest, TapesInsideTapes) {
  Tape outer;
  outer.set_observer(&profile_);
  const Tensor y = Slow(w_, 1, 10);
  {
    Tape inner;
    inner.set_observer(&profile_);
    inner.Backward(Sum(Slow(w_, 100, 1'000)));
  }
  {
    Tape unseen;  // counts as part of the operation that comes next
    unseen.Backward(Sum(Slow(w_, 10'000, 100'000)));
  }
  outer.Backward(Sum(y));
  EXPECT_EQ(Time("Slow", Kind::kForward), 101);
  EXPECT_EQ(Time("Slow", Kind::kBackward), 1'010);
  EXPECT_EQ(Time("Sum", Kind::kForward), 110'000);
  EXPECT_EQ(Find("Backward", Kind::kSpan).calls, 2);
}

TEST_F(ProfileTest, GoesOnAfterAnException) {
  for (int i = 0; i < 2; ++i) {
    Tape tape;
    tape.set_observer(&profile_);
    Tensor y = w_.Clone();
    Record("Broken", y, {w_}, Save(), [this](GradientSink&) {
      time_ += 10;
      throw Error("broken");
    });
    EXPECT_THROW(tape.Backward(Sum(y)), Error);
    EXPECT_THROW(Reshape(y, {7}), Error);
    store_.ZeroGrad();
  }
  time_ += 100;
  EXPECT_EQ(Time("Broken", Kind::kBackward), 20);
  EXPECT_EQ(Time("(between)", Kind::kSpan), 100);  // nothing is under way
}

TEST_F(ProfileTest, FlopsAndBytesOfAModel) {
  const int64_t b = 3, t = 5, c = 8, heads = 2, hidden = 32, words = 11;
  const Gpt model(store_.root().Sub("gpt"), {.vocabulary = words,
                                             .length = t,
                                             .d_model = c,
                                             .n_heads = heads,
                                             .n_layers = 2,
                                             .dropout = 0});
  const Tensor ids = Tensor::From({b, t}, std::vector<int64_t>(b * t, 1));
  Tape tape;
  tape.set_observer(&profile_);
  tape.Backward(CrossEntropy(model(ids), ids));
  const double n = b * t, layers = 2;
  double linear = 0, attention = 0, back = 0, attention_back = 0;
  for (const Row& row : profile_.Rows()) {
    const bool is_attention = row.name == "PackedAttention";
    const bool forward = row.kind == Kind::kForward;
    (is_attention ? forward ? attention : attention_back
     : forward    ? linear
                  : back) += row.flops;
  }
  const double products =
      layers * (c * 3 * c + c * c + 2 * c * hidden) + c * words;
  EXPECT_EQ(linear, 2 * n * products);
  EXPECT_EQ(back, 2 * linear);
  EXPECT_EQ(attention, layers * 4 * b * t * t * c);
  EXPECT_EQ(attention_back, 2.5 * attention);

  const Row embedding = Find("Embedding", Kind::kForward);
  EXPECT_EQ(embedding.calls, 2);  // of words and places
  EXPECT_EQ(embedding.bytes, 2 * 4 * (n * c + t * c));
  const Row loss = Find("CrossEntropy", Kind::kBackward);
  // dy, logits, int64 ids, log-sums; dlogits.
  EXPECT_EQ(loss.bytes, 4 + 4 * n * words + 8 * n + 4 * n + 4 * n * words);
  EXPECT_EQ(Find("Reshape", Kind::kForward).bytes, 0);
}

TEST_F(ProfileTest, FlopsOfEachProduct) {
  const auto flops = [&](const char* op, Kind kind) {
    return Find(op, kind).flops;
  };
  Tape tape;
  tape.set_observer(&profile_);
  const auto p = [&](const char* name, const Shape& shape) {
    return store_.root().Zeros(name, shape);
  };
  tape.Backward(Sum(MatMul(p("a", {3, 5, 2}), p("b", {7, 5}),
                           {.transpose_a = true, .transpose_b = true})));
  EXPECT_EQ(flops("MatMul", Kind::kForward), 2 * 3 * 2 * 5 * 7);
  EXPECT_EQ(flops("MatMul", Kind::kBackward), 2 * 2 * 3 * 2 * 5 * 7);
  tape.Backward(Sum(MatMul(p("empty", {0, 4}), p("c", {4, 0}))));
  EXPECT_EQ(flops("MatMul", Kind::kForward), 2 * 3 * 2 * 5 * 7);

  // Nobody wants the gradient of x.
  tape.Backward(Sum(ActivatedLinear(Activation::kGelu, Tensor::Zeros({4, 2}),
                                    p("d", {3, 2}), {})));
  EXPECT_EQ(flops("ActivatedLinear", Kind::kForward), 2 * 4 * 2 * 3);
  EXPECT_EQ(flops("ActivatedLinear", Kind::kBackward), 2 * 4 * 2 * 3);

  // 2 query heads share a key head; values are of another width.
  tape.Backward(Sum(Attention(p("q", {2, 3, 2, 4}), p("k", {2, 5, 1, 4}),
                              p("v", {2, 5, 1, 6}))));
  const double pairs = 2 * 2 * 3 * 5;
  EXPECT_EQ(flops("Attention", Kind::kForward), 2 * pairs * (4 + 6));
  EXPECT_EQ(flops("Attention", Kind::kBackward), 2 * pairs * (3 * 4 + 2 * 6));
}

// Users' operations may have any name.
TEST_F(ProfileTest, OtherOperationsOfTheSameName) {
  const Tensor none, scalar = store_.root().Zeros("scalar", {});
  for (const char* op : {"Linear", "ActivatedLinear", "MatMul", "Attention",
                         "PackedAttention", "Embedding"}) {
    Tape tape;
    tape.set_observer(&profile_);
    Tensor y = scalar.Clone();
    Record(op, y, {scalar, none, scalar}, Save(scalar, none, scalar),
           [](GradientSink& g, const Tensor&, const Tensor&, const Tensor&) {
             g.Add(0, g.dy());
           });
    tape.Backward(y);
    Tensor z = scalar.Clone();
    Record(op, z, {scalar, scalar}, Save(),
           [](GradientSink& g) { g.Add(0, g.dy()); });
    tape.Backward(z);
    EXPECT_EQ(Find(op, Kind::kForward).flops, 0) << op;
    EXPECT_EQ(Find(op, Kind::kBackward).flops, 0) << op;
    EXPECT_EQ(Find(op, Kind::kBackward).calls, 2) << op;
  }
}

TEST_F(ProfileTest, NamesLayers) {
  const nn::Linear up(store_.root().Sub("layers.0.up"), 3, 4);
  const nn::Linear down(store_.root().Sub("layers.0.down"), 4, 3);
  Tape tape;
  tape.set_observer(&profile_);
  tape.Backward(Sum(down(up(w_))));
  for (const char* layer : {"layers.0.up", "layers.0.down"}) {
    EXPECT_EQ(Find("Linear", Kind::kForward, layer).calls, 1) << layer;
    EXPECT_EQ(Find("Linear", Kind::kBackward, layer).calls, 1) << layer;
  }
  EXPECT_EQ(Find("Linear", Kind::kForward).calls, 2);
  EXPECT_THAT(profile_.Table(true), HasSubstr("layers.0.up Linear"));
  EXPECT_THAT(Trace()[0]["args"]["layer"], "layers.0.up");
}

TEST_F(ProfileTest, CountsAllocations) {
  Tape tape;
  tape.set_observer(&profile_);
  {
    const Tensor three[] = {Tensor::Zeros({1}), Tensor::Zeros({1}),
                            Tensor::Zeros({1})};
    Slow(w_, 0, 0);
  }
  EXPECT_EQ(Find("Slow", Kind::kForward).allocations, 4);
  EXPECT_EQ(Find("Slow", Kind::kForward).system_allocations, 0);
  const Tensor huge = Tensor::Empty({1 << 26});
  Slow(w_, 0, 0);
  EXPECT_EQ(Find("Slow", Kind::kForward).system_allocations, 1);
}

TEST_F(ProfileTest, TableFitsAndIsSorted) {
  nn::Params deep = store_.root();
  for (int i = 0; i < 9; ++i) deep = deep.Sub("schicht_ä");
  const nn::Linear layer(deep, 3, 4);
  Tape tape;
  tape.set_observer(&profile_);
  time_ += 5'000'000'000;
  tape.Backward(Sum(layer(w_)));
  {
    const Profile::Span hostile(&profile_, "\x1b[2J\xff\n");
    time_ += 1'234'567;
  }
  for (const bool by_layer : {false, true}) {
    const std::string table = profile_.Table(by_layer);
    std::vector<int64_t> widths;
    for (const auto line : absl::StrSplit(table, '\n')) {
      widths.push_back(CountCharacters(line));
    }
    EXPECT_THAT(widths, Each(::testing::Le(100))) << table;
    EXPECT_LT(table.find("5.00 s"), table.find("1.23 ms")) << table;
    EXPECT_THAT(table, AllOf(HasSubstr("100.0 %"), HasSubstr("total")));
    EXPECT_EQ(table.find('\x1b'), std::string::npos);
  }
  EXPECT_THAT(profile_.Table(true), HasSubstr("schicht_ä Linear"));
}

TEST_F(ProfileTest, AnEmptyProfile) {
  EXPECT_EQ(profile_.Rows().size(), 0u);
  EXPECT_THAT(profile_.Table(), HasSubstr("total"));
  EXPECT_EQ(Trace().size(), 0u);
  const Profile::Span off(nullptr, "off");
}

TEST_F(ProfileTest, TraceNests) {
  {
    const Profile::Span span(&profile_, "step");
    Tape tape;
    tape.set_observer(&profile_);
    const auto f = [this](const Tensor& x) { return Slow(x, 1'500, 2'000); };
    tape.Backward(Sum(Checkpoint(f, w_)));
    time_ += 1;
  }
  const auto slices = Trace();
  std::vector<std::string> names;
  std::vector<std::pair<double, double>> open;
  const auto end = [](const auto& slice) {
    return slice["ts"].template get<double>() +
           slice["dur"].template get<double>();
  };
  for (const auto& slice : slices) {
    EXPECT_TRUE(slice["pid"] == 1 && slice["tid"] == 1) << slice;
    const double begin = slice["ts"];
    while (!open.empty() && open.back().second <= begin) open.pop_back();
    if (!open.empty()) {
      EXPECT_GE(begin, open.back().first) << slice;
      EXPECT_LE(end(slice), open.back().second) << slice;
    }
    open.emplace_back(begin, end(slice));
    names.push_back(std::string(slice["cat"]) + " " +
                    std::string(slice["name"]));
  }
  EXPECT_THAT(names, ::testing::ElementsAre(
                         "span step", "forward Slow", "forward Checkpoint",
                         "forward Sum", "span Backward", "backward Sum",
                         "backward Checkpoint", "again Slow", "backward Slow"));
  EXPECT_EQ(slices[0]["ts"], 0);
  EXPECT_EQ(slices[0]["dur"], 5.001);
  EXPECT_EQ(slices[1]["dur"], 1.5);
  EXPECT_EQ(slices[1]["args"]["shapes"], "[2, 3] -> [2, 3]");
  EXPECT_EQ(slices[5]["args"]["shapes"], "[] -> [2, 3]");
  EXPECT_EQ(slices[8]["ts"], 3.0);
  EXPECT_EQ(slices[8]["dur"], 2.0);
}

TEST_F(ProfileTest, TraceOfWhatIsUnderWayAndHostileNames) {
  const Profile::Span span(&profile_, "\"\\\n\xff</script>");
  time_ += 2'000;
  const auto slices = Trace();
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0]["dur"], 2.0);
  EXPECT_EQ(slices[0]["name"], "\"\\\n\uFFFD</script>");
}

TEST_F(ProfileTest, TheTraceIsBounded) {
  Profile bounded({.trace_slices = 3, .now = [this] { return time_; }});
  for (int i = 0; i < 4; ++i) {
    const Profile::Span outer(&bounded, "outer");
    const Profile::Span inner(&bounded, "inner");
    time_ += 1;
  }
  EXPECT_EQ(bounded.Rows()[0].calls, 4);
  ASSERT_TRUE(bounded.WriteChromeTrace(Path("trace.json")).ok());
  const auto trace = nlohmann::json::parse(Contents(Path("trace.json")));
  EXPECT_EQ(trace["traceEvents"].size(), 1u + 3);
  EXPECT_EQ(trace["otherData"]["slices_left_out"], "5");
}

TEST_F(ProfileTest, AnUnwritableTraceIsAnError) {
  Step();
  const auto status = profile_.WriteChromeTrace(Path("none/trace.json"));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("none/trace.json"));
}

// By the real clock; what it reads is not tested.
TEST_F(ProfileTest, ARealStep) {
  Profile profile;
  AdamW optimizer(store_);
  for (int step = 0; step < 3; ++step) {
    Tape tape;
    tape.set_observer(&profile);
    tape.Backward(Sum(Square(w_)));
    const Profile::Span span(&profile, "optimizer");
    optimizer.Step();
  }
  for (const Row& row : profile.Rows()) {
    EXPECT_EQ(row.calls, row.name == "(between)" ? 0 : 3) << row.name;
    EXPECT_GE(row.nanoseconds, 0);
  }
}

}  // namespace
}  // namespace wengert::train
