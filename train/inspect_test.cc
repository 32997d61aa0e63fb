// Runs the program as a person does: what it prints, and its exit status.
#include <cstdlib>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "autograd/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/parameter_store.h"
#include "train/adam.h"
#include "train/checkpoint.h"
#include "train/files_testlib.h"
#include "train/program_testlib.h"

namespace wengert::train {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kProgram[] = "train/inspect";
using Result = ProgramResult;

class InspectTest : public FilesTest {
 protected:
  static Result Inspect(const std::string& words,
                        const std::string& redirect = "2>&1") {
    return RunProgram(kProgram, words, redirect);
  }
  static void ExpectRefused(const std::string& words, const std::string& why) {
    train::ExpectRefused(kProgram, words, why);
  }
  std::string Write(const std::string& name,
                    const std::vector<NamedTensor>& tensors,
                    const SafetensorsFile::Metadata& metadata = {},
                    std::optional<ElementType> type = {}) const {
    const auto status = WriteSafetensors(Path(name), tensors, metadata, type);
    EXPECT_TRUE(status.ok()) << status;
    return Path(name);
  }
  // A checkpoint of `step` steps, and of `lr`.
  std::string Checkpoint(const std::string& name, int steps,
                         const std::string& config = "{\n  \"lr\": 1\n}") {
    nn::ParameterStore store(DType::kFloat32, 1);
    const Tensor w = store.root().Zeros("w", {3, 4});
    const Tensor b = store.root().Zeros("bias", {4});
    AdamW optimizer(store);
    Generator generator(7);
    for (int i = 0; i < steps; ++i) {
      Tape tape(generator);
      tape.Backward(Sum(Square(Linear(Tensor::Ones({2, 4}), w) - 1.0)));
      optimizer.Step();
    }
    const auto status = SaveCheckpoint(
        Path(name),
        {.parameters = &store,
         .optimizer = &optimizer,
         .generator = &generator},
        {.step = steps, .config = config, .metrics = {{"loss", .25}}});
    EXPECT_TRUE(status.ok()) << status;
    return Path(name);
  }
};

TEST_F(InspectTest, ListsACheckpoint) {
  const Result r = Inspect(Checkpoint("step.safetensors", 2));
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(
      r.out,
      AllOf(ContainsRegex("step.safetensors: checkpoint of step 2\n\n"),
            ContainsRegex(
                "parameters +shape +dtype +elements +norm +mean +max .x. "
                "+not finite\n"),
            ContainsRegex("\nw +\\[3, 4\\] +F32 +12 +0.00[0-9]+ "),
            ContainsRegex("\nbias +\\[4\\] +F32 +4 +0 +0 +0 +-\n"),
            ContainsRegex("\ntotal of 2 +16 "),
            ContainsRegex("\noptimizer state +tensors "),
            ContainsRegex("\noptimizer.m +[12] +F32 +"),
            ContainsRegex("\noptimizer.v +[12] +F32 +"),
            HasSubstr("\nstep  2\n"), HasSubstr("\nmetrics.loss  0.25\n"),
            HasSubstr("\noptimizer.kind  "), HasSubstr("\ngenerator.seed  7\n"),
            HasSubstr("\nconfig  {\n          \"lr\": 1\n        }\n")));
  EXPECT_THAT(r.out, Not(AnyOf(HasSubstr("optimizer.m.w"),
                               HasSubstr("optimizer.step.w"))));
  EXPECT_LT(r.out.find("\nbias"), r.out.find("\noptimizer.m"));
}

TEST_F(InspectTest, ListsTheStateOnRequest) {
  const Result r = Inspect("--state " + Checkpoint("step.safetensors", 2));
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(r.out, AllOf(ContainsRegex("\noptimizer.m.w +\\[3, 4\\] +F32"),
                           HasSubstr("\noptimizer.step.w  2\n")));
}

TEST_F(InspectTest, ListsAnySafetensorsFile) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string path =
      Write("x.safetensors",
            {{"optimizer.like", Tensor::Of<double>({2}, {3, 4})},
             {"ids", Tensor::Of<int64_t>({3}, {-9, 0, 3})},
             {"mask", Tensor::Of<bool>({2}, {true, false})},
             {"none", Tensor::Zeros({0, 5})},
             {"scalar", Tensor::Scalar(-2)},
             {"broken", Tensor::Of<double>({3}, {nan, 1, nan})}},
            {{"who", "me"}});
  const Result r = Inspect(path);
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(
      r.out,
      AllOf(ContainsRegex("\ntensors +shape"),
            ContainsRegex("\noptimizer.like +\\[2\\] +F64 +2 +5 +3.5 +4 +-\n"),
            ContainsRegex("\nids +\\[3\\] +I64 +3 +9.48683 +-2 +9 +-\n"),
            ContainsRegex("\nmask +\\[2\\] +BOOL +2 +1 +0.5 +1 +-\n"),
            ContainsRegex("\nnone +\\[0, 5\\] +F32 +0 +- +- +- +-\n"),
            ContainsRegex("\nscalar +\\[\\] +F32 +1 +2 +-2 +2 +-\n"),
            ContainsRegex("\nbroken +\\[3\\] +F64 +3 +1 +1 +1 +2\n"),
            ContainsRegex("\ntotal of 6 +11 "), HasSubstr("\nwho  me\n"),
            Not(HasSubstr("checkpoint"))));
  for (const auto type : {ElementType::kF16, ElementType::kBF16}) {
    const std::string half =
        Write("half.safetensors", {{"h", Tensor::Of({2}, {3, 4})}}, {}, type);
    EXPECT_THAT(Inspect(half).out,
                ContainsRegex(absl::StrCat("\nh +\\[2\\] +", ElementName(type),
                                           " +2 +5 +3.5 +4 ")));
  }
}

TEST_F(InspectTest, PrintsHostileNamesSafely) {
  const std::string path =
      Write("x.safetensors", {{"\x1b[2Jname\n", Tensor::Scalar(1)}},
            {{"k\x07", "v\x1b"}});
  const Result r = Inspect(path);
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, HasSubstr("\n\uFFFD[2Jname\uFFFD "));
  EXPECT_EQ(r.out.find_first_of("\x1b\x07"), std::string::npos);
  const Result diff = Inspect("--diff " + path + " " +
                              Write("y.safetensors", {}, {{"k\x07", "w\x1b"}}));
  EXPECT_EQ(diff.status, 1);
  EXPECT_EQ(diff.out.find_first_of("\x1b\x07"), std::string::npos);
}

TEST_F(InspectTest, DiffOfTheSame) {
  const std::string a = Checkpoint("a.safetensors", 2);
  const Result r = Inspect("--diff " + a + " " + Checkpoint("b", 2));
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(r.out, AllOf(ContainsRegex("\nw +same bits\n"),
                           HasSubstr("\nthe same\n")));
}

TEST_F(InspectTest, DiffOfTwoCheckpoints) {
  const std::string a = Checkpoint("a.safetensors", 2);
  const std::string b = Checkpoint("b.safetensors", 3, "{\n  \"lr\": 2\n}");
  const Result r = Inspect(a + " --diff " + b);
  EXPECT_EQ(r.status, 1) << r.out;
  EXPECT_THAT(
      r.out,
      AllOf(ContainsRegex("\nw +12/12 +0.00[0-9]+ +0.[0-9]+ +-\n"),
            ContainsRegex("\nbias +same bits\n"),
            ContainsRegex("\noptimizer.m.w +12/12 "),
            HasSubstr("metadata step: \"2\" in A, \"3\" in B\n"),
            HasSubstr("config: \"  \"lr\": 1\" in A, \"  \"lr\": 2\" in B\n"),
            HasSubstr("\ndifferent: 3 of the tensors, 3 of the metadata\n")));
}

TEST_F(InspectTest, DiffOfNamesShapesAndTypes) {
  const Tensor one = Tensor::Ones({2});
  const std::string a =
      Write("a", {{"gone", one}, {"type", one}, {"shape", one}, {"equal", one}},
            {{"old", "1"}});
  const std::string b = Write("b",
                              {{"come", one},
                               {"type", one.To(DType::kFloat64)},
                               {"shape", Tensor::Ones({2, 1})},
                               {"equal", one}},
                              {{"new", "1"}});
  const Result r = Inspect("--diff " + a + " " + b);
  EXPECT_EQ(r.status, 1) << r.out;
  EXPECT_THAT(r.out, AllOf(HasSubstr("only in A: gone, F32 [2]\n"),
                           HasSubstr("only in B: come, F32 [2]\n"),
                           HasSubstr("type: F32 [2] in A, F64 [2] in B\n"),
                           HasSubstr("shape: F32 [2] in A, F32 [2, 1] in B\n"),
                           ContainsRegex("\nequal +same bits\n"),
                           HasSubstr("metadata old: only in A\n"),
                           HasSubstr("metadata new: only in B\n"),
                           HasSubstr("different: 4 of the tensors, 2 of the "
                                     "metadata\n")));
}

// Each by itself makes the files differ.
TEST_F(InspectTest, DiffSeesTheLeastDifference) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string a = Write("a", {{"x", Tensor::Of({2}, {0, 2})}});
  const auto diff = [&](const std::string& b) {
    return Inspect("--diff " + a + " " + b);
  };
  Result r = diff(Write("b", {{"x", Tensor::Of({2}, {-0.f, 2})}}));
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.out, ContainsRegex("\nx +0/2 +0 +0 +-\n"));
  r = diff(Write("c", {{"x", Tensor::Full({2}, infinity)}}));
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.out, ContainsRegex("\nx +2/2 +- +- +2\n"));
  r = diff(Write("d", {{"x", Tensor::Of({2}, {0, 2})}}, {{"k", ""}}));
  EXPECT_EQ(r.status, 1);
  r = diff(Write("e", {{"x", Tensor::Of({2}, {3, 6})}}));
  EXPECT_THAT(r.out, ContainsRegex("\nx +2/2 +4 +2.5 +-\n"));
}

TEST_F(InspectTest, RefusesWithOneLine) {
  const std::string good = Write("good", {{"x", Tensor::Scalar(1)}});
  ExpectRefused("", "wanted one FILE, got 0 files");
  ExpectRefused(good + " " + good, "wanted one FILE, got 2 files");
  ExpectRefused("--diff " + good, "wanted --diff A B, got 1 file;");
  ExpectRefused("--dif " + good, "did you mean --diff?");
  ExpectRefused(Path("none"), "none: cannot be read");
  ExpectRefused(folder_.string(), "Is a directory");
  ExpectRefused(File("text", "this is no such file"), "text: ");
  ExpectRefused(File("short", "123"), "it has 3 bytes");
  ExpectRefused("--diff " + good + " " + Path("none"), "none");
  ExpectRefused("$(printf 'a\\033[2J')", "a\uFFFD[2J");
  const Result full = Inspect(good, "2>&1 >/dev/full");
  EXPECT_EQ(full.status, 2);
  EXPECT_EQ(full.out, "inspect: the output cannot be written\n");
}

TEST_F(InspectTest, HelpSaysTheExitStatus) {
  const Result r = Inspect("--help");
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, AllOf(HasSubstr("--diff"), HasSubstr("--state"),
                           HasSubstr("exit status")));
}

// As under `bazel run`, where the program stands elsewhere.
TEST_F(InspectTest, PathsAreTheUsers) {
  Write("x.safetensors", {{"x", Tensor::Scalar(1)}});
  setenv("BUILD_WORKING_DIRECTORY", folder_.c_str(), 1);
  EXPECT_EQ(Inspect("x.safetensors").status, 0);
  unsetenv("BUILD_WORKING_DIRECTORY");
  EXPECT_EQ(Inspect("x.safetensors").status, 2);
}

}  // namespace
}  // namespace wengert::train
