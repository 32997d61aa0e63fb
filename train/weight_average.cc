#include "train/weight_average.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/kernels/optimizer.h"

namespace wengert::train {
namespace {

// f(weights, average) of each parameter. Both stores list them in one order.
template <class F>
void ForEach(nn::ParameterStore& weights, nn::ParameterStore& average,
             const F& f) {
  for (int64_t i = 0; i < average.size(); ++i) {
    f(weights.parameters()[i]->value, average.parameters()[i]->value);
  }
}

}  // namespace

WeightAverage::WeightAverage(nn::ParameterStore& store,
                             WeightAverageOptions options)
    : weights_(store),
      average_(store.Clone()),
      options_(options),
      updates_(Tensor::Scalar(0, DType::kFloat64)) {
  if (!(options.decay >= 0 && options.decay <= 1)) {
    throw Error(absl::StrCat("WeightAverage: the decay is ", options.decay,
                             "; wanted one in [0, 1]"));
  }
}

void WeightAverage::CheckSettled(const char* op) const {
  if (swapped_) {
    throw Error(absl::StrCat(op,
                             ": the model has its average just now; wanted "
                             "its own weights"));
  }
}

void WeightAverage::Update() {
  constexpr char kOp[] = "WeightAverage::Update";
  CheckSettled(kOp);
  if (weights_.size() != average_.size()) {
    throw Error(absl::StrCat(kOp, ": the store has ", weights_.size(),
                             " parameters; wanted the ", average_.size(),
                             " that it had when the average was made"));
  }
  double& updates = *updates_.mutable_data<double>();
  const double decay =
      options_.warm_up
          ? std::min(options_.decay, (1 + updates) / (10 + updates))
          : options_.decay;
  ForEach(weights_, average_, [&](const Tensor& w, Tensor& a) {
    WithFloat(w.dtype(), [&]<class T>(T) {
      kernels::MovingAverage(w.size(), static_cast<T>(1 - decay), w.data<T>(),
                             a.mutable_data<T>());
    });
  });
  ++updates;
}

void WeightAverage::Exchange() {
  ForEach(weights_, average_, [](Tensor& w, Tensor& a) {
    WithFloat(w.dtype(), [&]<class T>(T) {
      T* const from = w.mutable_data<T>();
      std::swap_ranges(from, from + w.size(), a.mutable_data<T>());
    });
  });
  swapped_ = !swapped_;
}

WeightAverage::Swap::Swap(WeightAverage& average) : average_(average) {
  average_.CheckSettled("WeightAverage::Swap");
  average_.Exchange();
}

WeightAverage::Swap::~Swap() { average_.Exchange(); }

std::vector<NamedTensor> WeightAverage::State() {
  CheckSettled("WeightAverage::State");
  std::vector<NamedTensor> state = {{"updates", updates_}};
  for (const Parameter* p : average_.parameters()) {
    state.push_back({absl::StrCat("weights.", p->name), p->value});
  }
  return state;
}

}  // namespace wengert::train
