// Sums over the elements of a tensor in a safetensors file, of any type, and
// over the differences of two.
#ifndef WENGERT_TRAIN_ELEMENT_FIGURES_H_
#define WENGERT_TRAIN_ELEMENT_FIGURES_H_

#include <cstdint>

#include "train/safetensors.h"

namespace wengert::train {

// long double holds every int64 and uint64, and the squares of all doubles.
struct ElementFigures {
  int64_t count = 0;
  int64_t not_finite = 0;  // NaN or infinite; the rest is over the others
  long double sum = 0;
  long double squares = 0;
  long double max = 0;  // of magnitudes

  ElementFigures& operator+=(const ElementFigures& o);
  long double norm() const;
  long double mean() const;  // 0 of none
};

ElementFigures FiguresOf(const SafetensorsFile::Entry& x);

// The elements of a minus those of b, which must have the same type and shape.
// Where both are NaN or the same infinity they do not differ.
struct ElementDifference {
  bool same_bits = false;
  int64_t differing = 0;   // elements that are not equal
  ElementFigures figures;  // a difference from an infinity is not finite
};
ElementDifference Compare(const SafetensorsFile::Entry& a,
                          const SafetensorsFile::Entry& b);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_ELEMENT_FIGURES_H_
