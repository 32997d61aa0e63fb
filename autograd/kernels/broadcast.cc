#include "autograd/kernels/broadcast.h"

#include <array>

#include "autograd/kernels/loop.h"
#include "autograd/kernels/strided_loop.h"
#include "autograd/kernels/vecmath.h"
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
void Block(int64_t rows, int64_t n, Y* y, F f, Operands... operands) {
  for (int64_t r = 0; r < rows; ++r, y += n) {
    (operands.GoToRow(r), ...);
    WENGERT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) y[i] = f(operands[i]...);
  }
}

// y = f(a, b)
template <class T, class Y, class F>
void Broadcast(Dims out, const T* a, Dims a_dims, const T* b, Dims b_dims, Y* y,
               F f) {
  const auto loop = BroadcastLoop<2>(out, {a_dims, b_dims});
  ParallelFor(
      loop.size(), GrainOf(loop.size(), 1), [&](int64_t begin, int64_t end) {
        loop.ForEachBlock(
            begin, end, [&](int64_t at, int64_t rows, int64_t n, auto offsets) {
              WithOperand(a + offsets[0], loop.stride(0), loop.row_stride(0),
                          [&](auto a_rows) {
                            WithOperand(b + offsets[1], loop.stride(1),
                                        loop.row_stride(1), [&](auto b_rows) {
                                          Block(rows, n, y + at, f, a_rows,
                                                b_rows);
                                        });
                          });
            });
      });
}

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
  }
}

template <class T>
void Apply(Compare op, Dims out, const T* a, Dims a_dims, const T* b,
           Dims b_dims, bool* y) {
  const auto broadcast = [&](auto f) {
    Broadcast(out, a, a_dims, b, b_dims, y, f);
  };
  switch (op) {
    case Compare::kEq:
      return broadcast([](T u, T v) { return u == v; });
    case Compare::kLt:
      return broadcast([](T u, T v) { return u < v; });
    case Compare::kGt:
      return Apply(Compare::kLt, out, b, b_dims, a, a_dims, y);
  }
}

template <class T>
void Where(Dims out, const bool* c, Dims c_dims, const T* a, Dims a_dims,
           const T* b, Dims b_dims, T* y) {
  const auto loop = BroadcastLoop<3>(out, {c_dims, a_dims, b_dims});
  const auto select = [](uint8_t u, T v, T w) { return Select(u != 0, v, w); };
  // Read as bytes, conditions make vectors.
  const uint8_t* c_bytes = reinterpret_cast<const uint8_t*>(c);
  ParallelFor(
      loop.size(), GrainOf(loop.size(), 1), [&](int64_t begin, int64_t end) {
        loop.ForEachBlock(
            begin, end, [&](int64_t at, int64_t rows, int64_t n, auto offsets) {
              WithOperand(c_bytes + offsets[0], loop.stride(0),
                          loop.row_stride(0), [&](auto c_rows) {
                            WithOperand(a + offsets[1], loop.stride(1),
                                        loop.row_stride(1), [&](auto a_rows) {
                                          WithOperand(
                                              b + offsets[2], loop.stride(2),
                                              loop.row_stride(2),
                                              [&](auto b_rows) {
                                                Block(rows, n, y + at, select,
                                                      c_rows, a_rows, b_rows);
                                              });
                                        });
                          });
            });
      });
}

template <class T>
void BroadcastTo(Dims out, const T* x, Dims x_dims, T* y) {
  const auto loop = BroadcastLoop<1>(out, {x_dims});
  ParallelFor(
      loop.size(), GrainOf(loop.size(), 1), [&](int64_t begin, int64_t end) {
        loop.ForEachBlock(
            begin, end, [&](int64_t at, int64_t rows, int64_t n, auto offsets) {
              WithOperand(x + offsets[0], loop.stride(0), loop.row_stride(0),
                          [&](auto x_rows) {
                            Block(
                                rows, n, y + at, [](T v) { return v; }, x_rows);
                          });
            });
      });
}

template void Apply(Binary, Dims, const float*, Dims, const float*, Dims,
                    float*);
template void Apply(Binary, Dims, const double*, Dims, const double*, Dims,
                    double*);

template void Apply(Compare, Dims, const float*, Dims, const float*, Dims,
                    bool*);
template void Where(Dims, const bool*, Dims, const float*, Dims, const float*,
                    Dims, float*);
template void BroadcastTo(Dims, const float*, Dims, float*);

template void Apply(Compare, Dims, const double*, Dims, const double*, Dims,
                    bool*);
template void Where(Dims, const bool*, Dims, const double*, Dims, const double*,
                    Dims, double*);
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
