// Operations that move elements, read and write them by index, contract and
// solve. Those that only move are set beside a copy of the same bytes.
#include "autograd/ops.h"
#include "benchmarks/ops_benchmark.h"

namespace wengert::benchmarks {
namespace {

// Forward reads and writes n numbers, of which the result may have more;
// backward likewise, or another share.
template <class F>
void RegisterMove(const std::string& name, Shape shape, F f,
                  double result_share = 1, double backward_share = 0) {
  const double bytes = 4. * static_cast<double>(shape.size());
  if (backward_share == 0) backward_share = result_share;
  RegisterOp(Name(name, shape.dims().front(), shape.dims().back()),
             {.bytes = (1 + result_share) * bytes},
             {.bytes = (1 + backward_share) * bytes}, [=](Inputs& inputs) {
               return [f, x = inputs.Value(shape)] { return f(x); };
             });
}

void RegisterMoves() {
  for (const Shape& s : kMatrices) {
    const int64_t rows = s[0];
    RegisterMove("BM_Pad", s, [](const Tensor& x) {
      return Pad(x, {{1, 1}, {2, 2}});
    });
    RegisterMove("BM_FlipAxis0", s, [](const Tensor& x) { return Flip(x, 0); });
    RegisterMove("BM_FlipAxis1", s, [](const Tensor& x) { return Flip(x, 1); });
    RegisterMove("BM_RollAxis0", s,
                 [](const Tensor& x) { return Roll(x, 5, 0); });
    RegisterMove("BM_RollAxis1", s,
                 [](const Tensor& x) { return Roll(x, 5, 1); });
    RegisterMove("BM_Tril", s, [](const Tensor& x) { return Tril(x); });
    // Backward has two slices: the second one's gradient writes all, the first
    // one's is added to the half that it is.
    RegisterMove(
        "BM_StackAxis0", s,
        [rows](const Tensor& x) {
          return Stack(
              {Slice(x, 0, 0, rows / 2), Slice(x, 0, rows / 2, rows / 2)});
        },
        1, 2);
    // Two operations: each reads and writes all. Backward one part of the split
    // writes all, and the others are added to it.
    RegisterMove(
        "BM_SplitConcat", s,
        [](const Tensor& x) { return Concat(Split(x, 128, 1), 1); }, 3, 5);
    RegisterMove("BM_Transpose", s,
                 [](const Tensor& x) { return Transpose(x); });
    RegisterMove("BM_PermuteHeads", s, [](const Tensor& x) {
      return Permute(Reshape(x, {4, -1, 8, 64}), {0, 2, 1, 3});
    });
    RegisterMove("BM_Triu", s, [](const Tensor& x) { return Triu(x, 1); });
    RegisterMove(
        "BM_TileAxis0", s,
        [](const Tensor& x) {
          return Tile(x, {2, 1});
        },
        2);
    RegisterMove(
        "BM_TileAxis1", s,
        [](const Tensor& x) {
          return Tile(x, {1, 2});
        },
        2);
    RegisterMove(
        "BM_RepeatAxis0", s, [](const Tensor& x) { return Repeat(x, 2, 0); },
        2);
    RegisterMove(
        "BM_RepeatAxis1", s, [](const Tensor& x) { return Repeat(x, 2, 1); },
        2);
    RegisterMove("BM_UnfoldAxis1", s,
                 [](const Tensor& x) { return Unfold(x, 1, 16, 16); });
    RegisterMove("BM_UnfoldAxis0", s,
                 [](const Tensor& x) { return Unfold(x, 0, 4, 4); });
    RegisterMove(
        "BM_UnfoldOverlapping", s,
        [](const Tensor& x) { return Unfold(x, 1, 16, 4); }, 4);
    RegisterMove(
        "BM_DiagEmbed", {s[0] * s[1] / 256},
        [](const Tensor& x) {
          return DiagEmbed(Reshape(x, {-1, 256}));
        },
        256);
  }
}

void RegisterBroadcasts() {
  for (const Shape& s : kMatrices) {
    const int64_t m = s[0], n = s[1];
    RegisterMove(
        Name("BM_BroadcastRow", m), {1, n},
        [=](const Tensor& x) { return BroadcastTo(x, s); },
        static_cast<double>(m));
    RegisterMove(
        Name("BM_BroadcastColumn", m), {m, 1},
        [=](const Tensor& x) { return BroadcastTo(x, s); },
        static_cast<double>(n));
    // Of a square matrix as wide: reads and writes n numbers, and backward a
    // matrix of zeros.
    const double diagonal = 8. * static_cast<double>(n);
    const double square = 4. * static_cast<double>(n * n);
    RegisterOp(Name("BM_Diagonal", n), {.bytes = diagonal}, {.bytes = square},
               [=](Inputs& inputs) {
                 return [x = inputs.Value({n, n})] { return Diagonal(x); };
               });
    // Of each element: a byte of the mask, and two or three numbers.
    const double bytes = 4. * static_cast<double>(m * n);
    const auto mask_of = [=](Inputs& inputs) {
      return Greater(inputs.Value(s), Tensor::Scalar(0));
    };
    RegisterOp(Name("BM_MaskedFill", m, n), {.bytes = 2.25 * bytes},
               {.bytes = 2.25 * bytes}, [=](Inputs& inputs) {
                 return [mask = mask_of(inputs), x = inputs.Value(s)] {
                   return MaskedFill(x, mask, 0);
                 };
               });
    RegisterOp(Name("BM_Where", m, n), {.bytes = 3.25 * bytes},
               {.bytes = 3.5 * bytes}, [=](Inputs& inputs) {
                 return [mask = mask_of(inputs), a = inputs.Value(s),
                         b = inputs.Value(s)] { return Where(mask, a, b); };
               });
  }
}

// Arrays that are rules: they only write.
void RegisterRules() {
  const int64_t n = 1024 * 1536;
  const auto add = [](const std::string& name, double bytes, auto f) {
    RegisterKernel(name, {.bytes = bytes},
                   [f](Inputs&) { return [f] { f(); }; });
  };
  const double bytes = 4. * static_cast<double>(n);
  const auto end = static_cast<double>(n);
  add(Name("BM_Arange", n), bytes, [=] { return Arange(0, end); });
  add(Name("BM_Linspace", n), bytes, [=] { return Linspace(0, 1, n); });
  add("BM_Eye/1024/1536", bytes, [] { return Eye(1024, 1536); });
  const Tensor ids = RandomIds({1024}, 1536);
  add("BM_OneHot/1024/1536", bytes, [=] { return OneHot(ids, 1536); });
}

void RegisterIndex() {
  for (const Shape& s : kMatrices) {
    const Tensor rows = RandomIds({s[0]}, s[0]),
                 columns = RandomIds({s[1]}, s[1]);
    const Tensor along = RandomIds(s, s[0]), last = RandomIds(s, s[1]);
    RegisterMove("BM_IndexSelectAxis0", s,
                 [rows](const Tensor& x) { return IndexSelect(x, 0, rows); });
    RegisterMove("BM_IndexSelectAxis1", s, [columns](const Tensor& x) {
      return IndexSelect(x, 1, columns);
    });
    RegisterMove("BM_ScatterRows", s,
                 [=](const Tensor& x) { return ScatterRows(x, rows, s[0]); });
    RegisterMove(
        "BM_TakeAlongAxis0", s,
        [along](const Tensor& x) { return TakeAlongAxis(x, along, 0); }, 3);
    RegisterMove(
        "BM_TakeAlongAxis1", s,
        [last](const Tensor& x) { return TakeAlongAxis(x, last, 1); }, 3);
    // x stands in two places: backward adds dy to what is taken of it.
    RegisterMove(
        "BM_ScatterAddAxis0", s,
        [along](const Tensor& x) { return ScatterAdd(x, 0, along, x); }, 4, 6);
    RegisterMove(
        "BM_ScatterAddAxis1", s,
        [last](const Tensor& x) { return ScatterAdd(x, 1, last, x); }, 4, 6);
    RegisterMove(
        "BM_IndexPutAccumulate", s,
        [rows](const Tensor& x) {
          return IndexPut(x, {rows}, x, {.accumulate = true});
        },
        2, 4);
  }
}

void RegisterContraction(const std::string& equation, const Shape& a,
                         const Shape& b, double flops) {
  RegisterOp("BM_Einsum/" + equation, {.flops = flops}, {.flops = 2 * flops},
             [=](Inputs& inputs) {
               return [equation, x = inputs.Value(a), y = inputs.Value(b)] {
                 return Einsum(equation, {x, y});
               };
             });
}

void RegisterProducts() {
  const double cube = 2. * 512 * 512 * 512;
  RegisterOp("BM_MatMul/512", {.flops = cube}, {.flops = 2 * cube},
             [](Inputs& inputs) {
               return [x = inputs.Value({512, 512}),
                       y = inputs.Value({512, 512})] { return MatMul(x, y); };
             });
  for (const char* equation :
       {"ij,jk->ik", "ij,kj->ik", "ji,jk->ki", "ij,jk->ki"}) {
    RegisterContraction(equation, {512, 512}, {512, 512}, cube);
  }
  const Shape heads{4, 256, 6, 64}, split{4, 6, 256, 64};
  const double scores = 2. * 4 * 6 * 256 * 256 * 64;
  RegisterContraction("bhqd,bhkd->bhqk", split, split, scores);
  RegisterContraction("bqhd,bkhd->bhqk", heads, heads, scores);
  RegisterContraction("bi,bi->b", {1024, 1536}, {1024, 1536}, 2. * 1024 * 1536);
  for (int64_t n : {4096, 1024 * 1536}) {
    RegisterOp(Name("BM_Dot", n), {.bytes = 8. * static_cast<double>(n)},
               {.bytes = 16. * static_cast<double>(n)}, [=](Inputs& inputs) {
                 return [x = inputs.Value({n}), y = inputs.Value({n})] {
                   return Dot(x, y);
                 };
               });
  }
  RegisterOp("BM_Outer/1024/1536", {.bytes = 4. * 1024 * 1536},
             {.bytes = 8. * 1024 * 1536}, [](Inputs& inputs) {
               return [x = inputs.Value({1024}), y = inputs.Value({1536})] {
                 return Outer(x, y);
               };
             });
}

void RegisterSolvers() {
  for (int64_t n : {32, 512}) {
    const int64_t batch = n == 32 ? 256 : 1;
    const double cube = static_cast<double>(batch * n * n * n);
    // Added to random matrices it makes them positive, and far from singular.
    const Tensor large = static_cast<double>(2 * n) * Eye(n);
    RegisterOp(Name("BM_Cholesky", batch, n), {.flops = cube / 3},
               {.flops = 4 * cube}, [=](Inputs& inputs) {
                 return [=, x = inputs.Value({batch, n, n})] {
                   return Cholesky(x + large);
                 };
               });
    RegisterOp(Name("BM_SolveTriangular", batch, n), {.flops = cube},
               {.flops = 3 * cube}, [=](Inputs& inputs) {
                 return [=, x = inputs.Value({batch, n, n}),
                         b = inputs.Value({batch, n, n})] {
                   return SolveTriangular(x + large, b);
                 };
               });
  }
}

}  // namespace

void RegisterMoving() {
  RegisterMoves();
  RegisterBroadcasts();
  RegisterRules();
  RegisterIndex();
  RegisterProducts();
  RegisterSolvers();
}

}  // namespace wengert::benchmarks
