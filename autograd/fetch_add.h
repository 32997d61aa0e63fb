// Counting that is safe across threads and costs no locked instruction, which
// is as much as a dozen others, while the process has one thread.
#ifndef WENGERT_AUTOGRAD_FETCH_ADD_H_
#define WENGERT_AUTOGRAD_FETCH_ADD_H_

#include <sys/single_threaded.h>

#include <atomic>
#include <type_traits>

namespace wengert {

// x.fetch_add(n, order)
template <class T>
T FetchAdd(std::atomic<T>& x, std::type_identity_t<T> n,
           std::memory_order order) {
  // The C library's own word that no other thread exists, so that none is
  // between the two halves of this.
  if (__libc_single_threaded) {
    const T before = x.load(std::memory_order_relaxed);
    x.store(before + n, std::memory_order_relaxed);
    return before;
  }
  return x.fetch_add(n, order);
}

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_FETCH_ADD_H_
