// Holds the guides to the code: a ```cpp block behind the comment
// <!-- FILE --> stands in that file as it is, and a ```text block behind
// <!-- output of PROGRAM --> is what the program prints.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
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
  for (const char* guide :
       {"README.md", "docs/extending.md", "docs/training.md"}) {
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
  EXPECT_GE(samples, 7);
  EXPECT_GE(outputs, 1);
}

TEST(Guides, ListsEveryOperationAsTheHeaderDoes) {
  unsetenv("BUILD_WORKSPACE_DIRECTORY");
  EXPECT_EQ(Read("docs/operations.md"), OutputOf("docs/operations"))
      << "bazel run //docs:operations > docs/operations.md";
}

// The commands of a ```sh block behind <!-- run --> succeed, one after the
// other in an empty folder, and so do the programs of the samples.
TEST(Guides, CommandsRun) {
  const std::string root = std::filesystem::current_path();
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "commands";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  setenv("BUILD_WORKING_DIRECTORY", folder.c_str(), /*overwrite=*/1);
  int commands = 0;
  for (const Block& block : BlocksOf("docs/training.md")) {
    if (block.source.rfind("run", 0) != 0) continue;
    const int status = block.source == "run, exit status 1" ? 1 : 0;
    std::istringstream lines(block.text);
    std::string line;
    while (std::getline(lines, line)) {
      ++commands;
      std::smatch parts;
      ASSERT_TRUE(std::regex_match(
          line, parts, std::regex("bazel run //([a-z_/]+):?([a-z_]*) -- (.*)")))
          << line;
      // //a/b is short for //a/b:b.
      const std::string package = parts[1], name = parts[2];
      const std::string program =
          package + "/" +
          (name.empty() ? package.substr(package.rfind('/') + 1) : name);
      EXPECT_EQ(WEXITSTATUS(std::system(
                    (program + " " + parts[3].str() + " >/dev/null").c_str())),
                status)
          << line;
    }
  }
  EXPECT_GE(commands, 6);
  for (const char* file : {"runs/first/report.html", "runs/second/report.html",
                           "runs/profiled/trace.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / file)) << file;
  }
  std::filesystem::current_path(folder);
  EXPECT_EQ(std::system((root + "/docs/own_loop").c_str()), 0);
  EXPECT_EQ(std::system((root + "/docs/training_parts").c_str()), 0);
  EXPECT_TRUE(std::filesystem::exists("own.safetensors"));
  EXPECT_EQ(
      std::system((root + "/docs/training_loop --run_dir=runs/own").c_str()),
      0);
  EXPECT_TRUE(std::filesystem::exists("runs/own/report.html"));
  std::filesystem::current_path(root);
}

}  // namespace
