#include "train/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "autograd/error.h"

namespace wengert::train {
namespace {

enum { kDirection, kGradient, kS, kY };  // the state's tensors

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
void AddScaled(double scale, const std::vector<double>& x,
               std::vector<double>& y) {
  for (size_t i = 0; i < y.size(); ++i) y[i] += scale * x[i];
}
double LargestSize(const std::vector<double>& x) {
  double largest = 0;
  for (const double v : x) largest = std::max(largest, std::abs(v));
  return largest;
}

// Where a line search was: how far, and what is there.
struct Place {
  double t, loss, slope;
};

// The minimum of the cubic through two places and their slopes, within bounds;
// the middle of these where it has none.
double CubicMinimum(const Place& a, const Place& b, double low, double high) {
  const Place& x1 = a.t <= b.t ? a : b;
  const Place& x2 = a.t <= b.t ? b : a;
  const double d1 =
      x1.slope + x2.slope - 3 * (x1.loss - x2.loss) / (x1.t - x2.t);
  const double square = d1 * d1 - x1.slope * x2.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double t = x2.t - (x2.t - x1.t) * ((x2.slope + d2 - d1) /
                                           (x2.slope - x1.slope + 2 * d2));
  return std::min(std::max(t, low), high);
}

}  // namespace

bool Lbfgs::Point::finite() const {
  return std::isfinite(loss) &&
         std::all_of(gradient.begin(), gradient.end(),
                     [](double x) { return std::isfinite(x); });
}

Lbfgs::Lbfgs(nn::ParameterStore& store, LbfgsOptions o)
    : Optimizer(
          store, "Lbfgs",
          [history = o.history](const Parameter& p) {
            const Shape& shape = p.value.shape();
            std::vector<int64_t> rows = {std::max(history, 0)};
            rows.insert(rows.end(), shape.dims().begin(), shape.dims().end());
            return std::vector<OwnTensor>{{"direction", shape, DType::kFloat64},
                                          {"gradient", shape, DType::kFloat64},
                                          {"s", Shape(rows), DType::kFloat64},
                                          {"y", Shape(rows), DType::kFloat64}};
          },
          o.lr, nullptr) {
  set_options({{"max_iter", o.max_iter},
               {"max_eval", o.max_eval},
               {"tolerance_grad", o.tolerance_grad},
               {"tolerance_change", o.tolerance_change},
               {"history", o.history},
               {"line_search", o.line_search},
               // Not options, but where it stands:
               {"iterations", 0},
               {"pairs", 0},
               {"scale", 1},
               {"t", 0}});
}

std::map<std::string, double> Lbfgs::options() const { return options_; }

void Lbfgs::set_options(const std::map<std::string, double>& options) {
  for (const char* name : {"max_iter", "max_eval", "history"}) {
    const double n = options.at(name);
    Check(n >= 1 && n == std::floor(n), name, n, "a whole number, 1 or more");
  }
  CheckNonNegative(options, {"tolerance_grad", "tolerance_change", "iterations",
                             "pairs", "scale", "t"});
  CheckSwitches(options, {"line_search"});
  const double pairs = options.at("pairs");
  Check(pairs <= options.at("history"), "pairs", pairs, "at most the history");
  options_ = options;
  options_.erase("lr");
}

void Lbfgs::Step() { throw Error("Lbfgs: Step wants a function of the loss"); }

Lbfgs::Vector Lbfgs::Get(int tensor, int64_t row) {
  Vector x;
  for (Entry& entry : entries()) {
    const int64_t n = entry.tensors[kDirection].size();
    const double* const from = entry.tensors[tensor].data<double>() + row * n;
    x.insert(x.end(), from, from + n);
  }
  return x;
}

void Lbfgs::Set(int tensor, int64_t row, const Vector& x) {
  auto from = x.begin();
  for (Entry& entry : entries()) {
    const int64_t n = entry.tensors[kDirection].size();
    std::copy(from, from + n,
              entry.tensors[tensor].mutable_data<double>() + row * n);
    from += n;
  }
}

Lbfgs::Vector Lbfgs::Weights() const {
  Vector w;
  for (const Parameter* p : store().parameters) {
    const std::vector<double> x = p->value.ToVector();
    w.insert(w.end(), x.begin(), x.end());
  }
  return w;
}

void Lbfgs::SetWeights(const Vector& w) {
  auto from = w.begin();
  for (Parameter* p : store().parameters) {
    WithFloat(dtype(), [&]<class T>(T) {
      T* const to = p->value.mutable_data<T>();
      for (int64_t i = 0; i < p->value.size(); ++i) {
        to[i] = static_cast<T>(*from++);
      }
    });
  }
}

Lbfgs::Point Lbfgs::Evaluate(const Closure& closure) {
  for (Parameter* p : store().parameters) p->state = Parameter::Grad::kNone;
  Point point = {closure(), {}};
  store().CheckGradients("Lbfgs.Step");
  for (Parameter* p : store().parameters) {
    const bool fresh = p->state == Parameter::Grad::kFresh;
    const std::vector<double> g =
        fresh ? p->grad.ToVector() : std::vector<double>(p->value.size(), 0.0);
    point.gradient.insert(point.gradient.end(), g.begin(), g.end());
    if (fresh) p->state = Parameter::Grad::kUsed;
  }
  return point;
}

Lbfgs::Point Lbfgs::EvaluateAt(const Closure& closure, const Vector& w,
                               double t, const Vector& d) {
  Vector moved = w;
  AddScaled(t, d, moved);
  SetWeights(moved);
  return Evaluate(closure);
}

// Takes up what the last step showed of the curvature; returns -H g.
Lbfgs::Vector Lbfgs::Direction(const Vector& gradient) {
  const auto history = static_cast<int64_t>(options_["history"]);
  auto pairs = static_cast<int64_t>(options_["pairs"]);
  Vector y = gradient, s = Get(kDirection);
  AddScaled(-1, Get(kGradient), y);
  for (double& x : s) x *= options_["t"];
  const double ys = Dot(y, s);
  if (ys > 1e-10) {
    if (pairs == history) {
      for (int64_t i = 1; i < history; ++i) {
        Set(kS, i - 1, Get(kS, i));
        Set(kY, i - 1, Get(kY, i));
      }
      --pairs;
    }
    Set(kS, pairs, s);
    Set(kY, pairs, y);
    options_["pairs"] = static_cast<double>(++pairs);
    options_["scale"] = ys / Dot(y, y);
  }
  Vector d = gradient;
  for (double& x : d) x = -x;
  Vector alpha(pairs), rho(pairs);
  for (int64_t i = pairs - 1; i >= 0; --i) {
    const Vector si = Get(kS, i), yi = Get(kY, i);
    rho[i] = 1 / Dot(yi, si);
    alpha[i] = rho[i] * Dot(si, d);
    AddScaled(-alpha[i], yi, d);
  }
  for (double& x : d) x *= options_["scale"];
  for (int64_t i = 0; i < pairs; ++i) {
    AddScaled(alpha[i] - rho[i] * Dot(Get(kY, i), d), Get(kS, i), d);
  }
  return d;
}

// Finds a t at which the strong Wolfe conditions hold, or the best there was.
Lbfgs::Point Lbfgs::Search(const Closure& closure, const Vector& w,
                           const Vector& d, const Point& from, double slope,
                           int max_evaluations, double& t, int& evaluations) {
  constexpr double kC1 = 1e-4, kC2 = 0.9;
  const double largest = LargestSize(d);
  const auto evaluate = [&](double at, Point& point) -> Place {
    point = EvaluateAt(closure, w, at, d);
    ++evaluations;
    return {at, point.loss, Dot(point.gradient, d)};
  };
  const auto too_high = [&](const Place& p) {
    return p.loss > from.loss + kC1 * p.t * slope;
  };
  const auto flat = [&](const Place& p) {
    return std::abs(p.slope) <= -kC2 * slope;
  };
  const Place start = {0, from.loss, slope};
  Place before = start;
  Point before_point = from, point;
  Place now = evaluate(t, point);
  int n = 0;
  bool bracketed = false;
  for (; n < max_evaluations; ++n) {
    if (too_high(now) || (n > 1 && now.loss >= before.loss)) {
      bracketed = true;
      break;
    }
    if (flat(now)) {
      t = now.t;
      return point;
    }
    if (now.slope >= 0) {
      bracketed = true;
      break;
    }
    const double next = CubicMinimum(
        before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
    before = now;
    before_point = std::move(point);
    now = evaluate(next, point);
  }
  Place ends[2] = {bracketed ? before : start, now};
  Point points[2] = {bracketed ? before_point : from, point};
  int low = ends[0].loss <= ends[1].loss ? 0 : 1;
  bool slow = false;
  for (bool done = false; !done && n < max_evaluations; ++n) {
    const double left = std::min(ends[0].t, ends[1].t);
    const double right = std::max(ends[0].t, ends[1].t);
    if ((right - left) * largest < options_["tolerance_change"]) break;
    double next = CubicMinimum(ends[0], ends[1], left, right);
    // Twice near an end, or at one: a tenth of the way from it.
    const double tenth = 0.1 * (right - left);
    if (std::min(right - next, next - left) < tenth) {
      const bool move = slow || next >= right || next <= left;
      if (move)
        next = right - next < next - left ? right - tenth : left + tenth;
      slow = !move;
    } else {
      slow = false;
    }
    now = evaluate(next, point);
    const int high = 1 - low;
    if (too_high(now) || now.loss >= ends[low].loss) {
      ends[high] = now;
      points[high] = std::move(point);
      low = ends[0].loss <= ends[1].loss ? 0 : 1;
      continue;
    }
    if (flat(now)) {
      done = true;
    } else if (now.slope * (ends[high].t - ends[low].t) >= 0) {
      ends[high] = ends[low];
      points[high] = points[low];
    }
    ends[low] = now;
    points[low] = std::move(point);
  }
  t = ends[low].t;
  return points[low];
}

double Lbfgs::Step(const Closure& closure) {
  CheckUsable("Step");
  Point point = Evaluate(closure);
  const double first_loss = point.loss;
  const double tolerance = options_["tolerance_change"];
  int evaluations = 1;
  for (int n = 1; n <= options_["max_iter"]; ++n) {
    if (!point.finite() ||
        LargestSize(point.gradient) <= options_["tolerance_grad"]) {
      break;
    }
    const bool first = options_["iterations"]++ == 0;
    Vector d;
    double t = lr();
    if (first) {
      d = point.gradient;
      double sum = 0;
      for (double& x : d) sum += std::abs(x = -x);
      t *= std::min(1.0, 1 / sum);
    } else {
      d = Direction(point.gradient);
    }
    Set(kDirection, 0, d);
    Set(kGradient, 0, point.gradient);
    const double slope = Dot(point.gradient, d);
    options_["t"] = 0;  // unless the step is made
    if (!(slope <= -tolerance)) break;
    const Vector w = Weights();
    Point next = point;
    if (options_["line_search"] != 0) {
      const int left = static_cast<int>(options_["max_eval"]) - evaluations;
      next = Search(closure, w, d, point, slope, left, t, evaluations);
    }
    const bool last = n == options_["max_iter"];
    if (options_["line_search"] == 0 && !last) {
      next = EvaluateAt(closure, w, t, d);
      ++evaluations;
    } else {
      Vector moved = w;
      AddScaled(t, d, moved);
      SetWeights(moved);
    }
    if (!next.finite()) {
      SetWeights(w);
      break;
    }
    options_["t"] = t;
    for (Entry& entry : entries()) ++entry.step;
    const double change = std::abs(next.loss - point.loss);
    point = std::move(next);
    if (last || evaluations >= options_["max_eval"] ||
        t * LargestSize(d) <= tolerance || change < tolerance) {
      break;
    }
  }
  return first_loss;
}

}  // namespace wengert::train
