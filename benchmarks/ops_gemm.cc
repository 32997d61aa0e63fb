// Matrix products: every one of the three models, and products of one row.
#include <set>
#include <tuple>
#include <utility>

#include "autograd/kernels/gemm.h"
#include "benchmarks/ops_benchmark.h"

namespace wengert::benchmarks {
namespace {

enum class Form {
  kPlain,   // A [m, k], B [k, n]: the gradient of a layer's input
  kTransB,  // B [n, k]: a layer forward
  kTransA,  // A [k, m]: the gradient of its weights
};

void Register(int64_t m, int64_t n, int64_t k, Form form) {
  static auto& seen =
      *new std::set<std::tuple<int64_t, int64_t, int64_t, Form>>;
  if (!seen.insert({m, n, k, form}).second) return;
  const bool ta = form == Form::kTransA, tb = form == Form::kTransB;
  const char* const form_name = ta ? "TransA" : tb ? "TransB" : "Plain";
  Work work = {.flops = 2. * static_cast<double>(m * n * k)};
  if (m == 1) work.bytes = 4. * static_cast<double>(n * k + n + k);
  RegisterKernel(
      Name("BM_Gemm", m, n, k, form_name), work, [=](Inputs& inputs) {
        return [=, a = inputs.Value({m, k}), b = inputs.Value({k, n}),
                c = inputs.Value({m, n})]() mutable {
          kernels::ParallelGemm<float>(ta, tb, m, n, k, 1, a.data<float>(),
                                       ta ? m : k, b.data<float>(), tb ? k : n,
                                       false, c.mutable_data<float>(), n);
        };
      });
}

// The three products of a layer.
void RegisterLayer(int64_t rows, int64_t in, int64_t out) {
  Register(rows, out, in, Form::kTransB);
  Register(rows, in, out, Form::kPlain);
  Register(out, in, rows, Form::kTransA);
}

}  // namespace

void RegisterGemm() {
  RegisterLayer(27, 12, 12);
  for (const auto& [rows, width] :
       {std::pair{27, 12}, {768, 128}, {1024, 384}}) {
    if (width > 12) RegisterLayer(rows, width, 3 * width);
    RegisterLayer(rows, width, width);
    RegisterLayer(rows, width, 4 * width);
    RegisterLayer(rows, 4 * width, width);
    if (width > 12) RegisterLayer(rows, width, 65);
  }
  RegisterLayer(27, 12, 36);
  Register(512, 384, 384, Form::kTransB);
  Register(512, 1536, 384, Form::kTransB);
  Register(1024, 1024, 1024, Form::kPlain);
  for (const auto form : {Form::kPlain, Form::kTransB}) {
    for (int width : {128, 384}) {
      Register(1, 3 * width, width, form);
      Register(1, 4 * width, width, form);
      Register(1, width, 4 * width, form);
    }
  }
}

}  // namespace wengert::benchmarks
