// A packed, register-tiled matrix product after Goto and van de Geijn (2008).
// Whatever the shape, an element of C goes through the same multiply-adds in
// the same order: tails are padded with zeros in packed panels, not handed to
// other code.
#include "autograd/kernels/gemm.h"

#include <algorithm>

#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

using gemm::kPanelRows;
using gemm::kTileColumns;
using gemm::kTileRows;

constexpr int64_t kBlockN = 1024;  // columns of B that are packed at a time
constexpr int64_t kTaskPacking = 1 << 16;  // elements, about 10 us

// The arguments of Gemm.
template <class T>
struct Product {
  bool ta, tb;
  int64_t m, n, k;
  T alpha;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  bool accumulate;
  T* c;
  int64_t ldc;
  const T* bias = nullptr;
};

// The part of a product that lies in columns [n0, n0 + columns) of C and in
// terms [p0, p0 + depth) of its sums. B's columns are cut in slivers as wide as
// a tile.
template <class T>
struct Block {
  const Product<T>& x;
  int64_t n0, columns, p0, depth;
  bool pack_a, pack_b;
  T* panels;  // the packed slivers of B; the last one alone unless pack_b

  int64_t slivers() const { return CeilDiv(columns, kTileColumns<T>); }
  int width(int64_t sliver) const {
    return static_cast<int>(
        std::min<int64_t>(kTileColumns<T>, columns - sliver * kTileColumns<T>));
  }
  T* panel(int64_t sliver) const {
    return panels + (pack_b ? sliver * depth * kTileColumns<T> : 0);
  }
  // B from the sliver's first column on.
  const T* b(int64_t sliver) const {
    const int64_t j = n0 + sliver * kTileColumns<T>;
    return x.b + (x.tb ? j * x.ldb + p0 : p0 * x.ldb + j);
  }

  void PackSliver(int64_t sliver) const {
    gemm::Pack(x.tb, depth, width(sliver), b(sliver), x.ldb,
               int64_t{kTileColumns<T>}, panel(sliver));
  }

  // Row tile `tile` of C, its slivers [begin, end).
  void MultiplyTiles(int64_t tile, int64_t begin, int64_t end) const {
    alignas(64) T a_panel[kPanelRows<T> * kGemmBlockK];
    const int64_t i = tile * kTileRows;
    const int rows = static_cast<int>(std::min<int64_t>(kTileRows, x.m - i));
    const T* a = x.a + (x.ta ? p0 * x.lda + i : i * x.lda + p0);
    int64_t a_row = x.ta ? 1 : x.lda, a_step = x.ta ? x.lda : 1;
    if (pack_a) {
      gemm::Pack(!x.ta, depth, rows, a, x.lda, int64_t{kPanelRows<T>}, a_panel);
      a = a_panel, a_row = 1, a_step = kPanelRows<T>;
    }
    for (int64_t s = begin; s < end; ++s) {
      const bool packed = pack_b || width(s) < kTileColumns<T>;
      const int64_t j = n0 + s * kTileColumns<T>;
      T* const c = x.c + i * x.ldc + j;
      const bool has_bias = p0 == 0 && x.bias != nullptr;
      const T* add = has_bias                 ? x.bias + j
                     : x.accumulate || p0 > 0 ? c
                                              : nullptr;
      gemm::ChooseTile<T>(rows, width(s))(
          depth, a, a_row, a_step, packed ? panel(s) : b(s),
          packed ? kTileColumns<T> : x.ldb, x.alpha, add, has_bias ? 0 : x.ldc,
          width(s), c, x.ldc);
    }
  }
};

// run(n, grain, fn) calls fn(begin, end) for the chunks of a loop.
template <class T, class Run>
void Multiply(const Run& run, const Product<T>& x) {
  if (x.m == 0 || x.n == 0) return;
  if (x.k == 0) {
    for (int64_t i = 0; !x.accumulate && i < x.m; ++i) {
      T* const c = x.c + i * x.ldc;
      x.bias != nullptr ? std::copy_n(x.bias, x.n, c)
                        : std::fill_n(c, x.n, T(0));
    }
    return;
  }
  const int64_t row_tiles = CeilDiv(x.m, kTileRows);
  // What few tiles use is read in place.
  const bool pack_b = x.tb || row_tiles > 2;
  const int64_t packed_columns =
      pack_b ? std::min(x.n, kBlockN) + kTileColumns<T> - 1 : kTileColumns<T>;
  Scratch<T> panels(packed_columns * std::min(x.k, kGemmBlockK));
  for (int64_t n0 = 0; n0 < x.n; n0 += kBlockN) {
    const int64_t columns = std::min(kBlockN, x.n - n0);
    // So are rows of A, unless they map to the same lines of the cache.
    const bool pack_a = columns > 2 * kTileColumns<T> &&
                        (x.ta || x.lda * sizeof(T) % 2048 == 0);
    for (int64_t p0 = 0; p0 < x.k; p0 += kGemmBlockK) {
      const Block<T> block = {
          x,      n0,     columns,      p0, std::min(kGemmBlockK, x.k - p0),
          pack_a, pack_b, panels.data()};
      const int64_t slivers = block.slivers();
      if (pack_b) {
        run(slivers, CeilDiv(kTaskPacking, block.depth * kTileColumns<T>),
            [&](int64_t begin, int64_t end) {
              for (int64_t s = begin; s < end; ++s) block.PackSliver(s);
            });
      } else if (block.width(slivers - 1) < kTileColumns<T>) {
        block.PackSliver(slivers - 1);
      }
      // Where there are few rows, a task has only a group of their columns.
      const int64_t group = CeilDiv(slivers, CeilDiv(8, row_tiles));
      const int64_t groups = CeilDiv(slivers, group);
      const int64_t flops =
          2 * kTileRows * group * kTileColumns<T> * block.depth;
      run(row_tiles * groups, FlopGrainOf(flops),
          [&](int64_t begin, int64_t end) {
            for (int64_t task = begin; task < end; ++task) {
              const int64_t first = task % groups * group;
              block.MultiplyTiles(task / groups, first,
                                  std::min(slivers, first + group));
            }
          });
    }
  }
}

}  // namespace

template <class T>
void Gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha,
          const T* a, int64_t lda, const T* b, int64_t ldb, bool accumulate,
          T* c, int64_t ldc) {
  const auto here = [](int64_t count, int64_t, const auto& fn) {
    fn(int64_t{0}, count);
  };
  Multiply(here, Product<T>{ta, tb, m, n, k, alpha, a, lda, b, ldb, accumulate,
                            c, ldc});
}

template <class T>
void ParallelGemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha,
                  const T* a, int64_t lda, const T* b, int64_t ldb,
                  bool accumulate, T* c, int64_t ldc, const T* bias) {
  const auto run = [](int64_t count, int64_t grain, const auto& fn) {
    ParallelFor(count, grain, fn);
  };
  Multiply(run, Product<T>{ta, tb, m, n, k, alpha, a, lda, b, ldb, accumulate,
                           c, ldc, bias});
}

template <class T>
void BatchedGemm(int64_t batch, bool ta, bool tb, int64_t m, int64_t n,
                 int64_t k, T alpha, const T* a, const int64_t* a_offset,
                 int64_t lda, const T* b, const int64_t* b_offset, int64_t ldb,
                 bool accumulate, T* c, const int64_t* c_offset, int64_t ldc) {
  constexpr int64_t kFewProducts = 8;
  const auto product = [&](int64_t i, auto multiply) {
    multiply(ta, tb, m, n, k, alpha, a + a_offset[i], lda, b + b_offset[i], ldb,
             accumulate, c + c_offset[i], ldc);
  };
  if (batch < kFewProducts) {
    for (int64_t i = 0; i < batch; ++i) {
      product(i, [](auto... x) { ParallelGemm<T>(x...); });
    }
    return;
  }
  ParallelFor(batch, FlopGrainOf(2 * m * n * k),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) product(i, Gemm<T>);
              });
}

template void Gemm(bool, bool, int64_t, int64_t, int64_t, float, const float*,
                   int64_t, const float*, int64_t, bool, float*, int64_t);
template void ParallelGemm(bool, bool, int64_t, int64_t, int64_t, float,
                           const float*, int64_t, const float*, int64_t, bool,
                           float*, int64_t, const float*);
template void BatchedGemm(int64_t, bool, bool, int64_t, int64_t, int64_t, float,
                          const float*, const int64_t*, int64_t, const float*,
                          const int64_t*, int64_t, bool, float*, const int64_t*,
                          int64_t);
template void Gemm(bool, bool, int64_t, int64_t, int64_t, double, const double*,
                   int64_t, const double*, int64_t, bool, double*, int64_t);
template void ParallelGemm(bool, bool, int64_t, int64_t, int64_t, double,
                           const double*, int64_t, const double*, int64_t, bool,
                           double*, int64_t, const double*);
template void BatchedGemm(int64_t, bool, bool, int64_t, int64_t, int64_t,
                          double, const double*, const int64_t*, int64_t,
                          const double*, const int64_t*, int64_t, bool, double*,
                          const int64_t*, int64_t);

}  // namespace wengert::kernels
