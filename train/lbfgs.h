// L-BFGS: a quasi-Newton method for small problems without noise, such as a fit
// to all of the data at once.
//
//   Lbfgs optimizer(store, {.line_search = true});
//   optimizer.Step([&] {
//     Tape tape;
//     const Tensor loss = Loss(model, data);
//     tape.Backward(loss);
//     return loss.item();
//   });
#ifndef WENGERT_TRAIN_LBFGS_H_
#define WENGERT_TRAIN_LBFGS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nn/parameter_store.h"
#include "train/optimizer.h"

namespace wengert::train {

struct LbfgsOptions {
  double lr = 1;
  int max_iter = 20;               // iterations in a Step
  int max_eval = 25;               // evaluations in a Step, after which it ends
  double tolerance_grad = 1e-7;    // largest |g| at which it ends
  double tolerance_change = 1e-9;  // of the loss and of each weight
  int history = 100;
  bool line_search = false;  // strong Wolfe; without, steps are lr long
};

// Nocedal, Wright 2006, algorithm 7.5, with PyTorch's LBFGS's rules: the first
// step is min(1, 1 / |g|_1) lr along -g, a pair (s, y) is kept where y.s >
// 1e-10, and the line search is algorithm 3.5 with cubic interpolation, c1 =
// 1e-4 and c2 = 0.9. All is computed in double. A parameter without a gradient
// has gradient 0. The state is two tensors of a parameter's size and two of
// `history` times that. Throws Error unless max_iter, max_eval and history are
// 1 or more, and the tolerances >= 0.
class Lbfgs : public Optimizer {
 public:
  explicit Lbfgs(nn::ParameterStore& store, LbfgsOptions options = {});

  // Evaluates the loss, with Backward, at the parameters as they are. Gradients
  // gathered before are dropped each time.
  using Closure = std::function<double()>;
  // Up to max_iter iterations; returns the first loss. Where the closure
  // throws, the parameters are those that it was called with. A loss or
  // gradient that is not finite ends the Step, at the last parameters that gave
  // finite ones.
  double Step(const Closure& closure);
  // Throws Error: it takes a closure.
  void Step() override;

 private:
  // A vector over all parameters, in their order.
  using Vector = std::vector<double>;
  struct Point {
    double loss;
    Vector gradient;
    bool finite() const;
  };

  void Update(const Run&) override {}
  std::map<std::string, double> options() const override;
  void set_options(const std::map<std::string, double>& options) override;

  // One of the state's tensors, or a row of it, of all parameters.
  Vector Get(int tensor, int64_t row = 0);
  void Set(int tensor, int64_t row, const Vector& x);
  Vector Weights() const;
  void SetWeights(const Vector& w);
  Point Evaluate(const Closure& closure);
  // The loss where the parameters are w + t d.
  Point EvaluateAt(const Closure& closure, const Vector& w, double t,
                   const Vector& d);
  Vector Direction(const Vector& gradient);
  Point Search(const Closure& closure, const Vector& w, const Vector& d,
               const Point& from, double slope, int max_evaluations, double& t,
               int& evaluations);

  std::map<std::string, double> options_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_LBFGS_H_
