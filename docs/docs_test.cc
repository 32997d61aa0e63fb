// Holds the guides to the code: a ```cpp block behind the comment
// <!-- FILE --> stands in that file as it is, and a ```text block behind
// <!-- output of PROGRAM --> is what the program prints.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

using ::testing::HasSubstr;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path << " cannot be read";
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string OutputOf(const std::string& program) {
  FILE* pipe = popen(program.c_str(), "r");
  std::string output;
  char buffer[256];
  while (fgets(buffer, sizeof buffer, pipe)) output += buffer;
  EXPECT_EQ(pclose(pipe), 0) << program;
  return output;
}

struct Block {
  std::string guide, source, language, text;
};

std::vector<Block> BlocksOf(const std::string& guide) {
  std::vector<Block> blocks;
  std::istringstream lines(Read(guide));
  std::string line, before;
  while (std::getline(lines, line)) {
    if (line.rfind("```", 0) == 0) {
      Block block{guide, before, line.substr(3), ""};
      while (std::getline(lines, line) && line != "```") {
        block.text += line + "\n";
      }
      blocks.push_back(block);
      line.clear();
    }
    const bool marks = line.rfind("<!-- ", 0) == 0;
    before = marks ? line.substr(5, line.size() - 9) : "";
  }
  return blocks;
}

TEST(Guides, SamplesAreTheCode) {
  int samples = 0, outputs = 0;
  for (const char* guide : {"README.md", "docs/extending.md"}) {
    for (const Block& block : BlocksOf(guide)) {
      if (block.language == "cpp") {
        ++samples;
        ASSERT_NE(block.source, "") << guide << ": unmarked sample\n"
                                    << block.text;
        EXPECT_THAT(Read(block.source), HasSubstr(block.text));
      } else if (block.source.rfind("output of ", 0) == 0) {
        ++outputs;
        EXPECT_EQ(block.text, OutputOf(block.source.substr(10)));
      }
    }
  }
  EXPECT_GE(samples, 5);
  EXPECT_GE(outputs, 1);
}

}  // namespace
