#include "nn/layer_testlib.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "autograd/ops/reference_testlib.h"
#include "autograd/random.h"
#include "gtest/gtest.h"

namespace wengert::nn {
namespace {

// Writes f(i) into the elements of a float tensor.
template <class F>
void Write(Tensor& x, F f) {
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x.dtype() == DType::kFloat32) {
      x.mutable_data<float>()[i] = static_cast<float>(f(i));
    } else {
      x.mutable_data<double>()[i] = f(i);
    }
  }
}

std::vector<Tensor> ParametersOf(const ParameterStore& store) {
  std::vector<Tensor> all;
  for (const Parameter* p : store.parameters()) all.push_back(p->value);
  return all;
}

}  // namespace

TensorMap ReadReference(const std::string& file) {
  return ReadReferenceFile("nn/testdata/" + file);
}

TensorMap Under(const TensorMap& all, const std::string& prefix) {
  TensorMap some;
  for (const auto& [name, x] : all) {
    if (name.rfind(prefix, 0) == 0) some[name.substr(prefix.size())] = x;
  }
  EXPECT_FALSE(some.empty()) << "nothing begins with " << prefix;
  return some;
}

Tensor ToBool(const Tensor& x) {
  return Greater(x, Tensor::Scalar(0.5, x.dtype()));
}

void SetParameters(ParameterStore& store, const TensorMap& values) {
  EXPECT_EQ(store.size(), static_cast<int64_t>(values.size()));
  for (const auto& [name, x] : values) {
    Tensor p = store.Find(name);
    ASSERT_EQ(p.shape(), x.shape()) << name;
    const double* from = x.data<double>();
    Write(p, [&](int64_t i) { return from[i]; });
  }
}

void ExpectNear(const Tensor& actual, const Tensor& expected, double tolerance,
                const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const std::vector<double> a = actual.ToVector(), e = expected.ToVector();
  double largest = 1;
  for (double x : e) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], e[i], tolerance * largest) << what << " at " << i;
  }
}

double Tolerance(DType dtype) {
  return dtype == DType::kFloat32 ? 3e-6 : 1e-12;
}

void ExpectMatchesReference(const ParameterStore& store,
                            const TensorMap& reference,
                            const std::vector<std::string>& inputs,
                            const GradCheckFunction& layer) {
  const double tolerance = Tolerance(store.dtype());
  std::vector<Tensor> xs;
  for (const std::string& name : inputs) {
    xs.push_back(reference.at(name).To(store.dtype()));
  }
  Tape tape;
  for (const Tensor& x : xs) tape.Watch(x);
  const Tensor out = layer(xs);
  ExpectNear(out, reference.at("out"), tolerance, "out");
  std::vector<std::string> names = inputs;
  for (const Parameter* p : store.parameters()) {
    names.push_back(p->name);
    xs.push_back(p->value);
  }
  const Tensor dy = reference.at("dy").To(store.dtype());
  const std::vector<Tensor> grads = tape.Gradient(out, xs, {.cotangent = dy});
  for (size_t i = 0; i < names.size(); ++i) {
    ExpectNear(grads[i], reference.at("grad." + names[i]), tolerance,
               "the gradient of " + names[i]);
  }
}

GradCheckReport CheckLayer(const ParameterStore& store,
                           std::vector<Tensor> inputs,
                           const GradCheckFunction& layer,
                           GradCheckOptions options) {
  options.order = 2;
  for (const Tensor& p : ParametersOf(store)) inputs.push_back(p);
  return GradCheck(layer, inputs, options);
}

Tensor RandomTensor(const Shape& shape, uint64_t seed, DType dtype) {
  std::vector<double> values(shape.size());
  FillNormal(seed, 0, 0, 1, shape.size(), values.data());
  return Tensor::From(shape, values).To(dtype);
}

void Randomise(ParameterStore& store) {
  uint64_t seed = 1000;
  for (Parameter* p : store.parameters()) {
    const std::vector<double> old = p->value.ToVector();
    const std::vector<double> noise =
        RandomTensor(p->value.shape(), seed++).ToVector();
    Write(p->value, [&](int64_t i) { return old[i] + noise[i] / 2; });
  }
}

}  // namespace wengert::nn
