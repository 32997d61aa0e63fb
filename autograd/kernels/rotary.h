// Rotary position embedding (Su et al. 2021).
#ifndef WENGERT_AUTOGRAD_KERNELS_ROTARY_H_
#define WENGERT_AUTOGRAD_KERNELS_ROTARY_H_

#include <cstdint>

namespace wengert::kernels {

// cos and sin [length, pairs] of the angle (offset + t) base^(-i / pairs) for
// row t and pair i, computed in double and rounded once. The values depend on
// position and pair alone.
template <class T>
void RotaryAngles(int64_t length, int64_t pairs, int64_t offset, double base,
                  T* cos, T* sin);

struct RotarySizes {
  int64_t batch, length, heads, width;
  int64_t pairs;     // that turn; the other features stay
  bool interleaved;  // pair i is (2i, 2i + 1), otherwise (i, i + pairs)
};

// y (=|+=) x with each pair turned: (a cos - b sin, b cos + a sin), or back, by
// minus the angle, when `inverse`, which is the gradient. x and y [batch,
// length, heads, width]; y may be x unless it accumulates.
template <class T>
void Rotary(const RotarySizes& sizes, bool inverse, const T* cos, const T* sin,
            const T* x, bool accumulate, T* y);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_ROTARY_H_
