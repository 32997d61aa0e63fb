// The judging half of the gradient checker: compares gradients with each other
// and with central differences, and keeps the report. For gradcheck.cc.
#ifndef WENGERT_AUTOGRAD_GRADCHECK_JUDGE_H_
#define WENGERT_AUTOGRAD_GRADCHECK_JUDGE_H_

#include <functional>
#include <string>
#include <vector>

#include "autograd/gradcheck.h"
#include "autograd/tensor.h"

namespace wengert::internal {

// A tensor by which a function is differentiated.
struct Variable {
  Tensor x;
  std::string name;
};

// What should hold: `gradients` are those of sum_i cotangents_i · value()_i by
// the variables, which lie in the memory that value() reads.
struct GradientClaim {
  std::string what;
  std::vector<Variable> variables;
  std::function<std::vector<Tensor>()> value;
  std::vector<Tensor> cotangents;
  std::vector<Tensor> gradients;
};

// Elements of either sign and of size 1/2 to 3/2: none is near 0 and no two are
// alike, so that no fault hides in a symmetry. Float64.
Tensor RandomWeights(const Shape& shape, uint64_t seed, uint64_t offset);

// "[1, 2]", the index of the flat-th element.
std::string IndexOf(const Shape& shape, int64_t flat);

class GradientJudge {
 public:
  explicit GradientJudge(const GradCheckOptions& options) : options_(options) {}

  // Two gradients by v that should be equal.
  void Compare(const std::string& what, const Variable& v, const char* a_name,
               const Tensor& a, const char* b_name, const Tensor& b);
  // The claim against differences: each element, or along random directions.
  void CheckDifferences(GradientClaim claim);
  void Fail(const std::string& why);

  bool ok() const { return report_.ok; }
  const GradCheckReport& report() const { return report_; }

 private:
  struct Slopes {
    double numeric, analytic;
  };

  void CheckDirection(const GradientClaim& claim, size_t v, const Tensor& d);
  Slopes SlopesAlong(const GradientClaim& claim, size_t v, const Tensor& d,
                     int64_t begin, int64_t end) const;
  void Note(const std::string& what, const Variable& v, int64_t i,
            const char* a_name, double a, const char* b_name, double b);
  double Allowed(double a, double b) const;
  double Excess(double a, double b) const;

  const GradCheckOptions& options_;
  GradCheckReport report_;
};

}  // namespace wengert::internal

#endif  // WENGERT_AUTOGRAD_GRADCHECK_JUDGE_H_
