#include "autograd/ops/dropout.h"

#include "autograd/kernels/dropout.h"
#include "autograd/ops.h"
#include "autograd/ops/op_util.h"
#include "autograd/parallel.h"

namespace wengert {

DropoutDraw DrawDropout(const char* op, double p) {
  if (!(p >= 0 && p <= 1)) {
    Throw(op, "dropout probability ", p, "; wanted one in [0, 1]");
  }
  const Tape* tape = Tape::Current();
  if (p == 0 || !tape || tape->mode() == Tape::kEval) return {};
  if (!tape->generator()) {
    Throw(op, "dropout ", p,
          " under a tape without randomness; write Tape tape(generator) to "
          "train or Tape tape(Tape::kEval) to turn dropout off");
  }
  if (InParallelFor()) Throw(op, "dropout drawn inside a ParallelFor");
  return {p, tape->generator()->seed(), tape->generator()->Take()};
}

// y = x keep / (1 - p): dx = dy keep / (1 - p), keep drawn again
Tensor DropoutWith(const Tensor& x, const DropoutDraw& draw) {
  if (draw.p == 0) return x;
  Tensor y = Tensor::Empty(x.shape(), x.dtype());
  WithFloat(x.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::Dropout(x.size(), draw.p, draw.seed, draw.offset, x.data<T>(),
                     false, Out<T>(y));
  });
  Record("Dropout", y, {x}, Save(),
         [draw](GradientSink& g) { g.Add(0, DropoutWith(g.dy(), draw)); });
  return y;
}

Tensor Dropout(const Tensor& x, double p) {
  CheckFloats("Dropout", {x});
  return DropoutWith(x, DrawDropout("Dropout", p));
}

}  // namespace wengert
