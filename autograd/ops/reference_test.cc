#include <cmath>
#include <sstream>
#include <string>

#include "autograd/ops/reference_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

using testing::ElementsAre;

TensorMap Parse(const std::string& text) {
  std::istringstream in(text);
  return ParseReference(in);
}

TEST(ReferenceTest, ReadsTensorsByName) {
  const TensorMap all = Parse(
      "# a comment\n\nx.y 2 3\n1 -2 0.1 4e-300 inf -inf\n"
      "scalar\n7\nempty 0 2\n\nlast 1\nnan");
  ASSERT_EQ(all.size(), 4);
  EXPECT_EQ(all.at("x.y").shape(), Shape({2, 3}));
  EXPECT_EQ(all.at("x.y").dtype(), DType::kFloat64);
  EXPECT_THAT(all.at("x.y").ToVector(),
              ElementsAre(1, -2, 0.1, 4e-300, HUGE_VAL, -HUGE_VAL));
  EXPECT_EQ(all.at("scalar").shape(), Shape());
  EXPECT_EQ(all.at("scalar").ToVector()[0], 7);
  EXPECT_EQ(all.at("empty").shape(), Shape({0, 2}));
  EXPECT_TRUE(std::isnan(all.at("last").ToVector()[0]));
}

TEST(ReferenceTest, ErrorsNameTheTensor) {
  const auto expect = [](const std::string& text, const std::string& message) {
    try {
      Parse(text);
      ADD_FAILURE() << "read " << text;
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()), message);
    }
  };
  expect("x 2\n1 2 3\n", "reference x: 3 elements, wanted 2");
  expect("x 2\n", "reference x: 0 elements, wanted 2");
  expect("x a\n1\n", "reference x: no dimension: a");
  expect("x 1\n1,5\n", "reference x: no number: 1,5");
  expect("x\n1\nx\n2\n", "reference x: stands twice");
  EXPECT_THROW(ReadReference("no_such_file.txt"), Error);
}

}  // namespace
}  // namespace wengert
