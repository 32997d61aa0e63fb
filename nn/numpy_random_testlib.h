// NumPy's seeded generator, re-created: after np.random.seed(seed) the same
// calls give the same numbers, so that a test can begin where a document that
// uses NumPy begins.
#ifndef WENGERT_NN_NUMPY_RANDOM_TESTLIB_H_
#define WENGERT_NN_NUMPY_RANDOM_TESTLIB_H_

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace wengert::testing {

class NumpyRandom {
 public:
  // np.random.seed(seed): the Mersenne Twister's own seeding from one number.
  explicit NumpyRandom(uint32_t seed) : bits_(seed) {}

  // np.random.random_sample(): [0, 1) from 53 bits of two draws.
  double RandomSample();

  // np.random.normal(): Marsaglia's polar method, two values a time.
  double Normal();

  // np.random.normal(size=n); in row-major order for a size of several numbers.
  std::vector<double> Normal(int64_t n);

  // np.random.randint(high), 1 <= high <= 2^32: draws are masked to the bits of
  // high - 1 until one is below high. No bits are drawn where high is 1.
  int64_t RandInt(int64_t high);

  // np.random.randint(high, size=n).
  std::vector<int64_t> RandInt(int64_t high, int64_t n);

 private:
  std::mt19937 bits_;
  std::optional<double> cached_normal_;
};

}  // namespace wengert::testing

#endif  // WENGERT_NN_NUMPY_RANDOM_TESTLIB_H_
