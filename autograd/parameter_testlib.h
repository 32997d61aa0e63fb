// A plain store of parameters for the tests of this folder, which stands below
// nn/.
#ifndef WENGERT_AUTOGRAD_PARAMETER_TESTLIB_H_
#define WENGERT_AUTOGRAD_PARAMETER_TESTLIB_H_

#include <memory>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/tensor.h"

namespace wengert {

class TestStore {
 public:
  TestStore() : owner_(new Owner) {}
  ~TestStore() {
    owner_->alive = false;
    owner_->Unref();
  }
  TestStore(const TestStore&) = delete;
  TestStore& operator=(const TestStore&) = delete;

  // A parameter with the values of x.
  Tensor Add(const std::string& name, const Tensor& x) {
    auto p = std::make_unique<Parameter>();
    p->name = name;
    p->owner = owner_;
    p->value = x.Clone();
    p->value.impl()->parameter = p.get();
    owner_->parameters.push_back(std::move(p));
    return owner_->parameters.back()->value;
  }
  ParameterOwner& owner() { return *owner_; }
  void ZeroGrad() {
    for (auto& p : owner_->parameters) p->state = Parameter::Grad::kNone;
    owner_->gradients_invalid = false;
  }
  // What an optimizer's step does to the gradients.
  void MarkUsed() {
    for (auto& p : owner_->parameters) p->state = Parameter::Grad::kUsed;
  }

 private:
  struct Owner : ParameterOwner {
    ~Owner() override {
      for (auto& p : parameters) p->value.impl()->parameter = nullptr;
    }
    void AllocateGradients() override {
      for (auto& p : parameters) {
        if (!p->grad.defined()) {
          p->grad = Tensor::Zeros(p->value.shape(), p->value.dtype());
        }
      }
    }
    std::vector<std::unique_ptr<Parameter>> parameters;
  };
  Owner* owner_;
};

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_PARAMETER_TESTLIB_H_
