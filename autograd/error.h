// What Wengert throws when it is used wrongly: a shape, a dtype, an index or a
// tape that does not fit. The text starts with the operation, gives every shape
// involved and says what was wanted. Files, flags and data, which the world can
// get wrong, come back as absl::Status instead.
#ifndef WENGERT_AUTOGRAD_ERROR_H_
#define WENGERT_AUTOGRAD_ERROR_H_

#include <stdexcept>

namespace wengert {

class Error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// An operation turned finite values into a NaN or an infinity while its tape
// checked for that.
class NonFiniteError : public Error {
 public:
  using Error::Error;
};

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_ERROR_H_
