// Rotary position embedding: queries and keys turned by their positions, so
// that their products depend on distances alone.
#include "autograd/kernels/rotary.h"

#include "autograd/ops.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

kernels::RotarySizes CheckedSizes(const Tensor& x, const RotaryOptions& o) {
  CheckFloats("Rotary", {x});
  const int64_t dims = o.dims != 0 || x.rank() != 4 ? o.dims : x.dim(3);
  if (x.rank() != 4 || dims < 0 || dims % 2 != 0 || dims > x.dim(3)) {
    Throw("Rotary", "x ", Describe(x), ", dims ", o.dims,
          "; wanted x [B, T, H, D] and an even number of dims up to D");
  }
  // Angles are computed in double, which holds positions up to there.
  constexpr int64_t kLastPosition = int64_t{1} << 53;
  if (!(o.base > 0) || o.offset < 0 || o.offset > kLastPosition - x.dim(1)) {
    Throw("Rotary", "base ", o.base, ", offset ", o.offset, ", x ", Describe(x),
          "; wanted a base > 0, and positions from 0 to 2^53");
  }
  return {.batch = x.dim(0),
          .length = x.dim(1),
          .heads = x.dim(2),
          .width = x.dim(3),
          .pairs = dims / 2,
          .interleaved = o.interleaved};
}

struct Angles {
  Tensor cos, sin;  // [T, pairs]
};

Angles AnglesOf(const kernels::RotarySizes& sizes, const RotaryOptions& o,
                DType dtype) {
  Angles a{Tensor::Empty({sizes.length, sizes.pairs}, dtype),
           Tensor::Empty({sizes.length, sizes.pairs}, dtype)};
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::RotaryAngles(sizes.length, sizes.pairs, o.offset, o.base,
                          Out<T>(a.cos), Out<T>(a.sin));
  });
  return a;
}

}  // namespace

// (y, z) = (a cos - b sin, b cos + a sin) of each pair (a, b): the gradient is
// turned back, (da, db) = (dy cos + dz sin, dz cos - dy sin)
Tensor Rotary(const Tensor& x, RotaryOptions options) {
  const kernels::RotarySizes sizes = CheckedSizes(x, options);
  const Angles a = AnglesOf(sizes, options, x.dtype());
  Tensor y = Tensor::Empty(x.shape(), x.dtype());
  WithFloat(x.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::Rotary<T>(sizes, /*inverse=*/false, a.cos.data<T>(),
                       a.sin.data<T>(), x.data<T>(), false, Out<T>(y));
  });
  Record(
      "Rotary", y, {x}, Save(x, a.cos, a.sin),
      [sizes](GradientSink& g, const Tensor&, const Tensor& cos,
              const Tensor& sin) {
        WithFloat(cos.dtype(), [&](auto t) {
          using T = decltype(t);
          auto dx = g.Into<T>(0);
          kernels::Rotary<T>(sizes, /*inverse=*/true, cos.data<T>(),
                             sin.data<T>(), g.dy().data<T>(), dx.accumulate,
                             dx.data);
        });
      },
      [options](const Tensor& x, const Tensor&, const Tensor&) {
        return RotaryComposed(x, options);
      });
  return y;
}

Tensor RotaryComposed(const Tensor& x, RotaryOptions options) {
  const kernels::RotarySizes sizes = CheckedSizes(x, options);
  const Angles angles = AnglesOf(sizes, options, x.dtype());
  const int64_t pairs = sizes.pairs;
  const Shape row{sizes.length, 1, pairs};
  const Tensor cos = Reshape(angles.cos, row), sin = Reshape(angles.sin, row);
  // The pairs' members on an axis of their own, [B, T, H, pairs, 2] or
  // [B, T, H, 2, pairs].
  const int axis = options.interleaved ? 4 : 3;
  const Shape split =
      options.interleaved
          ? Shape{sizes.batch, sizes.length, sizes.heads, pairs, 2}
          : Shape{sizes.batch, sizes.length, sizes.heads, 2, pairs};
  const Shape half{sizes.batch, sizes.length, sizes.heads, pairs};
  const Shape member =
      options.interleaved
          ? Shape{sizes.batch, sizes.length, sizes.heads, pairs, 1}
          : Shape{sizes.batch, sizes.length, sizes.heads, 1, pairs};
  const Tensor turning = Reshape(Slice(x, 3, 0, 2 * pairs), split);
  const Tensor a = Reshape(Slice(turning, axis, 0, 1), half);
  const Tensor b = Reshape(Slice(turning, axis, 1, 1), half);
  const Tensor turned = Concat(
      {Reshape(a * cos - b * sin, member), Reshape(b * cos + a * sin, member)},
      axis);
  const Tensor rest = Slice(x, 3, 2 * pairs, sizes.width - 2 * pairs);
  return Concat({Reshape(turned, Shape{sizes.batch, sizes.length, sizes.heads,
                                       2 * pairs}),
                 rest},
                3);
}

}  // namespace wengert
