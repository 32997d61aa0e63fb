// Reference values that tests read: float64 tensors by name, which a script
// beside the file makes with PyTorch or NumPy.
//
// A tensor is two lines, "name dim dim .." and its elements in row-major order
// ("inf", "-inf" and "nan" too). Empty lines and lines that begin with # may
// stand between tensors.
#ifndef WENGERT_AUTOGRAD_OPS_REFERENCE_TESTLIB_H_
#define WENGERT_AUTOGRAD_OPS_REFERENCE_TESTLIB_H_

#include <cstdint>
#include <fstream>
#include <istream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/shape.h"
#include "autograd/tensor.h"

namespace wengert {

using TensorMap = std::map<std::string, Tensor>;

// Throws Error, which names the tensor, where a line is not what it should be.
inline TensorMap ParseReference(std::istream& in) {
  TensorMap all;
  for (std::string head, values; std::getline(in, head);) {
    if (head.empty() || head[0] == '#') continue;
    std::getline(in, values);
    std::istringstream fields(head), numbers(values);
    std::string name, word;
    fields >> name;
    std::vector<int64_t> dims;
    while (fields >> word) {
      if (!absl::SimpleAtoi(word, &dims.emplace_back())) {
        throw Error(absl::StrCat("reference ", name, ": no dimension: ", word));
      }
    }
    std::vector<double> elements;
    while (numbers >> word) {
      if (!absl::SimpleAtod(word, &elements.emplace_back())) {
        throw Error(absl::StrCat("reference ", name, ": no number: ", word));
      }
    }
    const Shape shape(dims);
    if (shape.size() != static_cast<int64_t>(elements.size())) {
      throw Error(absl::StrCat("reference ", name, ": ", elements.size(),
                               " elements, wanted ", shape.size()));
    }
    if (!all.emplace(name, Tensor::From(shape, elements)).second) {
      throw Error(absl::StrCat("reference ", name, ": stands twice"));
    }
  }
  return all;
}

// What the file holds.
inline TensorMap ReadReferenceFile(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw Error(absl::StrCat("reference: there is no ", path));
  return ParseReference(in);
}

// What autograd/ops/testdata/<file> holds.
inline TensorMap ReadReference(const std::string& file) {
  return ReadReferenceFile("autograd/ops/testdata/" + file);
}

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_REFERENCE_TESTLIB_H_
