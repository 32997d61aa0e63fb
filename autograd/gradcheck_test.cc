// The checker must pass what is right and catch what is wrong. The faults are
// operations written here as a user would write them outside the library.
#include "autograd/gradcheck.h"

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/error.h"
#include "autograd/ops.h"
#include "autograd/parameter_testlib.h"
#include "autograd/tape.h"
#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Inputs = absl::Span<const Tensor>;

Tensor Sample(const Shape& shape, uint64_t seed = 1) {
  Tensor x = Tensor::Empty(shape, DType::kFloat64);
  FillUniform(seed, 0, 0.5, 2, x.size(), x.mutable_data<double>());
  return x;
}

// ---- Right and wrong operations ---------------------------------------------

// y = x³ by a kernel, with `factor` x² for 3 x², which `assign` stores where it
// should add.
Tensor Cube(const Tensor& x, double factor = 3, bool assign = false) {
  Tensor y = (x * x * x).Detach();
  Record(
      "Cube", y, {x}, Save(x),
      [=](GradientSink& g, const Tensor& x) {
        const auto dx = g.Into<double>(0);
        for (int64_t i = 0; i < x.size(); ++i) {
          const double v = x.data<double>()[i];
          const double d = g.dy().data<double>()[i] * factor * v * v;
          dx.data[i] = dx.accumulate && !assign ? dx.data[i] + d : d;
        }
      },
      [](const Tensor& x) { return x * x * x; });
  return y;
}

// y = a b + a, without the second term of da.
Tensor MissingTerm(const Tensor& a, const Tensor& b) {
  Tensor y = (a * b + a).Detach();
  Record("MissingTerm", y, {a, b}, Save(a, b),
         [](GradientSink& g, const Tensor& a, const Tensor& b) {
           g.Add(0, g.dy() * b);
           g.Add(1, g.dy() * a);
         });
  return y;
}

// y = a b, with dyᵀ for dy in da: right only for symmetric cotangents.
Tensor TransposedResult(const Tensor& a, const Tensor& b) {
  Tensor y = MatMul(a, b).Detach();
  Record("TransposedResult", y, {a, b}, Save(a, b),
         [](GradientSink& g, const Tensor& a, const Tensor& b) {
           g.Add(0, MatMul(b, g.dy(), {true, true}));
           g.Add(1, MatMul(a, g.dy(), {.transpose_a = true}));
         });
  return y;
}

// y = x²: dx = 2 x, right only for a cotangent of ones.
Tensor IgnoresCotangent(const Tensor& x) {
  Tensor y = Square(x).Detach();
  Record("IgnoresCotangent", y, {x}, Save(x),
         [](GradientSink& g, const Tensor& x) { g.Add(0, 2 * x); });
  return y;
}

// y = x, whose rule doubles element 0.
Tensor DoublesFirst(const Tensor& x) {
  Tensor y = x.Clone();
  Record("DoublesFirst", y, {x}, Save(), [](GradientSink& g) {
    Tensor first = Tensor::Ones(g.dy().shape(), DType::kFloat64);
    first.mutable_data<double>()[0] = 2;
    g.Add(0, g.dy() * first);
  });
  return y;
}

// y = a b, whose rule forgets db unless da is wanted too.
Tensor NeedsBoth(const Tensor& a, const Tensor& b) {
  Tensor y = (a * b).Detach();
  Record("NeedsBoth", y, {a, b}, Save(a, b),
         [](GradientSink& g, const Tensor& a, const Tensor& b) {
           g.Add(0, g.dy() * b);
           if (g.Needs(0)) g.Add(1, g.dy() * a);
         });
  return y;
}

// y = a b, which counts a tensor that stands in both places once.
Tensor CountsOnce(const Tensor& a, const Tensor& b) {
  Tensor y = (a * b).Detach();
  Record("CountsOnce", y, {a, b}, Save(a, b),
         [](GradientSink& g, const Tensor& a, const Tensor& b) {
           g.Add(0, g.dy() * b);
           if (a.impl() != b.impl()) g.Add(1, g.dy() * a);
         });
  return y;
}

struct Fault {
  const char* name;
  GradCheckFunction f;
  std::vector<Shape> shapes;
  const char* where;  // in the message
};

std::vector<Fault> FirstOrderFaults() {
  return {
      {"WrongFactor", [](Inputs x) { return Cube(x[0], 3.001); }, {{2, 3}}, ""},
      {"MissingTerm",
       [](Inputs x) { return MissingTerm(x[0], x[1]); },
       {{2, 3}, {2, 3}},
       "input 0 (x)"},
      {"AssignForAdd", [](Inputs x) { return Cube(x[0], 3, true); }, {{4}}, ""},
      {"AssignForAddWithin",
       [](Inputs x) { return Cube(x[0], 3, true) + Square(x[0]); },
       {{4}},
       ""},
      {"TransposedResult",
       [](Inputs x) { return TransposedResult(x[0], x[1]); },
       {{3, 3}, {3, 3}},
       "input 0 (x)"},
      {"IgnoresCotangent",
       [](Inputs x) { return IgnoresCotangent(x[0]); },
       {{2, 2}},
       ""},
      {"DoublesFirst",
       [](Inputs x) { return DoublesFirst(x[0]); },
       {{20, 20}},
       "at index [0, 0]"},
      {"NoRule", [](Inputs x) { return Square(x[0]).Detach(); }, {{3}}, ""},
      {"NeedsBoth",
       [](Inputs x) { return NeedsBoth(x[0], x[1]); },
       {{3}, {3}},
       "input 1 (y)"},
      {"CountsOnce",
       [](Inputs x) { return CountsOnce(x[0], x[0]); },
       {{3}},
       ""},
  };
}

// A composition with the right value and the right first derivative: x³ as
// 3 x c² - 2 c³ with constant c = x.
Tensor StiffComposition(const Tensor& x) {
  Tensor y = (x * x * x).Detach();
  Record(
      "StiffComposition", y, {x}, Save(x),
      [](GradientSink& g, const Tensor& x) { g.Add(0, g.dy() * 3 * x * x); },
      [](const Tensor& x) {
        const Tensor c = x.Detach();
        return 3 * x * c * c - 2 * c * c * c;
      });
  return y;
}

// A composition of something else.
Tensor OtherComposition(const Tensor& x) {
  Tensor y = (x * x * x).Detach();
  Record(
      "OtherComposition", y, {x}, Save(x),
      [](GradientSink& g, const Tensor& x) { g.Add(0, g.dy() * 3 * x * x); },
      [](const Tensor& x) { return x * x; });
  return y;
}

// Primitives whose rules are right, but for a tape that records the pass.
Tensor StiffFactor(const Tensor& x) {
  Tensor y = Square(x).Detach();
  Record("StiffFactor", y, {x}, Save(x), [](GradientSink& g, const Tensor& x) {
    g.Add(0, g.dy() * 2 * x.Detach());
  });
  return y;
}
Tensor StiffCotangent(const Tensor& x) {
  Tensor y = Square(x).Detach();
  Record("StiffCotangent", y, {x}, Save(x),
         [](GradientSink& g, const Tensor& x) {
           g.Add(0, g.dy().Detach() * 2 * x);
         });
  return y;
}

std::vector<Fault> SecondOrderFaults() {
  return {
      {"StiffComposition",
       [](Inputs x) { return StiffComposition(x[0]); },
       {{4}},
       "gradient of the gradient by input 0 (x)"},
      {"OtherComposition",
       [](Inputs x) { return OtherComposition(x[0]); },
       {{4}},
       "pass that is recorded by input 0 (x)"},
      {"StiffFactor",
       [](Inputs x) { return StiffFactor(x[0]); },
       {{4}},
       "gradient of the gradient by input 0 (x)"},
      {"StiffCotangent",
       [](Inputs x) { return StiffCotangent(x[0]); },
       {{2, 2}},
       "gradient of the gradient by the cotangent"},
  };
}

struct Mode {
  const char* name;
  int directions;
};
constexpr Mode kModes[] = {{"Full", 0}, {"OneDirection", 1}, {"Directions", 3}};

GradCheckReport Check(const Fault& fault, const Mode& mode, int order,
                      uint64_t seed = 0) {
  std::vector<Tensor> inputs;
  for (const Shape& s : fault.shapes) {
    inputs.push_back(Sample(s, inputs.size() + 1));
  }
  return GradCheck(fault.f, inputs,
                   {.name = fault.name,
                    .input_names = {"x", "y"},
                    .order = order,
                    .directions = mode.directions,
                    .seed = seed});
}

TEST(GradCheckTest, CatchesFaultsInEveryMode) {
  for (const Fault& fault : FirstOrderFaults()) {
    for (const Mode& mode : kModes) {
      for (int order : {1, 2}) {
        SCOPED_TRACE(std::string(fault.name) + " " + mode.name);
        const GradCheckReport report = Check(fault, mode, order);
        EXPECT_FALSE(report);
        EXPECT_GT(report.worst, 1);
        EXPECT_THAT(report.message,
                    AllOf(HasSubstr(std::string(fault.name) + ": gradient"),
                          HasSubstr("input "), HasSubstr("at index ["),
                          HasSubstr(fault.where)));
      }
    }
  }
}

TEST(GradCheckTest, CatchesSecondOrderFaultsInEveryMode) {
  for (const Fault& fault : SecondOrderFaults()) {
    for (const Mode& mode : kModes) {
      SCOPED_TRACE(std::string(fault.name) + " " + mode.name);
      const GradCheckReport first = Check(fault, mode, 1);
      EXPECT_TRUE(first) << first;
      const GradCheckReport second = Check(fault, mode, 2);
      EXPECT_FALSE(second);
      EXPECT_THAT(second.message,
                  AllOf(HasSubstr(fault.name), HasSubstr("at index ["),
                        HasSubstr(fault.where)));
    }
  }
}

// One wrong element of 400 is found along a single direction, whatever it is.
TEST(GradCheckTest, DirectionsFindOneElementForEverySeed) {
  const Fault fault = FirstOrderFaults()[6];
  ASSERT_STREQ(fault.name, "DoublesFirst");
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const GradCheckReport report = Check(fault, kModes[1], 1, seed);
    EXPECT_FALSE(report) << seed;
    EXPECT_THAT(report.message, HasSubstr("at index [0, 0]")) << seed;
  }
}

TEST(GradCheckTest, PassesWhatIsRight) {
  const auto f = [](Inputs x) {
    return MatMul(Cube(x[0]), x[1] * x[1]) + Exp(x[2]) / x[3];
  };
  const std::vector<Tensor> inputs = {Sample({2, 3}, 1), Sample({3, 4}, 2),
                                      Sample({4}, 3), Sample({2, 1}, 4)};
  for (const Mode& mode : kModes) {
    const GradCheckReport report =
        GradCheck(f, inputs, {.order = 2, .directions = mode.directions});
    EXPECT_TRUE(report) << mode.name << ": " << report;
    EXPECT_LT(report.worst, 0.5) << mode.name;
    EXPECT_EQ(report.message, "");
  }
}

TEST(GradCheckTest, ManyInputsAndSizesOfNothing) {
  const auto f = [](Inputs x) {
    Tensor y = x[0];
    for (size_t i = 1; i < x.size(); ++i) y = y * x[i];
    return y;
  };
  std::vector<Tensor> inputs;
  for (int i = 0; i < 6; ++i) inputs.push_back(Sample({2}, i));
  EXPECT_TRUE(GradCheck(f, inputs, {.order = 2}));
  for (Tensor& x : inputs) x = Sample({0, 3});
  EXPECT_TRUE(GradCheck(f, inputs, {.order = 2}));
  EXPECT_TRUE(GradCheck(f, inputs, {.order = 2, .directions = 2}));
  // A function that gives an input back, and one that does not read it.
  EXPECT_TRUE(GradCheck([](Inputs x) { return x[1]; },
                        {Sample({2}), Sample({})}, {.order = 2}));
}

TEST(GradCheckTest, ReportGivesBothValues) {
  const Tensor x = Tensor::From<double>({1, 2}, {1, 2});
  const GradCheckReport report =
      GradCheck([](Inputs x) { return Sum(Cube(x[0], 6)); }, {x},
                {.name = "Cubes", .input_names = {"sides"}});
  // d/dx of c Σ x³ at 2 is 12 c, and the faulty rule has 24 c.
  EXPECT_THAT(
      report.message,
      testing::MatchesRegex("Cubes: gradient by input 0 \\(sides\\), float64 "
                            "\\[1, 2\\], at index \\[0, 1\\]: numeric .*, "
                            "analytic .* \\(difference .*, allowed .*\\)"));
  double numeric = 0, analytic = 0;
  ASSERT_EQ(std::sscanf(report.message.c_str() + report.message.find("numeric"),
                        "numeric %lf, analytic %lf", &numeric, &analytic),
            2);
  EXPECT_NEAR(analytic / numeric, 2, 1e-6);
  EXPECT_GE(std::abs(numeric), 12 * 0.5);
  std::ostringstream out;
  out << report;
  EXPECT_EQ(out.str(), report.message);
}

TEST(GradCheckTest, AliasedInputCountsBothPlaces) {
  const Tensor x = Sample({3});
  const auto product = [](Inputs x) { return x[0] * x[1]; };
  EXPECT_TRUE(GradCheck(product, {x, x}, {.order = 2}));
  const auto faulty = [](Inputs x) { return CountsOnce(x[0], x[1]); };
  EXPECT_TRUE(GradCheck(faulty, {x, Sample({3}, 2)}));
  for (const Mode& mode : kModes) {
    EXPECT_FALSE(GradCheck(faulty, {x, x}, {.directions = mode.directions}));
  }
  // Tensors that merely share memory are two variables.
  EXPECT_TRUE(GradCheck(faulty, {x, x.Detach()}));
}

TEST(GradCheckTest, NotFiniteFails) {
  const auto log = [](Inputs x) { return Log(x[0]); };
  GradCheckReport report =
      GradCheck(log, {Tensor::From<double>({2}, {1, 0})}, {.name = "Log"});
  EXPECT_FALSE(report);
  EXPECT_THAT(report.message, AllOf(HasSubstr("Log: the value at index [1]"),
                                    HasSubstr("inf")));
  // A finite value with an infinite slope.
  report = GradCheck([](Inputs x) { return Sqrt(x[0]); },
                     {Tensor::From<double>({2}, {1, 0})}, {.name = "Sqrt"});
  EXPECT_FALSE(report);
  EXPECT_THAT(report.message, HasSubstr("at index [1]"));
  for (const Mode& mode : kModes) {
    // A rule that makes NaN of finite values.
    report = GradCheck(
        [](Inputs x) {
          Tensor y = x[0].Clone();
          Record("Bad", y, {x[0]}, Save(), [](GradientSink& g) {
            g.Add(0, g.dy() * std::numeric_limits<double>::quiet_NaN());
          });
          return y;
        },
        {Sample({3})}, {.directions = mode.directions});
    EXPECT_FALSE(report);
    EXPECT_THAT(report.message, HasSubstr("nan"));
  }
}

TEST(GradCheckTest, GeneratorIsRewoundBeforeEachCall) {
  Generator generator(7, 5);
  const auto f = [](Inputs x) {
    return Dropout(x[0], 0.5) * Dropout(x[0], 0.25);
  };
  const Tensor x = Sample({5, 4});
  for (const Mode& mode : kModes) {
    const GradCheckReport report = GradCheck(
        f, {x},
        {.order = 2, .directions = mode.directions, .generator = &generator});
    EXPECT_TRUE(report) << report;
    EXPECT_EQ(generator.offset(), 5u);
  }
  EXPECT_THROW(GradCheck(f, {x}), Error);  // a tape without randomness
  // A function with randomness of its own.
  uint64_t calls = 0;
  const GradCheckReport report = GradCheck(
      [&](Inputs x) { return x[0] * static_cast<double>(++calls); }, {x});
  EXPECT_FALSE(report);
  EXPECT_THAT(report.message, HasSubstr("two calls gave different values"));
}

TEST(GradCheckTest, OtherInputsPassThrough) {
  const auto f = [](Inputs x) { return Embedding(x[0], x[1]) * x[2]; };
  const Tensor ids = Tensor::Of<int32_t>({3}, {1, 0, 1});
  const Tensor table = Sample({2, 2}), scale = Sample({3, 2}, 2);
  EXPECT_TRUE(GradCheck(f, {table, ids, scale}, {.order = 2}));
  // A fault in an input that is not wanted is nobody's business.
  const auto faulty = [](Inputs x) { return MissingTerm(x[0], x[1]); };
  EXPECT_TRUE(
      GradCheck(faulty, {table, table.Clone()}, {.wanted = {false, true}}));
  EXPECT_FALSE(
      GradCheck(faulty, {table, table.Clone()}, {.wanted = {true, false}}));
}

TEST(GradCheckTest, SubsetsCanBeLeftOut) {
  const auto f = [](Inputs x) { return NeedsBoth(x[0], x[1]); };
  const std::vector<Tensor> inputs = {Sample({2}, 1), Sample({2}, 2)};
  EXPECT_TRUE(GradCheck(f, inputs, {.subsets = false}));
  const GradCheckReport report = GradCheck(f, inputs);
  EXPECT_FALSE(report);
  EXPECT_THAT(report.message, HasSubstr("some of the inputs"));
}

// ---- Layers: parameters are moved in place ----------------------------------

struct Layer {
  TestStore store;
  Tensor weight = store.Add("weight", Sample({2, 3}, 1));
  Tensor bias = store.Add("bias", Sample({2}, 2));
  Tensor operator()(const Tensor& x) const {
    return Cube(MatMul(x, weight, {.transpose_b = true}) + bias);
  }
};

TEST(GradCheckTest, LayerWithItsParameters) {
  const Layer layer;
  const auto f = [&](Inputs x) { return layer(x[0]); };
  const std::vector<double> weight = layer.weight.ToVector();
  for (const Mode& mode : kModes) {
    const GradCheckReport report =
        GradCheck(f, {Sample({4, 3}), layer.weight, layer.bias},
                  {.order = 2, .directions = mode.directions});
    EXPECT_TRUE(report) << report;
    EXPECT_EQ(layer.weight.ToVector(), weight);
    EXPECT_FALSE(layer.weight.grad().defined());
  }
}

TEST(GradCheckTest, GatheredGradientsArePutBack) {
  const Layer layer;
  {
    Tape tape;
    tape.Backward(Sum(3 * layer.bias));
  }
  EXPECT_TRUE(GradCheck([&](Inputs x) { return layer(x[0]); },
                        {Sample({4, 3}), layer.weight, layer.bias}));
  EXPECT_EQ(layer.bias.grad().ToVector(), (std::vector<double>{3, 3}));
  EXPECT_FALSE(layer.weight.grad().defined());
}

TEST(GradCheckTest, FaultsOfLayersAreCaught) {
  const Layer layer;
  const auto f = [&](Inputs x) {
    return layer(x[0]) * MissingTerm(layer.bias, layer.bias);
  };
  for (const Mode& mode : kModes) {
    const GradCheckReport report =
        GradCheck(f, {Sample({4, 3}), layer.weight, layer.bias},
                  {.name = "Layer",
                   .input_names = {"x", "weight", "bias"},
                   .directions = mode.directions});
    EXPECT_FALSE(report);
    EXPECT_THAT(report.message,
                HasSubstr("Layer: gradient by input 2 (bias), float64 [2]"));
  }
}

// y = x, whose kernel is wrong only where it writes into a parameter itself.
Tensor WrongInPlace(const Tensor& x) {
  Tensor y = x.Clone();
  Record(
      "WrongInPlace", y, {x}, Save(x),
      [](GradientSink& g, const Tensor& x) {
        const auto dx = g.Into<double>(0);
        const bool direct =
            x.grad().defined() && x.grad().data<double>() == dx.data;
        for (int64_t i = 0; i < x.size(); ++i) {
          if (!dx.accumulate) dx.data[i] = 0;
          dx.data[i] += g.dy().data<double>()[i] * (direct ? 2 : 1);
        }
      },
      [](const Tensor& x) { return 1 * x; });
  return y;
}

TEST(GradCheckTest, BackwardIsCheckedForParameters) {
  TestStore store;
  const Tensor w = store.Add("w", Sample({3}));
  const auto f = [&](Inputs x) { return WrongInPlace(x[0]); };
  EXPECT_TRUE(GradCheck(f, {Sample({3})}));
  const GradCheckReport report = GradCheck(f, {w});
  EXPECT_FALSE(report);
  EXPECT_THAT(report.message, HasSubstr("that Backward leaves"));
}

TEST(GradCheckTest, ValuesAreRestoredWhenTheFunctionThrows) {
  TestStore store;
  const Tensor w = store.Add("w", Sample({3}));
  const std::vector<double> before = w.ToVector();
  int calls = 0;
  const auto f = [&](Inputs x) {
    if (++calls == 4) throw Error("enough");
    return Square(x[0]);
  };
  EXPECT_THROW(GradCheck(f, {w}), Error);
  EXPECT_EQ(w.ToVector(), before);
}

TEST(GradCheckTest, CustomOperationWithoutCompositionNamesItself) {
  const auto f = [](Inputs x) {
    Tensor y = x[0].Clone();
    Record("KernelOnly", y, {x[0]}, Save(), [](GradientSink& g) {
      const auto dx = g.Into<double>(0);
      for (int64_t i = 0; i < g.dy().size(); ++i) {
        if (!dx.accumulate) dx.data[i] = 0;
        dx.data[i] += g.dy().data<double>()[i];
      }
    });
    return y;
  };
  EXPECT_TRUE(GradCheck(f, {Sample({3})}));
  EXPECT_THAT(ErrorOf([&] { GradCheck(f, {Sample({3})}, {.order = 2}); }),
              AllOf(HasSubstr("KernelOnly"), HasSubstr("composition")));
}

TEST(GradCheckTest, MisuseIsExplained) {
  const auto same = [](Inputs x) { return x[0]; };
  const Tensor single = Tensor::Ones({2}), x = Sample({2});
  EXPECT_THAT(ErrorOf([&] { GradCheck(same, {single}, {.name = "Same"}); }),
              HasSubstr("GradCheck of Same: no input is float64"));
  EXPECT_THAT(ErrorOf([&] { GradCheck(same, {single}, {.wanted = {true}}); }),
              HasSubstr("input 0 is float32 [2]; wanted float64"));
  EXPECT_THAT(ErrorOf([&] {
                GradCheck(same, {x}, {.wanted = {true, true}});
              }),
              HasSubstr("`wanted` has 2 entries for 1 inputs"));
  EXPECT_THAT(ErrorOf([&] { GradCheck(same, {x}, {.order = 3}); }),
              HasSubstr("order 3; wanted 1 or 2"));
  EXPECT_THAT(ErrorOf([&] {
                GradCheck([](Inputs x) { return x[0].To(DType::kFloat32); },
                          {x});
              }),
              HasSubstr("the result is float32 [2]; wanted float64"));
}

// An outer tape is not disturbed.
TEST(GradCheckTest, RunsInsideAnotherTape) {
  Tape tape;
  const Tensor x = Sample({2});
  tape.Watch(x);
  const Tensor y = Square(x);
  EXPECT_TRUE(GradCheck([](Inputs x) { return Exp(x[0]); }, {y}, {.order = 2}));
  EXPECT_EQ(tape.size(), 1u);
  EXPECT_EQ(tape.Gradient(Sum(y), x).ToVector(), (2 * x).ToVector());
}

}  // namespace
}  // namespace wengert
