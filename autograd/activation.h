// The functions between the maps of a network, by name.
#ifndef WENGERT_AUTOGRAD_ACTIVATION_H_
#define WENGERT_AUTOGRAD_ACTIVATION_H_

namespace wengert {

enum class Activation {
  kRelu,      // max(0, x)
  kGelu,      // x/2 erfc(-x / sqrt 2)
  kGeluTanh,  // x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3)
  kSilu,      // x sigmoid(x)
};

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_ACTIVATION_H_
