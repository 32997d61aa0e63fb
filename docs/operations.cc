// Prints docs/operations.md, made from the declarations and comments of the
// catalogue, so that the page says what the header says:
//
//   bazel run //docs:operations > docs/operations.md
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace {

using Lines = std::vector<std::string>;

// What PyTorch calls an operation, where that is not torch.<snake_case>.
const std::map<std::string, std::string>& PyTorchNames() {
  static const auto* const names = new std::map<std::string, std::string>{
      {"Affine", ""},
      {"Equal", "torch.eq"},
      {"NotEqual", "torch.ne"},
      {"Less", "torch.lt"},
      {"LessEqual", "torch.le"},
      {"Greater", "torch.gt"},
      {"GreaterEqual", "torch.ge"},
      {"IsNan", "torch.isnan"},
      {"IsInf", "torch.isinf"},
      {"IsFinite", "torch.isfinite"},
      {"Gelu", "F.gelu"},
      {"GeluTanh", "F.gelu(approximate='tanh')"},
      {"Silu", "F.silu"},
      {"Activate", ""},
      {"Softplus", "F.softplus"},
      {"LogSigmoid", "F.logsigmoid"},
      {"LeakyRelu", "F.leaky_relu"},
      {"Elu", "F.elu"},
      {"Max", "torch.amax"},
      {"Min", "torch.amin"},
      {"LogSumExp", "torch.logsumexp"},
      {"SumTo", "Tensor.sum_to_size"},
      {"ArgMax", "torch.argmax"},
      {"ArgMin", "torch.argmin"},
      {"Norm", "torch.linalg.vector_norm"},
      {"CumSum", "torch.cumsum"},
      {"CumProd", "torch.cumprod"},
      {"TopK", "torch.topk"},
      {"MatMul", "torch.matmul"},
      {"Linear", "F.linear"},
      {"ActivatedLinear", ""},
      {"Cholesky", "torch.linalg.cholesky"},
      {"SolveTriangular", "torch.linalg.solve_triangular"},
      {"Transpose", "Tensor.mT"},
      {"Slice", "torch.narrow"},
      {"Embedding", "F.embedding"},
      {"ScatterRows", "Tensor.index_add"},
      {"Expand", "Tensor.expand"},
      {"Pad", "F.pad"},
      {"Repeat", "torch.repeat_interleave"},
      {"Unfold", "Tensor.unfold"},
      {"TakeAlongAxis", "torch.take_along_dim"},
      {"OneHot", "F.one_hot"},
      {"LayerNorm", "F.layer_norm"},
      {"RmsNorm", "F.rms_norm"},
      {"GroupNorm", "F.group_norm"},
      {"Rotary", ""},
      {"Dropout", "F.dropout"},
      {"Attention", "F.scaled_dot_product_attention"},
      {"PackedAttention", ""},
      {"CachedAttention", ""},
      {"AttentionWithWeights", ""},
      {"CrossEntropy", "F.cross_entropy"},
      {"NllLoss", "F.nll_loss"},
      {"BinaryCrossEntropyWithLogits", "F.binary_cross_entropy_with_logits"},
      {"MseLoss", "F.mse_loss"},
      {"L1Loss", "F.l1_loss"},
      {"HuberLoss", "F.huber_loss"},
      {"KlDivLoss", "F.kl_div"},
      {"CosineSimilarity", "F.cosine_similarity"},
      {"RandomUniform", "Tensor.uniform_"},
      {"RandomNormal", "torch.normal"},
      {"RandomTruncatedNormal", "torch.nn.init.trunc_normal_"},
      {"RandomBernoulli", "torch.bernoulli"},
      {"RandomCategorical", "torch.multinomial"},
      {"RandomPermutation", "torch.randperm"},
  };
  return *names;
}

std::string PyTorchName(const std::string& name) {
  const auto it = PyTorchNames().find(name);
  if (it != PyTorchNames().end()) return it->second;
  std::string snake = "torch.";
  for (const char c : name) {
    if (std::isupper(c) && snake.back() != '.') snake += '_';
    snake += static_cast<char>(std::tolower(c));
  }
  return snake;
}

bool StartsWith(const std::string& s, const std::string& prefix) {
  return s.rfind(prefix, 0) == 0;
}

// A cell of a table, in which a bar has to be escaped.
std::string Cell(const std::string& text) {
  return std::regex_replace(text, std::regex("\\|"), "\\|");
}

// "Tensor Sum(const Tensor& x, const Axes& axes = {})" -> "Sum(x, axes = {})".
std::string Call(const std::string& declaration) {
  std::string call =
      std::regex_replace(declaration, std::regex("^[^(]*[ >](\\w+\\()"), "$1");
  call = std::regex_replace(
      call,
      std::regex("(const )?(absl::Span<[^&]*>|std::initializer_list<[^&]*>|"
                 "[A-Za-z_0-9:]+(<[^&]*>)?)&? (?=[a-z_0-9]+( =|,|\\)))"),
      "");
  return call.substr(0, call.rfind(')') + 1);
}

// One comment and what it stands above.
struct Block {
  std::string text;
  Lines calls, names;
};

class Page {
 public:
  explicit Page(std::istream& header) {
    std::string line;
    while (std::getline(header, line)) lines_.push_back(line);
  }

  void Print() {
    Intro();
    while (at_ < lines_.size()) {
      const std::string& line = lines_[at_];
      std::smatch title;
      if (std::regex_match(line, title,
                           std::regex("// ---- (.*?): (.*?) -+"))) {
        Flush();
        std::cout << "\n## " << title[1] << "\n\n`autograd/"
                  << std::regex_replace(title[2].str(), std::regex(", "),
                                        "`, `autograd/")
                  << "`\n";
        ++at_;
        section_ = true;
        in_table_ = false;
      } else if (StartsWith(line, "//")) {
        Flush();
        block_.text = Comment();
        if (lines_[at_].empty() && section_) {  // about the whole family
          std::cout << "\n" << block_.text << "\n";
          block_ = {};
        }
        section_ = false;
      } else if (StartsWith(line, "struct") || StartsWith(line, "enum") ||
                 StartsWith(line, "class")) {
        Options();
      } else if (StartsWith(line, "inline")) {
        while (!lines_[at_].empty()) ++at_;
        block_ = {};
      } else if (std::regex_search(line, std::regex("^[A-Za-z:<>]+ \\w+\\("))) {
        Declaration();
      } else {
        section_ = section_ && line.empty();
        ++at_;
      }
    }
    Flush();
  }

 private:
  std::string Comment() {
    std::string text;
    for (; StartsWith(lines_[at_], "//"); ++at_) {
      if (!text.empty()) text += ' ';
      text += lines_[at_].substr(lines_[at_].size() > 2 ? 3 : 2);
    }
    return text;
  }

  void Intro() {
    std::cout << "# Operations\n\nMade from `autograd/ops.h` by "
                 "`bazel run //docs:operations`. `torch.` and `F.` "
                 "(`torch.nn.functional`) name what computes the same in "
                 "PyTorch; a name ending in `Composed` is the same value from "
                 "primitives.\n";
    while (lines_[at_] != "//") ++at_;  // the first paragraph is the file's
    ++at_;
    std::cout << "\n" << Comment() << "\n";
    while (!StartsWith(lines_[at_], "// ----")) ++at_;
  }

  // Overloads differ in types alone.
  static void AddNew(Lines& lines, const std::string& line) {
    if (lines.empty() || lines.back() != line) lines.push_back(line);
  }

  void Declaration() {
    std::string text;
    do {
      text += (text.empty() ? "" : " ") +
              std::regex_replace(lines_[at_], std::regex("^ +"), "");
    } while (lines_[at_++].find(';') == std::string::npos);
    const std::string call = Call(text), name = call.substr(0, call.find('('));
    const bool composed =
        name.size() > 8 && name.compare(name.size() - 8, 8, "Composed") == 0;
    AddNew(block_.calls, "`" + call + "`");
    const std::string torch = composed ? "" : PyTorchName(name);
    if (!torch.empty()) AddNew(block_.names, "`" + torch + "`");
  }

  // Options stand as they are declared; of a class the header says enough.
  void Options() {
    const bool shown = !StartsWith(lines_[at_], "class");
    Flush();
    in_table_ = false;
    if (shown) std::cout << "\n```cpp\n";
    do {
      if (shown) std::cout << lines_[at_] << "\n";
    } while (lines_[at_++] != "};");
    if (shown) std::cout << "```\n";
  }

  void Flush() {
    if (!block_.calls.empty()) {
      if (!in_table_) {
        std::cout << "\n| | | PyTorch |\n|---|---|---|\n";
        in_table_ = true;
      }
      const auto join = [](const Lines& parts) {
        std::string all;
        for (const std::string& p : parts) {
          all += (all.empty() ? "" : "<br>") + p;
        }
        return Cell(all);
      };
      std::cout << "| " << join(block_.calls) << " | " << Cell(block_.text)
                << " | " << join(block_.names) << " |\n";
    }
    block_ = {};
  }

  Lines lines_;
  size_t at_ = 0;
  bool section_ = false, in_table_ = false;
  Block block_;
};

}  // namespace

int main() {
  const char* const root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  std::ifstream header(std::string(root ? root : ".") + "/autograd/ops.h");
  if (!header) {
    std::cerr << "operations: autograd/ops.h cannot be read\n";
    return 2;
  }
  Page(header).Print();
}
