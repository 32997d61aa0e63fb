// A packed, register-tiled matrix product after Goto and van de Geijn (2008).
// Whatever the shape, an element of C goes through the same multiply-adds in
// the same order: tails are padded to whole vectors, not handed to other code.
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

// Rows of A and columns of B that are packed at a time, and the terms of one
// packing task: about 2 us.
constexpr int64_t kBlockM = kTileRows * 144;
constexpr int64_t kBlockN = 1024;
constexpr int64_t kSegment = 192;
constexpr int64_t kSmallPanels = 1 << 16;  // elements
constexpr int64_t kSmallMatrix = 2048;  // elements: the cache next to the core
                                        // holds it beside the tiles
template <class T>
constexpr int64_t kMaxPanels =
    kGemmBlockK*(kBlockM / kTileRows * kPanelRows<T> +
                 CeilDiv(kBlockN, kTileColumns<T>) * kTileColumns<T>);
// Row tiles whose columns are packed together: what lies side by side in A is
// read at once.
constexpr int64_t kStrip = 4;

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

// The part of a product that lies in rows [m0, m0 + rows) and columns [n0, n0 +
// columns) of C and in terms [p0, p0 + depth) of its sums. A's rows are cut in
// tiles, B's columns in slivers as wide as a tile.
template <class T>
struct Block {
  const Product<T>& x;
  int64_t m0, rows, n0, columns, p0, depth;
  bool pack_a, pack_b;
  T* a_panels;  // the packed tiles of A
  T* b_panels;  // the packed slivers of B

  int64_t tiles() const { return CeilDiv(rows, kTileRows); }
  int64_t slivers() const { return CeilDiv(columns, kTileColumns<T>); }
  int64_t segments() const { return CeilDiv(depth, kSegment); }
  int height(int64_t tile) const {
    return static_cast<int>(
        std::min<int64_t>(kTileRows, rows - tile * kTileRows));
  }
  int width(int64_t sliver) const {
    return static_cast<int>(
        std::min<int64_t>(kTileColumns<T>, columns - sliver * kTileColumns<T>));
  }
  T* a_panel(int64_t tile) const {
    return a_panels + tile * depth * kPanelRows<T>;
  }
  T* b_panel(int64_t sliver) const {
    return b_panels + sliver * depth * kTileColumns<T>;
  }
  // A from term p and the tile's first row on, B from term p and the sliver's
  // first column on.
  const T* a(int64_t tile, int64_t p = 0) const {
    const int64_t i = m0 + tile * kTileRows;
    return x.a + (x.ta ? (p0 + p) * x.lda + i : i * x.lda + p0 + p);
  }
  const T* b(int64_t sliver, int64_t p = 0) const {
    const int64_t j = n0 + sliver * kTileColumns<T>;
    return x.b + (x.tb ? j * x.ldb + p0 + p : (p0 + p) * x.ldb + j);
  }

  void PackSliver(int64_t sliver, int64_t p, int64_t n) const {
    gemm::Pack(x.tb, n, width(sliver), b(sliver, p), x.ldb,
               int64_t{kTileColumns<T>}, b_panel(sliver) + p * kTileColumns<T>);
  }

  void PackStrip(int64_t strip, int64_t p, int64_t n) const {
    const int64_t begin = strip * kStrip;
    const int64_t end = std::min(tiles(), begin + kStrip);
    for (int64_t tile = begin; !x.ta && tile < end; ++tile) {
      gemm::Pack(true, n, height(tile), a(tile, p), x.lda,
                 int64_t{kPanelRows<T>}, a_panel(tile) + p * kPanelRows<T>);
    }
    for (int64_t q = p; x.ta && q < p + n; ++q) {
      for (int64_t tile = begin; tile < end; ++tile) {
        gemm::CopyRow(height(tile), a(tile, q),
                      a_panel(tile) + q * kPanelRows<T>);
      }
    }
  }

  // Tasks of packing: the segments of strips, where A is packed anew, and
  // those of slivers.
  int64_t strip_tasks() const {
    return pack_a && n0 == 0 ? CeilDiv(tiles(), kStrip) * segments() : 0;
  }
  int64_t pack_tasks() const {
    return strip_tasks() + (pack_b ? slivers() * segments() : 0);
  }
  void PackTask(int64_t task) const {
    const int64_t p = task % segments() * kSegment;
    const int64_t n = std::min(kSegment, depth - p);
    if (task < strip_tasks()) {
      PackStrip(task / segments(), p, n);
    } else {
      PackSliver((task - strip_tasks()) / segments(), p, n);
    }
  }

  // Row tile `tile` of C, its slivers [begin, end).
  void MultiplyTiles(int64_t tile, int64_t begin, int64_t end) const {
    const T* const from = pack_a ? a_panel(tile) : a(tile);
    const int64_t a_row = pack_a || x.ta ? 1 : x.lda;
    const int64_t a_step = pack_a ? kPanelRows<T> : x.ta ? x.lda : 1;
    for (int64_t s = begin; s < end; ++s) {
      const int64_t j = n0 + s * kTileColumns<T>;
      T* const c = x.c + (m0 + tile * kTileRows) * x.ldc + j;
      const bool has_bias = p0 == 0 && x.bias != nullptr;
      const T* add = has_bias                 ? x.bias + j
                     : x.accumulate || p0 > 0 ? c
                                              : nullptr;
      gemm::ChooseTile<T>(height(tile), width(s))(
          depth, from, a_row, a_step, pack_b ? b_panel(s) : b(s),
          pack_b ? kTileColumns<T> : x.ldb, x.alpha, add, has_bias ? 0 : x.ldc,
          width(s), c, x.ldc);
    }
  }
};

// run(n, grain, fn) calls fn(begin, end) for the chunks of a loop.
template <class T, class Run>
void MultiplyBlock(const Run& run, const Block<T>& block) {
  const int64_t packing = block.pack_tasks();
  const int64_t segment = std::min(kSegment, block.depth) * kTileColumns<T>;
  run(packing, GrainOf(packing, segment), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) block.PackTask(task);
  });
  const int64_t slivers = block.slivers(), tiles = block.tiles();
  // Where there are few rows, a task has only a group of their columns.
  const int64_t group = CeilDiv(slivers, CeilDiv(16, tiles));
  const int64_t groups = CeilDiv(slivers, group);
  const int64_t flops = 2 * kTileRows * group * kTileColumns<T> * block.depth;
  run(tiles * groups, FlopGrainOf(tiles * groups, flops),
      [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t first = task % groups * group;
          block.MultiplyTiles(task / groups, first,
                              std::min(slivers, first + group));
        }
      });
}

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
  // What few tiles use, or is small, is read in place; so are rows of A, unless
  // they map to the same lines of the cache.
  const bool pack_b = x.tb || (x.m > 2 * kTileRows && x.k * x.n > kSmallMatrix);
  const bool pack_a =
      x.n > 2 * kTileColumns<T> && (x.ta || x.lda * sizeof(T) % 4096 == 0);
  const int64_t block_m = pack_a ? kBlockM : x.m;
  const int64_t depth = std::min(x.k, kGemmBlockK);
  const int64_t a_tiles =
      pack_a ? CeilDiv(std::min(x.m, block_m), kTileRows) : 0;
  const int64_t b_slivers =
      pack_b ? CeilDiv(std::min(x.n, kBlockN), kTileColumns<T>) : 0;
  const int64_t a_size = depth * a_tiles * kPanelRows<T>;
  const int64_t size = a_size + depth * b_slivers * kTileColumns<T>;
  // All large products share one block of the pool.
  const Scratch<T> panels(size > kSmallPanels ? kMaxPanels<T> : size);
  T* const b_panels = panels.data() + a_size;
  for (int64_t m0 = 0; m0 < x.m; m0 += block_m) {
    for (int64_t p0 = 0; p0 < x.k; p0 += kGemmBlockK) {
      for (int64_t n0 = 0; n0 < x.n; n0 += kBlockN) {
        MultiplyBlock(run, Block<T>{x, m0, std::min(block_m, x.m - m0), n0,
                                    std::min(kBlockN, x.n - n0), p0,
                                    std::min(kGemmBlockK, x.k - p0), pack_a,
                                    pack_b, panels.data(), b_panels});
      }
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
  ParallelFor(batch, FlopGrainOf(batch, 2 * m * n * k),
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
