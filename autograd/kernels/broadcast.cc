#include "autograd/kernels/broadcast.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "absl/base/attributes.h"
#include "absl/container/inlined_vector.h"
#include "autograd/kernels/copy.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/stream.h"
#include "autograd/kernels/strided_loop.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/kernels/vecmath_pow.h"
#include "autograd/kernels/vecmath_trig.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// The loop over a result of shape `out`, with operands broadcast to it.
template <int K>
StridedLoop<K> BroadcastLoop(Dims out, const std::array<Dims, K>& operands) {
  const int rank = static_cast<int>(out.size());
  absl::InlinedVector<std::array<int64_t, K>, 6> strides(rank);
  for (int k = 0; k < K; ++k) {
    const Dims dims = operands[k];
    const int missing = rank - static_cast<int>(dims.size());
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; --i) {
      const int64_t size = i < missing ? 1 : dims[i - missing];
      strides[i][k] = size == 1 ? 0 : stride;
      stride *= size;
    }
  }
  StridedLoop<K> loop;
  for (int i = 0; i < rank; ++i) loop.Add(out[i], strides[i]);
  return loop;
}

// An operand within a row of the result: consecutive elements, or one that
// repeats.
template <class T, bool repeats>
class Operand {
 public:
  Operand(const T* x, int64_t row_stride) : x_(x), row_stride_(row_stride) {}
  void GoToRow(int64_t r) {
    row_ = x_ + r * row_stride_;
    first_ = *row_;
  }
  T operator[](int64_t i) const { return repeats ? first_ : row_[i]; }

 private:
  const T* x_;
  int64_t row_stride_;
  const T* row_ = nullptr;
  T first_ = T{};
};

// use(operand), so that the loop inside is compiled for either kind.
template <class T, class Use>
void WithOperand(const T* x, int64_t stride, int64_t row_stride, Use use) {
  if (stride == 0) {
    use(Operand<T, true>(x, row_stride));
  } else {
    use(Operand<T, false>(x, row_stride));
  }
}

// y = f(operands...) for a block of the result.
template <class Y, class F, class... Operands>
void Block(int64_t rows, int64_t n, bool streamed, Y* y, F f,
           Operands... operands) {
  for (int64_t r = 0; r < rows; ++r, y += n) {
    (operands.GoToRow(r), ...);
    WriteRowOrStream(
        n, streamed, [=](int64_t i) { return f(operands[i]...); }, y);
  }
}

// y = f(a, b)
template <class T, class Y, class F>
void Broadcast(Dims out, const T* a, Dims a_dims, const T* b, Dims b_dims, Y* y,
               F f) {
  const auto loop = BroadcastLoop<2>(out, {a_dims, b_dims});
  const bool streamed = IsStreamed<Y>(loop.size());
  ParallelFor(
      loop.size(), GrainOf(loop.size(), 1), [&](int64_t begin, int64_t end) {
        loop.ForEachBlock(
            begin, end, [&](int64_t at, int64_t rows, int64_t n, auto offsets) {
              WithOperand(a + offsets[0], loop.stride(0), loop.row_stride(0),
                          [&](auto a_rows) {
                            WithOperand(b + offsets[1], loop.stride(1),
                                        loop.row_stride(1), [&](auto b_rows) {
                                          Block(rows, n, streamed, y + at, f,
                                                a_rows, b_rows);
                                        });
                          });
            });
        if (streamed) EndStream();
      });
}

// y = f(a, b, c)
template <class A, class B, class C, class Y, class F>
void Broadcast(Dims out, const A* a, Dims a_dims, const B* b, Dims b_dims,
               const C* c, Dims c_dims, Y* y, F f) {
  const auto loop = BroadcastLoop<3>(out, {a_dims, b_dims, c_dims});
  const bool streamed = IsStreamed<Y>(loop.size());
  ParallelFor(
      loop.size(), GrainOf(loop.size(), 1), [&](int64_t begin, int64_t end) {
        loop.ForEachBlock(
            begin, end, [&](int64_t at, int64_t rows, int64_t n, auto offsets) {
              const auto with = [&](auto* x, int k, auto use) {
                WithOperand(x + offsets[k], loop.stride(k), loop.row_stride(k),
                            use);
              };
              with(a, 0, [&](auto a_rows) {
                with(b, 1, [&](auto b_rows) {
                  with(c, 2, [&](auto c_rows) {
                    Block(rows, n, streamed, y + at, f, a_rows, b_rows, c_rows);
                  });
                });
              });
            });
        if (streamed) EndStream();
      });
}

// Read and written as bytes, bools make vectors.
const uint8_t* AsBytes(const bool* x) {
  return reinterpret_cast<const uint8_t*>(x);
}
uint8_t* AsBytes(bool* x) { return reinterpret_cast<uint8_t*>(x); }

}  // namespace

template <class T>
void Apply(Binary op, Dims out, const T* a, Dims a_dims, const T* b,
           Dims b_dims, T* y) {
  const auto broadcast = [&](auto f) {
    Broadcast(out, a, a_dims, b, b_dims, y, f);
  };
  switch (op) {
    case Binary::kAdd:
      return broadcast([](T u, T v) { return u + v; });
    case Binary::kSub:
      return broadcast([](T u, T v) { return u - v; });
    case Binary::kMul:
      return broadcast([](T u, T v) { return u * v; });
    case Binary::kDiv:
      return broadcast([](T u, T v) { return u / v; });
    case Binary::kMax:
      return broadcast(
          [](T u, T v) { return Select((u >= v) | (u != u), u, v); });
    case Binary::kMin:
      return broadcast(
          [](T u, T v) { return Select((u <= v) | (u != u), u, v); });
    case Binary::kPow:
      return broadcast([](T u, T v) { return Pow(u, double{v}); });
    case Binary::kAtan2:
      return broadcast([](T u, T v) { return Atan2(u, v); });
    case Binary::kReciprocalReal:
      return broadcast([](T u, T v) { return ReciprocalReal(u, v); });
  }
}

template <class T>
void Apply(Compare op, Dims out, const T* a, Dims a_dims, const T* b,
           Dims b_dims, bool* y) {
  if constexpr (std::is_same_v<T, bool>) {
    return Apply(op, out, AsBytes(a), a_dims, AsBytes(b), b_dims, y);
  }
  const auto broadcast = [&](auto f) {
    Broadcast(out, a, a_dims, b, b_dims, y, f);
  };
  switch (op) {
    case Compare::kEq:
      return broadcast([](T u, T v) { return u == v; });
    case Compare::kNe:
      return broadcast([](T u, T v) { return u != v; });
    case Compare::kLt:
      return broadcast([](T u, T v) { return u < v; });
    case Compare::kLe:
      return broadcast([](T u, T v) { return u <= v; });
    case Compare::kGt:
      return Apply(Compare::kLt, out, b, b_dims, a, a_dims, y);
    case Compare::kGe:
      return Apply(Compare::kLe, out, b, b_dims, a, a_dims, y);
  }
}

void Apply(Logic op, Dims out, const bool* a, Dims a_dims, const bool* b,
           Dims b_dims, bool* y) {
  const auto broadcast = [&](auto f) {
    Broadcast(out, AsBytes(a), a_dims, AsBytes(b), b_dims, AsBytes(y), f);
  };
  switch (op) {
    case Logic::kAnd:
      return broadcast([](uint8_t u, uint8_t v) -> uint8_t { return u & v; });
    case Logic::kOr:
      return broadcast([](uint8_t u, uint8_t v) -> uint8_t { return u | v; });
    case Logic::kXor:
      return broadcast([](uint8_t u, uint8_t v) -> uint8_t { return u ^ v; });
  }
}

template <class T>
void Lerp(Dims out, const T* a, Dims a_dims, const T* b, Dims b_dims,
          const T* w, Dims w_dims, T* y) {
  Broadcast(out, a, a_dims, b, b_dims, w, w_dims, y, [](T u, T v, T t) {
    const T way = v - u;
    return Select(t < T{0.5}, Fma(t, way, u), Fma(t - 1, way, v));
  });
}

template <class T>
void Where(Dims out, const bool* c, Dims c_dims, const T* a, Dims a_dims,
           const T* b, Dims b_dims, T* y) {
  Broadcast(out, AsBytes(c), c_dims, a, a_dims, b, b_dims, y,
            [](uint8_t u, T v, T w) { return Select(u != 0, v, w); });
}

template <class T>
void WhereGrad(int64_t n, const bool* c, const T* dy, T* da, bool add_to_da,
               T* db, bool add_to_db) {
  const bool streamed = IsStreamed<T>(n);
  const uint8_t* const bytes = AsBytes(c);
  ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
    // A piece is read twice, but from the cache.
    constexpr int64_t kPiece = 1024;
    for (int64_t at = begin; at < end; at += kPiece) {
      const int64_t count = std::min(kPiece, end - at);
      const auto write = [&](T* dx, bool add, auto value) {
        if (!dx) return;
        if (add) {
          WriteRow(count, true, value, dx + at);
        } else {
          WriteRowOrStream(count, streamed, value, dx + at);
        }
      };
      write(da, add_to_da, [=, c = bytes + at, d = dy + at](int64_t i) {
        return Select(c[i] != 0, d[i], T{0});
      });
      write(db, add_to_db, [=, c = bytes + at, d = dy + at](int64_t i) {
        return Select(c[i] != 0, T{0}, d[i]);
      });
    }
    if (streamed) EndStream();
  });
}

template <class T>
void BroadcastTo(Dims out, const T* x, Dims x_dims, T* y) {
  const size_t missing = out.size() - x_dims.size();
  absl::InlinedVector<int64_t, 6> x_strides(out.size()), y_strides(out.size());
  int64_t x_stride = 1, y_stride = 1;
  for (size_t i = out.size(); i-- > 0;) {
    const int64_t size = i < missing ? 1 : x_dims[i - missing];
    x_strides[i] = size == 1 ? 0 : x_stride;
    y_strides[i] = y_stride;
    x_stride *= size;
    y_stride *= out[i];
  }
  CopyStrided(out, x, x_strides, y, y_strides);
}

template void Apply(Binary, Dims, const float*, Dims, const float*, Dims,
                    float*);
template void Apply(Binary, Dims, const double*, Dims, const double*, Dims,
                    double*);

template void Apply(Compare, Dims, const float*, Dims, const float*, Dims,
                    bool*);
template void Lerp(Dims, const float*, Dims, const float*, Dims, const float*,
                   Dims, float*);
template void Where(Dims, const bool*, Dims, const float*, Dims, const float*,
                    Dims, float*);
template void WhereGrad(int64_t, const bool*, const float*, float*, bool,
                        float*, bool);
template void BroadcastTo(Dims, const float*, Dims, float*);

template void Apply(Compare, Dims, const double*, Dims, const double*, Dims,
                    bool*);
template void Lerp(Dims, const double*, Dims, const double*, Dims,
                   const double*, Dims, double*);
template void Where(Dims, const bool*, Dims, const double*, Dims, const double*,
                    Dims, double*);
template void WhereGrad(int64_t, const bool*, const double*, double*, bool,
                        double*, bool);
template void BroadcastTo(Dims, const double*, Dims, double*);

template void Apply(Compare, Dims, const int32_t*, Dims, const int32_t*, Dims,
                    bool*);
template void Where(Dims, const bool*, Dims, const int32_t*, Dims,
                    const int32_t*, Dims, int32_t*);
template void BroadcastTo(Dims, const int32_t*, Dims, int32_t*);

template void Apply(Compare, Dims, const int64_t*, Dims, const int64_t*, Dims,
                    bool*);
template void Where(Dims, const bool*, Dims, const int64_t*, Dims,
                    const int64_t*, Dims, int64_t*);
template void BroadcastTo(Dims, const int64_t*, Dims, int64_t*);

template void Apply(Compare, Dims, const bool*, Dims, const bool*, Dims, bool*);
template void Where(Dims, const bool*, Dims, const bool*, Dims, const bool*,
                    Dims, bool*);
template void BroadcastTo(Dims, const bool*, Dims, bool*);

}  // namespace wengert::kernels
