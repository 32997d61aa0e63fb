#include "train/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "autograd/kernels/gemm.h"
#include "autograd/kernels/optimizer.h"

namespace wengert::train {
namespace {

// Makes x [rows, columns], of no more rows than columns, nearly orthogonal by
// the Newton-Schulz iteration.
template <class T>
void Orthogonalize(int64_t rows, int64_t columns, int steps, double eps,
                   std::vector<T>& x) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  const double norm =
      std::sqrt(kernels::SumSquares(rows * columns, 1, x.data()));
  kernels::Scale(rows * columns, 1 / std::max(norm, eps), x.data());
  std::vector<T> gram(rows * rows), factor(rows * rows), next(x.size());
  for (int step = 0; step < steps; ++step) {
    kernels::ParallelGemm<T>(false, true, rows, rows, columns, 1, x.data(),
                             columns, x.data(), columns, false, gram.data(),
                             rows);
    factor = gram;
    kernels::Scale(rows * rows, kB, factor.data());
    kernels::ParallelGemm<T>(false, false, rows, rows, rows, kC, gram.data(),
                             rows, gram.data(), rows, true, factor.data(),
                             rows);
    next = x;
    kernels::Scale(rows * columns, kA, next.data());
    kernels::ParallelGemm<T>(false, false, rows, columns, rows, 1,
                             factor.data(), rows, x.data(), columns, true,
                             next.data(), columns);
    std::swap(x, next);
  }
}

template <class T>
std::vector<T> Transposed(int64_t rows, int64_t columns,
                          const std::vector<T>& x) {
  std::vector<T> y(x.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) y[j * rows + i] = x[i * columns + j];
  }
  return y;
}

}  // namespace

Muon::Muon(nn::ParameterStore& store, MuonOptions o)
    : Optimizer(
          store, "Muon",
          [filter =
               o.matrix_filter](const Parameter& p) -> std::vector<OwnTensor> {
            const Shape& shape = p.value.shape();
            const DType dtype = p.value.dtype();
            if (shape.rank() == 2 && (!filter || filter(p.name, p.value))) {
              return {{"momentum", shape, dtype}};
            }
            return {{"m", shape, dtype}, {"v", shape, dtype}};
          },
          o.lr, o.decay_filter) {
  set_options({{"momentum", o.momentum},
               {"nesterov", o.nesterov},
               {"weight_decay", o.weight_decay},
               {"ns_steps", o.ns_steps},
               {"eps", o.eps},
               {"match_adamw", o.match_adamw},
               {"beta1", o.beta1},
               {"beta2", o.beta2},
               {"adam_eps", o.adam_eps}});
}

std::map<std::string, double> Muon::options() const { return options_; }

void Muon::set_options(const std::map<std::string, double>& options) {
  CheckFractions(options, {"momentum", "beta1", "beta2"});
  CheckSwitches(options, {"nesterov", "match_adamw"});
  CheckNonNegative(options, {"weight_decay"});
  CheckEps(options.at("eps"));
  CheckEps(options.at("adam_eps"), "adam_eps");
  const double steps = options.at("ns_steps");
  Check(steps >= 1 && steps < 100 && steps == std::floor(steps), "ns_steps",
        steps, "a whole number from 1 to 99");
  options_ = options;
  options_.erase("lr");
}

template <class T>
void Muon::UpdateMatrix(const Run& run) {
  const Shape& shape = run.parameter->value.shape();
  const int64_t rows = shape.dim(0), columns = shape.dim(1);
  const double momentum = options_.at("momentum");
  const T* const g = run.At<T>(run.segment.gradients);
  T* const m = run.state[0].template mutable_data<T>();
  std::vector<T> u(run.size);
  const bool nesterov = options_.at("nesterov") != 0;
  for (int64_t i = 0; i < run.size; ++i) {
    m[i] = static_cast<T>(m[i] + (1 - momentum) * (g[i] - m[i]));
    u[i] = nesterov ? static_cast<T>(g[i] + momentum * (m[i] - g[i])) : m[i];
  }
  const bool tall = rows > columns;
  if (tall) u = Transposed(rows, columns, u);
  Orthogonalize(std::min(rows, columns), std::max(rows, columns),
                static_cast<int>(options_.at("ns_steps")), options_.at("eps"),
                u);
  if (tall) u = Transposed(columns, rows, u);
  const auto a = static_cast<double>(rows), b = static_cast<double>(columns);
  const double scale = options_.at("match_adamw") != 0
                           ? 0.2 * std::sqrt(std::max(a, b))
                           : std::sqrt(std::max(1.0, a / b));
  const double keep = run.decay ? 1 - lr() * options_.at("weight_decay") : 1.0;
  T* const w = run.At<T>(run.segment.values);
  for (int64_t i = 0; i < run.size; ++i) {
    w[i] = static_cast<T>(keep * w[i] - lr() * scale * u[i]);
  }
}

template <class T>
void Muon::UpdateOther(const Run& run) {
  const auto t = static_cast<double>(run.step);
  const double beta1 = options_.at("beta1"), beta2 = options_.at("beta2");
  const kernels::AdamFactors factors = {
      .step_size = lr() / (1 - std::pow(beta1, t)),
      .beta1 = beta1,
      .beta2 = beta2,
      .root_scale = 1 / std::sqrt(1 - std::pow(beta2, t)),
      .eps = options_.at("adam_eps"),
      .keep = run.decay ? 1 - lr() * options_.at("weight_decay") : 1.0};
  kernels::AdamStep<T>(run.size, factors, run.At<T>(run.segment.gradients),
                       run.At<T>(run.segment.values),
                       run.state[0].template mutable_data<T>(),
                       run.state[1].template mutable_data<T>());
}

void Muon::Update(const Run& run) {
  if (run.size == 0) return;
  WithFloat(dtype(), [&]<class T>(T) {
    run.state.size() == 1 ? UpdateMatrix<T>(run) : UpdateOther<T>(run);
  });
}

}  // namespace wengert::train
