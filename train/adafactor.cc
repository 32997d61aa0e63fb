#include "train/adafactor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/kernels/optimizer.h"

namespace wengert::train {
namespace {

// Root mean square.
template <class T>
double Rms(int64_t n, const T* x) {
  return std::sqrt(kernels::SumSquares(n, 1, x) / static_cast<double>(n));
}

// Moves the state towards the mean squares of a matrix's rows and columns.
template <class T>
void UpdateMeans(int64_t rows, int64_t columns, double rate, const T* g, T* row,
                 T* column) {
  std::vector<double> sums(columns, 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    const T* const x = g + i * columns;
    for (int64_t j = 0; j < columns; ++j) {
      sums[j] += static_cast<double>(x[j]) * x[j];
    }
    const double mean = kernels::SumSquares(columns, 1, x) / columns;
    row[i] = static_cast<T>(row[i] + rate * (mean - row[i]));
  }
  for (int64_t j = 0; j < columns; ++j) {
    const double mean = sums[j] / rows;
    column[j] = static_cast<T>(column[j] + rate * (mean - column[j]));
  }
}

}  // namespace

Adafactor::Adafactor(nn::ParameterStore& store, AdafactorOptions o)
    : Optimizer(
          store, "Adafactor",
          [](const Parameter& p) -> std::vector<OwnTensor> {
            const DType dtype = p.value.dtype();
            std::vector<int64_t> row(p.value.shape().dims().begin(),
                                     p.value.shape().dims().end());
            if (row.size() < 2) return {{"square", p.value.shape(), dtype}};
            std::vector<int64_t> column = row;
            row.pop_back();
            column.erase(column.end() - 2);
            return {{"row", Shape(row), dtype},
                    {"column", Shape(column), dtype}};
          },
          o.lr, o.decay_filter) {
  set_options({{"beta2_decay", o.beta2_decay},
               {"eps1", o.eps1},
               {"eps2", o.eps2},
               {"d", o.d},
               {"weight_decay", o.weight_decay}});
}

std::map<std::string, double> Adafactor::options() const {
  return {{"beta2_decay", beta2_decay_},
          {"eps1", eps1_},
          {"eps2", eps2_},
          {"d", d_},
          {"weight_decay", weight_decay_}};
}

void Adafactor::set_options(const std::map<std::string, double>& options) {
  const double decay = options.at("beta2_decay");
  Check(decay <= 0 && std::isfinite(decay), "beta2_decay", decay,
        "a finite number <= 0");
  CheckNonNegative(options, {"eps1", "eps2", "weight_decay"});
  CheckEps(options.at("d"), "d");
  beta2_decay_ = decay;
  eps1_ = options.at("eps1");
  eps2_ = options.at("eps2");
  d_ = options.at("d");
  weight_decay_ = options.at("weight_decay");
}

template <class T>
void Adafactor::UpdateAs(const Run& run) {
  const Shape& shape = run.parameter->value.shape();
  const T* const g = run.At<T>(run.segment.gradients);
  T* const w = run.At<T>(run.segment.values);
  const double t = static_cast<double>(run.step);
  const double rate = std::pow(t, beta2_decay_);
  const double eps1 = eps1_ > 0 ? eps1_ : std::numeric_limits<T>::epsilon();
  const double step =
      std::max(eps2_, Rms(run.size, w)) * std::min(lr(), 1 / std::sqrt(t));
  if (run.decay && weight_decay_ != 0) {
    kernels::Scale(run.size, 1 - lr() * weight_decay_, w);
  }
  std::vector<T> u(run.size);
  const auto divide = [&](int64_t i, double v) {
    u[i] = static_cast<T>(g[i] / std::sqrt(std::max(v, eps1 * eps1)));
  };
  if (shape.rank() < 2) {
    T* const square = run.state[0].template mutable_data<T>();
    for (int64_t i = 0; i < run.size; ++i) {
      const double x = g[i];
      square[i] = static_cast<T>(square[i] + rate * (x * x - square[i]));
      divide(i, square[i]);
    }
  } else {
    const int64_t rows = shape.dim(-2), columns = shape.dim(-1);
    for (int64_t at = 0; at < run.size; at += rows * columns) {
      T* const row = run.state[0].template mutable_data<T>() + at / columns;
      T* const column = run.state[1].template mutable_data<T>() + at / rows;
      UpdateMeans(rows, columns, rate, g + at, row, column);
      double mean = 0;
      for (int64_t i = 0; i < rows; ++i) mean += row[i];
      mean = std::max(mean / rows, eps1);
      for (int64_t i = 0; i < rows * columns; ++i) {
        divide(at + i, static_cast<double>(row[i / columns]) *
                           column[i % columns] / mean);
      }
    }
  }
  const double factor = -step / std::max(1.0, Rms(run.size, u.data()) / d_);
  for (int64_t i = 0; i < run.size; ++i) {
    w[i] = static_cast<T>(w[i] + factor * u[i]);
  }
}

void Adafactor::Update(const Run& run) {
  WithFloat(dtype(), [&]<class T>(T) { UpdateAs<T>(run); });
}

}  // namespace wengert::train
