// Einstein's sum by matrix products. Operands are contracted two at a time,
// always the two whose product has the fewest elements (of equals the first).
// In each step every letter of the two is of one of four kinds:
//   batch       in both, and wanted later: by the result or another operand
//   contracted  in both, and by nobody else
//   rows        in the first alone
//   columns     in the second alone
// so the step is MatMul of [batch, rows, contracted] and [batch, contracted,
// columns]; or, where nothing is contracted, a product of elements, and where
// nothing else is left, one Dot for each of the batch.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autograd/ops.h"
#include "autograd/ops/axis_util.h"
#include "autograd/ops/row_dot.h"

namespace wengert {
namespace {

using Letters = std::string;

bool Has(const Letters& letters, char c) {
  return letters.find(c) != Letters::npos;
}

// An operand, or what some of them became, with a letter for each axis.
struct Factor {
  Tensor x;
  Letters letters;
};

struct Equation {
  std::vector<Letters> operands;
  Letters result;
};

class Einsummer {
 public:
  Einsummer(const std::string& equation, absl::Span<const Tensor> operands)
      : text_(equation), operands_(operands) {}

  Tensor Run() {
    Parse();
    Check();
    for (size_t i = 0; i < operands_.size(); ++i) {
      factors_.push_back(WithoutRepeats({operands_[i], equation_.operands[i]}));
    }
    for (Factor& f : factors_) f = WithoutLonely(f);
    while (factors_.size() > 1) ContractTwo();
    return Ordered(factors_[0], equation_.result);
  }

 private:
  template <class... Parts>
  [[noreturn]] void Fail(const Parts&... parts) const {
    std::string operands;
    for (const Tensor& x : operands_) {
      absl::StrAppend(&operands, operands.empty() ? "" : ", ", Describe(x));
    }
    Throw("Einsum", "\"", text_, "\" of ", operands, ": ", parts...);
  }

  // Fills in equation_.
  void Parse() {
    std::string text = text_;
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    const size_t arrow = text.find("->");
    const bool given = arrow != std::string::npos;
    equation_.operands = absl::StrSplit(text.substr(0, arrow), ',');
    if (given) equation_.result = text.substr(arrow + 2);

    std::array<int, 128> count = {};
    const auto check_letter = [&](char c) {
      if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z')) {
        Fail("'", std::string(1, c), "' is no letter",
             c == '.' ? "; there is no ellipsis" : "");
      }
    };
    for (const Letters& letters : equation_.operands) {
      for (char c : letters) {
        check_letter(c);
        ++count[c];
      }
    }
    for (char c : equation_.result) {
      check_letter(c);
      if (count[c] == 0) Fail("no operand has '", std::string(1, c), "'");
      if (std::count(equation_.result.begin(), equation_.result.end(), c) > 1) {
        Fail("the result has '", std::string(1, c), "' twice");
      }
    }
    for (char c = 'A'; !given && c <= 'z'; ++c) {
      if (count[c] == 1) equation_.result += c;
    }
  }

  void Check() const {
    if (operands_.empty()) Fail("no operands; wanted one or more");
    for (const Tensor& x : operands_) {
      if (!x.defined() || !IsFloat(x.dtype()) ||
          x.dtype() != operands_[0].dtype()) {
        Fail("wanted float32 or float64, all of one dtype");
      }
    }
    if (equation_.operands.size() != operands_.size()) {
      Fail("it names ", equation_.operands.size(), " operands, and there are ",
           operands_.size());
    }
    std::array<int64_t, 128> size;
    size.fill(-1);
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Letters& letters = equation_.operands[i];
      if (static_cast<int>(letters.size()) != operands_[i].rank()) {
        Fail("operand ", i, " has ", operands_[i].rank(), " axes, \"", letters,
             "\" has ", letters.size());
      }
      for (size_t axis = 0; axis < letters.size(); ++axis) {
        int64_t& known = size[letters[axis]];
        const int64_t mine = operands_[i].shape()[static_cast<int>(axis)];
        if (known >= 0 && known != mine) {
          Fail("'", std::string(1, letters[axis]), "' is ", known, " and ",
               mine);
        }
        known = mine;
      }
    }
    DimVector dims;
    for (char c : equation_.result) dims.push_back(size[c]);
    ResultShape("Einsum", dims);  // before anything is computed
  }

  // The diagonal for each letter that stands twice.
  static Factor WithoutRepeats(Factor f) {
    for (size_t i = 0; i < f.letters.size();) {
      const size_t other = f.letters.find(f.letters[i], i + 1);
      if (other == Letters::npos) {
        ++i;
        continue;
      }
      f.x = Diagonal(f.x, 0, static_cast<int>(i), static_cast<int>(other));
      f.letters += f.letters[i];
      f.letters.erase(other, 1);
      f.letters.erase(i, 1);
    }
    return f;
  }

  // Whether the result, or a factor other than these two, has the letter.
  bool WantedBeside(char c, const Factor& a, const Factor& b) const {
    return Has(equation_.result, c) ||
           std::any_of(factors_.begin(), factors_.end(), [&](const Factor& f) {
             return &f != &a && &f != &b && Has(f.letters, c);
           });
  }

  // Sums over what no other factor and not the result has.
  Factor WithoutLonely(const Factor& f) const {
    Factor left = f;
    for (size_t axis = f.letters.size(); axis-- > 0;) {
      if (WantedBeside(f.letters[axis], f, f)) continue;
      left.x = Sum(left.x, static_cast<int>(axis));
      left.letters.erase(axis, 1);
    }
    return left;
  }

  static int64_t SizeOf(const Factor& f, const Letters& letters) {
    int64_t size = 1;
    for (char c : letters) {
      size *= f.x.shape()[static_cast<int>(f.letters.find(c))];
    }
    return size;
  }

  // The letters of two factors by what becomes of them.
  struct Kinds {
    Letters batch, contracted, rows, columns;
  };
  Kinds KindsOf(const Factor& a, const Factor& b) const {
    Kinds kinds;
    for (char c : a.letters) {
      if (!Has(b.letters, c)) {
        kinds.rows += c;
      } else if (WantedBeside(c, a, b)) {
        kinds.batch += c;
      } else {
        kinds.contracted += c;
      }
    }
    for (char c : b.letters) {
      if (!Has(a.letters, c)) kinds.columns += c;
    }
    return kinds;
  }

  void ContractTwo() {
    size_t first = 0, second = 1;
    double fewest = HUGE_VAL;
    for (size_t i = 0; i < factors_.size(); ++i) {
      for (size_t j = i + 1; j < factors_.size(); ++j) {
        const Kinds kinds = KindsOf(factors_[i], factors_[j]);
        const double size =
            static_cast<double>(SizeOf(factors_[i], kinds.batch + kinds.rows)) *
            static_cast<double>(SizeOf(factors_[j], kinds.columns));
        if (size < fewest) {
          fewest = size;
          first = i;
          second = j;
        }
      }
    }
    Factor product = Contracted(factors_[first], factors_[second]);
    factors_.erase(factors_.begin() + second);
    factors_[first] = std::move(product);
  }

  // x with its axes in the order of `letters`, without a copy where only axes
  // of size 1 move.
  static Tensor Ordered(const Factor& f, const Letters& letters) {
    absl::InlinedVector<int, 6> axes;
    DimVector dims;
    bool moves = false;
    int last = -1;
    for (char c : letters) {
      const int axis = static_cast<int>(f.letters.find(c));
      axes.push_back(axis);
      dims.push_back(f.x.shape()[axis]);
      if (dims.back() == 1) continue;
      moves = moves || axis < last;
      last = axis;
    }
    if (letters == f.letters) return f.x;
    return moves ? Permute(f.x, axes) : Reshape(f.x, Shape(dims));
  }
  static Tensor Shaped(const Tensor& x, absl::Span<const int64_t> dims) {
    const Shape shape(dims);
    return x.shape() == shape ? x : Reshape(x, shape);
  }

  // f as [batch, outer, inner] (without letters for a batch [outer, inner]), or
  // with the last two swapped when that needs no copy and the other does.
  struct Matrices {
    Tensor x;
    bool swapped;
  };
  static Matrices MatricesOf(const Factor& f, const Letters& batch,
                             const Letters& outer, const Letters& inner) {
    const bool swapped = f.letters != batch + outer + inner &&
                         f.letters == batch + inner + outer;
    const Tensor x =
        Ordered(f, swapped ? batch + inner + outer : batch + outer + inner);
    const int64_t sizes[] = {SizeOf(f, batch),
                             SizeOf(f, swapped ? inner : outer),
                             SizeOf(f, swapped ? outer : inner)};
    const auto dims = absl::MakeConstSpan(sizes).subspan(batch.empty() ? 1 : 0);
    return {Shaped(x, dims), swapped};
  }

  Factor Contracted(const Factor& a, const Factor& b) const {
    const Kinds k = KindsOf(a, b);
    // The columns first where the result wants them so.
    if (!k.rows.empty() && !k.columns.empty() &&
        equation_.result.find(k.columns[0]) <
            equation_.result.find(k.rows[0]) &&
        factors_.size() == 2) {
      return Contracted(b, a);
    }
    const Letters letters = k.batch + k.rows + k.columns;
    DimVector dims;
    for (char c : letters)
      dims.push_back(SizeOf(Has(a.letters, c) ? a : b, Letters(1, c)));
    ResultShape("Einsum", dims);  // what is between may be too large
    return {Shaped(Product(a, b, k), dims), letters};
  }

  static Tensor Product(const Factor& a, const Factor& b, const Kinds& k) {
    if (!k.contracted.empty() && k.rows.empty() && k.columns.empty()) {
      const auto rows = [&](const Factor& f) {
        return Shaped(Ordered(f, k.batch + k.contracted),
                      {SizeOf(f, k.batch), SizeOf(f, k.contracted)});
      };
      return RowDot(rows(a), rows(b));
    }
    const Matrices ma = MatricesOf(a, k.batch, k.rows, k.contracted);
    const Matrices mb = MatricesOf(b, k.batch, k.contracted, k.columns);
    return k.contracted.empty() ? ma.x * mb.x
                                : MatMul(ma.x, mb.x, {ma.swapped, mb.swapped});
  }

  const std::string& text_;
  absl::Span<const Tensor> operands_;
  Equation equation_;
  std::vector<Factor> factors_;
};

}  // namespace

Tensor Einsum(const std::string& equation, absl::Span<const Tensor> operands) {
  return Einsummer(equation, operands).Run();
}
Tensor Einsum(const std::string& equation,
              std::initializer_list<Tensor> operands) {
  return Einsum(equation,
                absl::MakeConstSpan(operands.begin(), operands.size()));
}

}  // namespace wengert
