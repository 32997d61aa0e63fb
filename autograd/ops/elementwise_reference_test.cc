// Elementwise operations beside PyTorch's numbers, with first and second
// derivatives.
#include <map>
#include <set>

#include "autograd/ops/ops_testlib.h"
#include "autograd/ops/reference_testlib.h"

namespace wengert {
namespace {

using One = Tensor (*)(const Tensor&);
using Two = Tensor (*)(const Tensor&, const Tensor&);

Function Of(One f) {
  return [f](Inputs x) { return f(x[0]); };
}
Function Of(Two f) {
  return [f](Inputs x) { return f(x[0], x[1]); };
}
Function PowOf(double p) {
  return [p](Inputs x) { return Pow(x[0], p); };
}

// By the names of the reference, to which "AtEdges" may be added.
std::map<std::string, Function> Functions() {
  const Function pow = [](Inputs x) { return Pow(x[0], x[1]); };
  const auto lerp = [](double weight) -> Function {
    return [weight](Inputs x) { return Lerp(x[0], x[1], weight); };
  };
  return {
      {"Exp", Of(Exp)},
      {"Log", Of(Log)},
      {"Tanh", Of(Tanh)},
      {"Sigmoid", Of(Sigmoid)},
      {"Erf", Of(Erf)},
      {"Erfc", Of(Erfc)},
      {"Square", Of(Square)},
      {"Sqrt", Of(Sqrt)},
      {"Rsqrt", Of(Rsqrt)},
      {"Expm1", Of(Expm1)},
      {"Log1p", Of(Log1p)},
      {"Sin", Of(Sin)},
      {"Cos", Of(Cos)},
      {"Relu", Of(Relu)},
      {"Gelu", Of(Gelu)},
      {"GeluTanh", Of(GeluTanh)},
      {"Silu", Of(Silu)},
      {"Abs", Of(Abs)},
      {"Sign", Of(Sign)},
      {"Floor", Of(Floor)},
      {"Ceil", Of(Ceil)},
      {"Trunc", Of(Trunc)},
      {"Round", Of(Round)},
      {"Clamp", [](Inputs x) { return Clamp(x[0], -1, 1.5); }},
      {"ClampOneSide", [](Inputs x) { return Clamp(x[0], -1, kInf); }},
      {"Softplus", [](Inputs x) { return Softplus(x[0]); }},
      {"SoftplusBeta", [](Inputs x) { return Softplus(x[0], 3); }},
      {"LogSigmoid", Of(LogSigmoid)},
      {"LeakyRelu", [](Inputs x) { return LeakyRelu(x[0]); }},
      {"LeakyReluSlope", [](Inputs x) { return LeakyRelu(x[0], 0.3); }},
      {"Elu", [](Inputs x) { return Elu(x[0]); }},
      {"EluAlpha", [](Inputs x) { return Elu(x[0], 1.5); }},
      {"PowCube", PowOf(3)},
      {"PowBroken", PowOf(2.5)},
      {"PowMinusTwo", PowOf(-2)},
      {"PowHalf", PowOf(0.5)},
      {"PowZero", PowOf(0)},
      {"Add", Of(Add)},
      {"Sub", Of(Sub)},
      {"Mul", Of(Mul)},
      {"Div", Of(Div)},
      {"Maximum", Of(Maximum)},
      {"Minimum", Of(Minimum)},
      {"Atan2", Of(Atan2)},
      {"Pow", pow},
      {"Lerp", lerp(0.3)},
      {"LerpToTheEnd", lerp(1)},
      {"LerpWeights", [](Inputs x) { return Lerp(x[0], x[1], x[2]); }},
      {"Equal", Of(Equal)},
      {"NotEqual", Of(NotEqual)},
      {"Less", Of(Less)},
      {"LessEqual", Of(LessEqual)},
      {"Greater", Of(Greater)},
      {"GreaterEqual", Of(GreaterEqual)},
      {"IsNan", Of(IsNan)},
      {"IsInf", Of(IsInf)},
      {"IsFinite", Of(IsFinite)},
  };
}

// The absolute part is for PyTorch, which takes some tails as differences.
void ExpectEqual(const Tensor& got, const Tensor& want,
                 const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  const std::vector<double> a = got.ToVector(), b = want.ToVector();
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    EXPECT_LE(std::abs(a[i] - b[i]), 2e-14 * std::abs(b[i]) + 1e-15)
        << what << ", element " << i << ": " << a[i] << ", wanted " << b[i];
  }
}

void CheckCase(const TensorMap& reference, const std::string& name,
               const Function& f) {
  std::vector<Tensor> xs;
  const auto at = [&](const char* kind, size_t i) {
    return reference.find(absl::StrCat(name, kind, i));
  };
  for (auto x = at(".", 0); x != reference.end(); x = at(".", xs.size())) {
    xs.push_back(x->second);
  }
  Tape tape;
  for (const Tensor& x : xs) tape.Watch(x);
  const Tensor y = f(xs);
  ExpectEqual(y, reference.at(name + ".out"), name);
  if (y.dtype() == DType::kBool) return;
  const bool second = at(".second.", 0) != reference.end();
  const std::vector<Tensor> grads =
      tape.Gradient(Sum(y), xs, {.create_graph = second});
  Tensor total = Tensor::Zeros({}, DType::kFloat64);
  for (size_t i = 0; i < xs.size(); ++i) {
    ExpectEqual(grads[i], at(".grad.", i)->second,
                absl::StrCat(name, ", gradient ", i));
    total = total + Sum(grads[i]);
  }
  if (!second) return;
  const std::vector<Tensor> seconds = tape.Gradient(total, xs);
  for (size_t i = 0; i < xs.size(); ++i) {
    ExpectEqual(seconds[i], at(".second.", i)->second,
                absl::StrCat(name, ", second gradient ", i));
  }
}

TEST(ElementwiseReferenceTest, AgreesWithPyTorch) {
  const TensorMap reference = ReadReference("elementwise_reference.txt");
  std::set<std::string> seen;
  for (const auto& [key, x] : reference) {
    const std::string name = key.substr(0, key.find('.'));
    if (!seen.insert(name).second) continue;
    const std::string plain = name.substr(0, name.find("AtEdges"));
    const auto functions = Functions();
    ASSERT_TRUE(functions.count(plain)) << "there is no function " << plain;
    CheckCase(reference, name, functions.at(plain));
  }
  for (const auto& [name, f] : Functions()) {
    EXPECT_TRUE(seen.count(name) || seen.count(name + "AtEdges"))
        << "the reference has no " << name;
  }
}

}  // namespace
}  // namespace wengert
