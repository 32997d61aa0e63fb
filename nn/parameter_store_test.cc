// Names, memory, gradients and lifetime of parameters.
#include "nn/parameter_store.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/ops.h"
#include "autograd/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert::nn {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::string> NamesOf(const ParameterStore& store) {
  std::vector<std::string> names;
  for (const Parameter* p : store.parameters()) names.push_back(p->name);
  return names;
}

TEST(ParameterStore, NamesByPath) {
  ParameterStore store;
  const Params layer = store.root().Sub("layers").Sub(0);
  EXPECT_EQ(layer.path(), "layers.0");
  layer.Sub("mlp").Zeros("weight", {2, 3});
  layer.Ones("gain", {3});
  store.root().Constant("scale", {}, 0.5);
  EXPECT_THAT(NamesOf(store),
              ElementsAre("layers.0.mlp.weight", "layers.0.gain", "scale"));
  EXPECT_EQ(store.size(), 3);
  EXPECT_EQ(store.num_elements(), 10);
  EXPECT_THAT(store.Find("layers.0.gain").ToVector(), ElementsAre(1, 1, 1));
  EXPECT_EQ(store.Find("scale").item(), 0.5);
  EXPECT_EQ(store.Find("scale").dtype(), DType::kFloat32);
}

TEST(ParameterStore, RefusesBadNames) {
  ParameterStore store;
  const Params p = store.root().Sub("a").Sub("b");
  p.Zeros("weight", {2});
  EXPECT_THAT([&] { p.Uniform("weight", {2}, 1); },
              ThrowsMessage<Error>("Params::Uniform: 'a.b.weight' exists "
                                   "already"));
  EXPECT_THAT([&] { p.Ones("", {2}); },
              ThrowsMessage<Error>(HasSubstr("under 'a.b' is empty")));
  EXPECT_THAT([&] { p.Sub(""); }, ThrowsMessage<Error>(HasSubstr("empty")));
  EXPECT_EQ(store.size(), 1);
}

TEST(ParameterStore, RefusesBadArguments) {
  EXPECT_THROW(ParameterStore{DType::kInt32}, Error);
  ParameterStore store;
  EXPECT_THROW(store.root().Uniform("w", {2}, -1), Error);
  EXPECT_THROW(store.root().Uniform("w", {2}, std::nan("")), Error);
  EXPECT_THROW(store.root().Normal("w", {2}, -1), Error);
  EXPECT_EQ(store.size(), 0);
}

TEST(ParameterStore, FindNamesTheNearest) {
  ParameterStore store;
  EXPECT_THAT([&] { store.Find("w"); }, ThrowsMessage<Error>(HasSubstr("w")));
  store.root().Zeros("layers.0.weight", {1});
  store.root().Zeros("layers.0.bias", {1});
  store.root().Zeros("embedding", {1});
  EXPECT_THAT([&] { store.Find("layer.0.wieght"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("'layer.0.wieght'"),
                                         HasSubstr("'layers.0.weight'"))));
}

TEST(ParameterStore, AParameterChangesNoOthersStart) {
  ParameterStore one(DType::kFloat32, 5), two(DType::kFloat32, 5),
      other_seed(DType::kFloat32, 6);
  two.root().Uniform("new", {7}, 1);
  const auto start = [](ParameterStore& store) {
    return store.root().Sub("up").Normal("weight", {3, 5}, 2, 1).ToVector();
  };
  const auto values = start(one);
  EXPECT_EQ(start(two), values);
  EXPECT_NE(start(other_seed), values);
  EXPECT_NE(one.root().Normal("weight", {3, 5}, 2, 1).ToVector(), values);

  std::vector<float> want(15);
  FillNormal(StreamKey(5, "up.weight"), 0, 1, 2, 15, want.data());
  EXPECT_THAT(values, ::testing::ElementsAreArray(want));
  std::vector<float> uniform(7);
  FillUniform(StreamKey(5, "new"), 0, -1, 1, 7, uniform.data());
  EXPECT_THAT(two.Find("new").ToVector(), ::testing::ElementsAreArray(uniform));
}

// Every byte that lies between the parameters.
std::vector<char> Gaps(const Tensor& flat, const Segment& s) {
  const auto* bytes = static_cast<const char*>(flat.impl()->data);
  const int64_t size = static_cast<int64_t>(ByteSize(flat.dtype()));
  std::vector<char> gaps;
  for (size_t i = 0; i < s.parameters.size(); ++i) {
    const int64_t end = i + 1 < s.parameters.size() ? s.offsets[i + 1] : s.used;
    gaps.insert(gaps.end(),
                bytes + (s.offsets[i] + s.parameters[i]->value.size()) * size,
                bytes + end * size);
  }
  return gaps;
}

TEST(ParameterStore, LiesFlatAlignedAndStill) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    ParameterStore store(dtype);
    std::vector<Tensor> tensors;
    std::vector<const void*> places;
    const auto add = [&](const Shape& shape) {
      tensors.push_back(store.root().Ones(absl::StrCat(places.size()), shape));
      places.push_back(tensors.back().impl()->data);
    };
    for (int64_t n : {1, 17, 0, 16}) add({n});
    add({1'000'000});  // more than the first segment
    for (int i = 0; i < 100; ++i) add({3, 1001});
    EXPECT_GT(store.segments().size(), 1u);
    EXPECT_LT(store.segments().size(), 4u);

    Tape tape;
    tape.Backward(tensors[1], Tensor::Ones({17}, dtype));
    size_t index = 0;
    for (const Segment& s : store.segments()) {
      EXPECT_LE(s.used, s.values.size());
      ASSERT_EQ(s.gradients.shape(), s.values.shape());
      EXPECT_THAT(Gaps(s.values, s), Each(0));
      EXPECT_THAT(Gaps(s.gradients, s), Each(0));
      for (size_t i = 0; i < s.parameters.size(); ++i, ++index) {
        const Parameter& p = *s.parameters[i];
        EXPECT_EQ(&p, store.parameters()[index]);
        const void* place = p.value.impl()->data;
        EXPECT_EQ(place, places[index]);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(place) % 64, 0u);
        const auto offset = s.offsets[i] * ByteSize(dtype);
        EXPECT_EQ(place, static_cast<char*>(s.values.impl()->data) + offset);
        EXPECT_EQ(p.grad.impl()->data,
                  static_cast<char*>(s.gradients.impl()->data) + offset);
      }
    }
    EXPECT_EQ(index, places.size());
  }
}

TEST(ParameterStore, EachHasAVersionOfItsOwn) {
  ParameterStore store;
  Tensor a = store.root().Zeros("a", {2}), b = store.root().Zeros("b", {2});
  const uint64_t version = b.version();
  a.mutable_data<float>()[0] = 1;
  EXPECT_EQ(b.version(), version);
  Tape tape;
  const Tensor y = Sum(a * a);
  b.mutable_data<float>()[0] = 1;
  tape.Backward(y);
  EXPECT_THAT(a.grad().ToVector(), ElementsAre(2, 0));
}

TEST(ParameterStore, GathersGradientsUntilZeroGrad) {
  ParameterStore store;
  const Tensor a = store.root().Ones("a", {2});
  EXPECT_FALSE(a.grad().defined());
  EXPECT_FALSE(store.segments()[0].gradients.defined());
  Tape tape;
  tape.Backward(Sum(a * 3));
  tape.Backward(Sum(a * 4));
  EXPECT_THAT(a.grad().ToVector(), ElementsAre(7, 7));
  // One that is made later gets a gradient too.
  const Tensor b = store.root().Ones("b", {3});
  EXPECT_FALSE(b.grad().defined());
  tape.Backward(Sum(b * 5));
  EXPECT_THAT(b.grad().ToVector(), ElementsAre(5, 5, 5));
  EXPECT_THAT(a.grad().ToVector(), ElementsAre(7, 7));
  store.ZeroGrad();
  EXPECT_FALSE(a.grad().defined());
  EXPECT_FALSE(b.grad().defined());
  tape.Backward(Sum(a * 2));
  EXPECT_THAT(a.grad().ToVector(), ElementsAre(2, 2));
}

TEST(ParameterStore, HandlesOutliveIt) {
  Tensor a;
  {
    ParameterStore store;
    a = store.root().Constant("a", {2}, 3);
    EXPECT_NE(a.impl()->parameter, nullptr);
  }
  EXPECT_EQ(a.impl()->parameter, nullptr);  // a constant from now on
  EXPECT_FALSE(a.grad().defined());
  Tape tape;
  EXPECT_THAT((a * 2).ToVector(), ElementsAre(6, 6));
  EXPECT_EQ(tape.size(), 0u);
}

TEST(ParameterStore, MustOutliveATape) {
  std::optional<ParameterStore> store(std::in_place);
  const Params root = store->root();
  Tensor a = root.Constant("a", {}, 3);
  Tape tape;
  const Tensor y = a * a;
  store.reset();
  EXPECT_THAT([&] { tape.Backward(y); },
              ThrowsMessage<Error>(HasSubstr("ParameterStore has ended")));
  EXPECT_THAT([&] { root.Zeros("b", {}); },
              ThrowsMessage<Error>(HasSubstr("ParameterStore has ended")));
}

TEST(ParameterStore, Moves) {
  ParameterStore store;
  const Tensor a = store.root().Ones("a", {});
  ParameterStore moved = std::move(store);
  Tape tape;
  tape.Backward(a * 2);
  EXPECT_EQ(moved.Find("a").grad().item(), 2);
  ParameterStore other;
  const Tensor b = other.root().Ones("b", {});
  const Tensor y = b * 2;
  other = std::move(moved);  // ends the store of b
  EXPECT_THROW(tape.Backward(y), Error);
  EXPECT_EQ(other.size(), 1);
  // What was moved from says so.
  const auto moved_from = ThrowsMessage<Error>(HasSubstr("moved from"));
  EXPECT_THAT([&] { store.size(); }, moved_from);
  EXPECT_THAT([&] { store.root(); }, moved_from);
  EXPECT_THAT([&] { store.ZeroGrad(); }, moved_from);
  EXPECT_THAT([&] { other.CopyFrom(store); }, moved_from);
  Params root = other.root();
  const Params taken = std::move(root);
  EXPECT_THAT([&] { root.Ones("c", {}); }, moved_from);
  EXPECT_THAT([&] { root.dtype(); }, moved_from);
  store = ParameterStore();
  EXPECT_EQ(store.size(), 0);
}

TEST(LayerPath, NamesTheLayerInMessages) {
  ParameterStore store;
  const Params p = store.root().Sub("layers").Sub(3);
  const Tensor a = p.Constant("a", {2}, 0);
  const LayerPath path = p.layer_path(), root = store.root().layer_path();
  Tape tape;
  tape.set_check_finite(true);
  const auto forward = [&](const LayerPath& path) {
    const auto scope = path.Open();
    return Log(a);
  };
  EXPECT_THAT([&] { forward(path); },
              ThrowsMessage<Error>(HasSubstr("Log in layers.3: forward")));
  EXPECT_THAT([&] { forward(root); },
              ThrowsMessage<Error>(HasSubstr("Log in the root layer")));
  EXPECT_THAT([&] { forward(LayerPath()); },
              ThrowsMessage<Error>(HasSubstr("Log in the root layer")));
  EXPECT_THAT([&] { Log(a); }, ThrowsMessage<Error>(HasSubstr("Log: for")));
  Tensor y;
  {
    const auto scope = path.Open();
    y = Sum(Sqrt(a));
  }
  EXPECT_THAT([&] { tape.Backward(y); },
              ThrowsMessage<Error>(HasSubstr("Sqrt in layers.3: backward")));
}

TEST(LayerPath, KeepsItsTextAfterTheStore) {
  LayerPath path;
  {
    ParameterStore store;
    path = store.root().Sub("gone").layer_path();
  }
  const auto scope = path.Open();
  Tape tape;
  tape.set_check_finite(true);
  const Tensor x = Tensor::Zeros({1});
  const auto inner = path.Open();
  EXPECT_THAT([&] { Log(x); }, ThrowsMessage<Error>(HasSubstr("Log in gone")));
}

TEST(ParameterStore, RefusesTwoBackwardsAtOnce) {
  ParameterStore store;
  const Tensor a = store.root().Ones("a", {});
  std::atomic<bool> inside{false}, done{false};
  std::thread first([&] {
    Tape tape;
    const Tensor y = a * 2;
    tape.OnGradient(y, [&](const Tensor&) {
      inside = true;
      while (!done) std::this_thread::yield();
      return Tensor();
    });
    tape.Backward(y);
  });
  while (!inside) std::this_thread::yield();
  {
    Tape tape;
    const Tensor y = a * 3;
    EXPECT_THAT([&] { tape.Backward(y, {.retain = true}); },
                ThrowsMessage<Error>(HasSubstr("another Backward")));
    EXPECT_THAT([&] { store.ZeroGrad(); },
                ThrowsMessage<Error>(HasSubstr("a Backward is writing")));
    EXPECT_THAT([&] { store.root().Zeros("b", {}); },
                ThrowsMessage<Error>(HasSubstr("a Backward is writing")));
    EXPECT_EQ(tape.Gradient(y, a, {.retain = true}).item(), 3);
  }
  done = true;
  first.join();
  EXPECT_EQ(a.grad().item(), 2);
  Tape tape;
  tape.Backward(a * 3);
  EXPECT_EQ(a.grad().item(), 5);
}

}  // namespace
}  // namespace wengert::nn
