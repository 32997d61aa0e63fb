// Three sentences on their way through multi-head attention, held against the
// two decimals that were published for each step: words, embeddings with
// positions, queries, heads, output. Embeddings and biases, which were not
// published, are recovered from the steps around them.
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"
#include "nn/nn.h"
#include "train/vocabulary.h"

namespace wengert::train {
namespace {

constexpr int64_t kB = 3, kT = 6, kC = 8, kHeads = 4;
constexpr double kDropout = 0.1;
constexpr double kHalfUnit = 0.005;  // of the last printed digit

// A table of testdata/document_003.txt.
Tensor Table(const std::string& name) {
  std::ifstream in("train/testdata/document_003.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name + " ", 0) != 0) continue;
    std::istringstream head(line.substr(name.size()));
    std::vector<int64_t> dims;
    for (int64_t dim; head >> dim;) dims.push_back(dim);
    std::vector<double> values;
    while (std::getline(in, line) && !line.empty()) {
      std::istringstream row(line);
      for (double x; row >> x;) values.push_back(x);
    }
    return Tensor::From(Shape(dims), values);
  }
  ADD_FAILURE() << "no table " << name;
  return {};
}

// The words of the three sentences.
std::vector<std::string> Words() {
  std::vector<std::string> all;
  for (const char* sentence :
       {"I wonder what will come next!", "This is a basic example paragraph.",
        "Hello, what is a basic split?"}) {
    for (const std::string& word : Tokenize(sentence)) all.push_back(word);
  }
  return all;
}

// Their ids: places in the sorted list of all words. [B T]
std::vector<int64_t> Ids() {
  const std::vector<std::string> all = Words();
  const std::set<std::string> sorted(all.begin(), all.end());
  return *Vocabulary::FromWords({sorted.begin(), sorted.end()})->Encode(all);
}
constexpr int64_t kVocabulary = 14;

double Largest(const Tensor& x) { return Max(Abs(x)).item(); }

TEST(Document003, WordsAndIds) {
  const std::vector<int64_t> expected = {5,  13, 11, 12, 2, 7,  //
                                         10, 6,  0,  1,  3, 8,  //
                                         4,  11, 6,  0,  1, 9};
  EXPECT_EQ(Ids(), expected);
}

// X = dropout(sqrt(C) embedding + positions), and dropout divides what it keeps
// by 0.9. So one word at two places differs by its positions over 0.9, up to
// the rounding of two numbers. Four words stand at two places, and each loses
// one of its eight numbers at one of them: 28 pairs.
TEST(Document003, OneWordAtTwoPlacesDiffersByItsPositions) {
  const auto ids = Ids();
  const auto x = Table("X").ToVector();
  const auto positions =
      nn::SinusoidalPositions(kT, kC, DType::kFloat64).ToVector();
  int pairs = 0;
  for (int64_t a = 0; a < kB * kT; ++a) {
    for (int64_t b = a + 1; b < kB * kT; ++b) {
      if (ids[a] != ids[b]) continue;
      for (int64_t c = 0; c < kC; ++c) {
        const double x_a = x[a * kC + c], x_b = x[b * kC + c];
        if (x_a == 0 || x_b == 0) continue;
        const double moved =
            positions[a % kT * kC + c] - positions[b % kT * kC + c];
        EXPECT_NEAR(x_a - x_b, moved / (1 - kDropout), 0.009)
            << "word " << ids[a] << ", column " << c;
        ++pairs;
      }
    }
  }
  EXPECT_EQ(pairs, 28);
}

// The embedding that X implies: the mean over a word's places. Numbers that X
// never shows stay 0.
Tensor ImpliedEmbedding() {
  const auto ids = Ids();
  const auto x = Table("X").ToVector();
  const auto positions =
      nn::SinusoidalPositions(kT, kC, DType::kFloat64).ToVector();
  std::vector<double> table(kVocabulary * kC);
  std::vector<int> seen(kVocabulary * kC);
  for (int64_t i = 0; i < kB * kT * kC; ++i) {
    if (x[i] == 0) continue;
    const int64_t row = ids[i / kC] * kC + i % kC;
    const double embedding =
        ((1 - kDropout) * x[i] - positions[i % (kT * kC)]) / std::sqrt(kC);
    ++seen[row];
    table[row] += (embedding - table[row]) / seen[row];
  }
  return Tensor::From({kVocabulary, kC}, table);
}

// Embedding times sqrt(C), positions and dropout give X to its two decimals.
TEST(Document003, LayersGiveX) {
  const Tensor ids = Tensor::From({kB, kT}, Ids());
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    SCOPED_TRACE(Name(dtype));
    nn::ParameterStore store(dtype);
    const nn::Embedding embedding(store.root().Sub("words"), kVocabulary, kC,
                                  {.scale_by_sqrt_dim = true});
    const nn::PositionalEncoding positions(store.root(), /*max_length=*/10, kC,
                                           kDropout);
    nn::SetParameters(store, {{"words.weight", ImpliedEmbedding()}});
    const auto plain = positions(embedding(ids)).ToVector();
    const auto x = Table("X").ToVector();
    int dropped_there = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 0) {
        ++dropped_there;
      } else {
        EXPECT_NEAR(plain[i] / (1 - kDropout), x[i], kHalfUnit) << i;
      }
    }
    EXPECT_EQ(dropped_there, 9);

    Generator generator(1);
    Tape tape(generator);
    const auto trained = positions(embedding(ids)).ToVector();
    int dropped_here = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (trained[i] == 0) {
        ++dropped_here;
      } else {
        EXPECT_NEAR(trained[i], plain[i] / (1 - kDropout), 1e-5) << i;
      }
    }
    EXPECT_GT(dropped_here, 0);
    EXPECT_LT(dropped_here, 40);
  }
}

// What Q leaves of X Wᵀ + bq, where bq, which was not published, is the mean of
// what the product leaves: [3, 6, 8].
Tensor LeftOfQ(const Tensor& weight) {
  const Tensor left = Table("Q") - Linear(Table("X"), weight);
  return left - Mean(left, {0, 1});
}

TEST(Document003, QueriesAreAnAffineMapOfX) {
  // A product of two rounded numbers is off by up to |x| h + |w| h + h², h
  // being half a unit; Q itself by h; and bq by the mean of all that.
  const Tensor x = Sum(Abs(Table("X")), -1, {.keep_dims = true});
  const Tensor w = Sum(Abs(Table("Wq")), -1);
  const Tensor rounding =
      (x + w) * kHalfUnit + (kC * kHalfUnit * kHalfUnit + kHalfUnit);
  const Tensor bound = rounding + Mean(rounding, {0, 1});
  const Tensor left = LeftOfQ(Table("Wq"));
  EXPECT_LE(Max(Abs(left) - bound).item(), 0);
  EXPECT_LE(Largest(left), 0.092);
  // The transpose of the weight lies far outside.
  EXPECT_GT(Largest(LeftOfQ(Transpose(Table("Wq")))), 1);
}

// [B, T, C] -> [B, H, T, C / H], and back.
TEST(Document003, Heads) {
  const Tensor q = Table("Q"), heads = Table("Q_heads");
  const Tensor split = Reshape(q, {kB, kT, kHeads, kC / kHeads});
  EXPECT_TRUE(SameBits(Permute(split, {0, 2, 1, 3}), heads));
  const Tensor merged = Reshape(Permute(heads, {0, 2, 1, 3}), {kB, kT, kC});
  EXPECT_TRUE(SameBits(merged, q));
}

// The w that makes |m w - y| least, by elimination in mᵀm w = mᵀy.
Tensor LeastSquares(const Tensor& m, const Tensor& y) {
  const int64_t n = m.dim(1), columns = n + y.dim(1);
  const Tensor both = MatMul(m, Concat({m, y}, 1), {.transpose_a = true});
  std::vector<double> rows = both.ToVector();
  for (int64_t i = 0; i < n; ++i) {
    const double pivot = rows[i * columns + i];
    for (int64_t c = i; c < columns; ++c) rows[i * columns + c] /= pivot;
    for (int64_t r = 0; r < n; ++r) {
      const double factor = r == i ? 0 : rows[r * columns + i];
      for (int64_t c = i; c < columns; ++c) {
        rows[r * columns + c] -= factor * rows[i * columns + c];
      }
    }
  }
  return Slice(Tensor::From({n, columns}, rows), 1, n, y.dim(1));
}

// The largest number that the best affine map from A leaves of `output`.
double LeftByBestMap(const Tensor& output) {
  const Tensor a = Reshape(Table("A"), {kB * kT, kC});
  const Tensor ones = Tensor::Ones({kB * kT, 1}, DType::kFloat64);
  const Tensor fit = LeastSquares(Concat({a, ones}, 1), output);
  const Tensor wo = Transpose(Slice(fit, 0, 0, kC));
  const Tensor bo = Reshape(Slice(fit, 0, kC, 1), {kC});
  return Largest(Linear(a, wo, bo) - output);
}

TEST(Document003, OutputIsAnAffineMapOfTheHeads) {
  const Tensor output = Reshape(Table("output"), {kB * kT, kC});
  EXPECT_LE(LeftByBestMap(output), 0.006);
  // Nine free numbers for 18 rows do not fit everything: with the rows moved
  // on by one, nothing comes near.
  const Tensor moved =
      Concat({Slice(output, 0, 1, kB * kT - 1), Slice(output, 0, 0, 1)}, 0);
  EXPECT_GT(LeftByBestMap(moved), 1);
}

}  // namespace
}  // namespace wengert::train
