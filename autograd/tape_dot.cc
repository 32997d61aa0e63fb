// The tape as a drawing.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "autograd/tape.h"
#include "autograd/tape_checks.h"

namespace wengert {
namespace {

std::string Quoted(const std::string& label) {
  return absl::StrCat(
      "\"",
      absl::StrReplaceAll(label,
                          {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
      "\"");
}

}  // namespace

std::string Tape::ToDot() const {
  std::string nodes, edges;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const internal::Slot& s = slots_[i];
    if (!s.is_leaf) continue;
    absl::StrAppend(
        &nodes, "  s", i, " [shape=box, label=",
        Quoted(absl::StrCat(s.parameter ? s.parameter->name : "watched", "\n",
                            Name(s.dtype), " ", s.shape.ToString())),
        "];\n");
  }
  for (const internal::Record* r : records_) {
    const internal::Slot& y = slots_[r->output];
    absl::StrAppend(
        &nodes, "  s", r->output, " [label=",
        Quoted(absl::StrCat(internal::OpName(r->op, r->scope), "\n",
                            Name(y.dtype), " ", y.shape.ToString())),
        "];\n");
    for (int32_t k = 0; k < r->n_inputs; ++k) {
      if (r->inputs[k] < 0) continue;  // a constant
      absl::StrAppend(&edges, "  s", r->inputs[k], " -> s", r->output, ";\n");
    }
  }
  return absl::StrCat("digraph tape {\n", nodes, edges, "}\n");
}

}  // namespace wengert
