// Comparisons, logic and the kinds of floats.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Two = Tensor (*)(const Tensor&, const Tensor&);
using One = Tensor (*)(const Tensor&);

TEST(CompareTest, KnownValues) {
  for (DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    const Tensor a = Values({1, 2, 3}, dtype), b = Values({2, 2, 2}, dtype);
    EXPECT_EQ(Equal(a, b).dtype(), DType::kBool);
    EXPECT_THAT(Equal(a, b).ToVector(), ElementsAre(0, 1, 0));
    EXPECT_THAT(NotEqual(a, b).ToVector(), ElementsAre(1, 0, 1));
    EXPECT_THAT(Less(a, b).ToVector(), ElementsAre(1, 0, 0));
    EXPECT_THAT(LessEqual(a, b).ToVector(), ElementsAre(1, 1, 0));
    EXPECT_THAT(Greater(a, b).ToVector(), ElementsAre(0, 0, 1));
    EXPECT_THAT(GreaterEqual(a, b).ToVector(), ElementsAre(0, 1, 1));
    EXPECT_EQ(Less(a, Values({2, 1}, {1, 2}, dtype)).shape(), (Shape{2, 3}));
    EXPECT_EQ(Less(a, Tensor::Zeros({0, 1}, dtype)).shape(), (Shape{0, 3}));
  }
  // Numbers that are one as a float.
  const Tensor big = Tensor::Of<int64_t>({2}, {(1LL << 60) + 1, 1LL << 60});
  EXPECT_THAT(Greater(big, Tensor::Of<int64_t>({1}, {1LL << 60})).ToVector(),
              ElementsAre(1, 0));
}

TEST(CompareTest, NothingHoldsOfNanButNotEqual) {
  for (DType dtype : kFloats) {
    const Tensor nan = Values({NAN, NAN, 1}, dtype);
    const Tensor other = Values({NAN, 1, NAN}, dtype);
    for (Two op : {Equal, Less, LessEqual, Greater, GreaterEqual}) {
      EXPECT_THAT(op(nan, other).ToVector(), ElementsAre(0, 0, 0));
    }
    EXPECT_THAT(NotEqual(nan, other).ToVector(), ElementsAre(1, 1, 1));
  }
}

TEST(CompareTest, LogicOfBools) {
  const Tensor a = Tensor::From({2, 2}, std::vector<bool>{0, 0, 1, 1});
  const Tensor b = Tensor::From({2}, std::vector<bool>{0, 1});
  EXPECT_THAT(LogicalAnd(a, b).ToVector(), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(LogicalOr(a, b).ToVector(), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(LogicalXor(a, b).ToVector(), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(LogicalNot(b).ToVector(), ElementsAre(1, 0));
  EXPECT_THAT(Equal(a, b).ToVector(), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(NotEqual(a, b).ToVector(), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(LessEqual(a, b).ToVector(), ElementsAre(1, 1, 0, 1));
  EXPECT_EQ(LogicalNot(Tensor::Zeros({0, 3}, DType::kBool)).shape(),
            (Shape{0, 3}));
}

TEST(CompareTest, KindsOfFloats) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({0, -1, 1e30, kInf, -kInf, NAN}, dtype);
    EXPECT_THAT(IsNan(x).ToVector(), ElementsAre(0, 0, 0, 0, 0, 1));
    EXPECT_THAT(IsInf(x).ToVector(), ElementsAre(0, 0, 0, 1, 1, 0));
    EXPECT_THAT(IsFinite(x).ToVector(), ElementsAre(1, 1, 1, 0, 0, 0));
    EXPECT_EQ(IsNan(x).dtype(), DType::kBool);
  }
}

TEST(CompareTest, CarriesNoGradient) {
  const Tensor x = Values({1, 2}, DType::kFloat32);
  Tape tape;
  tape.Watch(x);
  EXPECT_FALSE(tape.Tracks(LessEqual(x, x).To(DType::kFloat32)));
  EXPECT_FALSE(tape.Tracks(IsNan(x)));
}

TEST(CompareTest, ErrorsNameTheOperation) {
  const Tensor a = Tensor::Zeros({2, 3}), b = Tensor::Zeros({4, 3});
  const Tensor d = Tensor::Zeros({2, 3}, DType::kInt32);
  const std::pair<std::string, Two> comparisons[] = {
      {"Equal", Equal},     {"NotEqual", NotEqual},
      {"Less", Less},       {"LessEqual", LessEqual},
      {"Greater", Greater}, {"GreaterEqual", GreaterEqual}};
  for (const auto& [name, op] : comparisons) {
    EXPECT_THAT(ErrorOf([&, op = op] { op(a, b); }),
                AllOf(StartsWith(name + ": "), HasSubstr("[2, 3]"),
                      HasSubstr("[4, 3]"), HasSubstr("wanted")));
    EXPECT_EQ(ErrorOf([&, op = op] { op(a, d); }),
              name +
                  ": got float32 [2, 3] and int32 [2, 3]; wanted operands of "
                  "one dtype");
    EXPECT_THAT(ErrorOf([&, op = op] { op(a, {}); }),
                AllOf(StartsWith(name + ": "), HasSubstr("undefined")));
  }
  const Tensor t = SomeTrue({2, 3});
  const std::pair<std::string, Two> logic[] = {{"LogicalAnd", LogicalAnd},
                                               {"LogicalOr", LogicalOr},
                                               {"LogicalXor", LogicalXor}};
  for (const auto& [name, op] : logic) {
    EXPECT_EQ(ErrorOf([&, op = op] { op(t, a); }),
              name + ": got bool [2, 3] and float32 [2, 3]; wanted bool");
    EXPECT_THAT(ErrorOf([&, op = op] { op({}, t); }),
                StartsWith(name + ": got undefined"));
    EXPECT_THAT(ErrorOf([&, op = op] {
                  op(t, SomeTrue({4, 3}));
                }),
                AllOf(StartsWith(name + ": "), HasSubstr("[4, 3]")));
  }
  EXPECT_EQ(ErrorOf([&] { LogicalNot(a); }),
            "LogicalNot: got float32 [2, 3]; wanted bool");
  const std::pair<std::string, One> kinds[] = {
      {"IsNan", IsNan}, {"IsInf", IsInf}, {"IsFinite", IsFinite}};
  for (const auto& [name, op] : kinds) {
    EXPECT_THAT(ErrorOf([&, op = op] { op(d); }),
                StartsWith(name + ": got int32 [2, 3]; wanted float32"));
  }
}

TEST(CompareTest, SameBitsForAnyNumberOfThreads) {
  const int before = NumThreads();
  const Tensor a = Spread({301, 1, 157}, -1, 1), b = Spread({3, 157}, -1, 1);
  const auto run = [&] {
    const Tensor less = Less(a, b);
    return LogicalXor(LogicalAnd(less, LogicalNot(IsFinite(b))),
                      LogicalOr(LessEqual(b, a), IsNan(a)));
  };
  SetNumThreads(1);
  const Tensor one = run();
  for (int threads : {2, 5}) {
    SetNumThreads(threads);
    EXPECT_TRUE(SameBits(run(), one));
  }
  SetNumThreads(before);
}

}  // namespace
}  // namespace wengert
