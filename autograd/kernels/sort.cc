// A row is sorted as pairs of a key, an unsigned number in the order wanted,
// and a place, which breaks ties and so makes every method stable.
#include "autograd/kernels/sort.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// Ascending keys; what is equal has one key.
template <class T>
KeyOf<T> Key(T v) {
  using K = KeyOf<T>;
  constexpr K kSign = K{1} << (8 * sizeof(K) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    const K bits = std::bit_cast<K>(v + T(0));  // -0 + 0 is 0
    const K key = bits & kSign ? ~bits : bits | kSign;
    return Select(v != v, ~K{0}, key);
  } else if constexpr (std::is_same_v<T, bool>) {
    return v;
  } else {
    return static_cast<K>(v) ^ kSign;
  }
}

template <class K>
struct Item {
  K key;
  uint32_t place;
  friend bool operator<(const Item& a, const Item& b) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
};

// Rows from here on are sorted digit by digit.
constexpr int64_t kRadixRow = 512;
constexpr int kDigitBits = 11;
constexpr int kDigits = 1 << kDigitBits;

// Stable, least digit first; items and scratch [n]; the result lies in items.
template <class K>
void RadixSort(int64_t n, Item<K>* items, Item<K>* scratch) {
  constexpr int kPasses = (8 * sizeof(K) + kDigitBits - 1) / kDigitBits;
  const auto digit = [](K key, int pass) {
    return static_cast<uint32_t>(key >> (pass * kDigitBits)) & (kDigits - 1);
  };
  const Scratch<uint32_t> counts(kPasses * kDigits);
  std::fill_n(counts.data(), kPasses * kDigits, 0);
  for (int64_t i = 0; i < n; ++i) {
    for (int pass = 0; pass < kPasses; ++pass) {
      ++counts.data()[pass * kDigits + digit(items[i].key, pass)];
    }
  }
  Item<K>*from = items, *to = scratch;
  for (int pass = 0; pass < kPasses; ++pass) {
    uint32_t* count = counts.data() + pass * kDigits;
    if (count[digit(from[0].key, pass)] == n) continue;  // all share it
    uint32_t start = 0;
    for (int d = 0; d < kDigits; ++d) {
      const uint32_t here = count[d];
      count[d] = start;
      start += here;
    }
    for (int64_t i = 0; i < n; ++i) {
      to[count[digit(from[i].key, pass)]++] = from[i];
    }
    std::swap(from, to);
  }
  if (from != items) std::copy_n(from, n, items);
}

template <class K>
void SortItems(int64_t n, Item<K>* items, Item<K>* scratch) {
  n < kRadixRow ? std::sort(items, items + n) : RadixSort(n, items, scratch);
}

// Leaves the k least of n items in front, in order; key(i) gives a key. Keeps
// a pool of those that beat the least k so far, and cuts it when it is full;
// `items` holds PoolSize(k) of them.
int64_t PoolSize(int64_t k) { return 2 * k + 64; }

template <class K, class KeyAt>
void LeastItems(int64_t n, int64_t k, const KeyAt& key, Item<K>* items) {
  constexpr int64_t kBlock = 64;
  K keys[kBlock], limit = ~K{0};  // no later item of that key can be wanted
  bool full = false;              // there is a limit
  int64_t size = 0;
  const auto cut = [&] {
    std::nth_element(items, items + k - 1, items + size);
    size = k;
    limit = items[k - 1].key;
    full = true;
  };
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    int better = 0;
    for (int64_t i = 0; i < count; ++i) keys[i] = key(begin + i);
    for (int64_t i = 0; i < count; ++i) better |= keys[i] < limit;
    if (full && !better) continue;
    for (int64_t i = 0; i < count; ++i) {
      if (full && keys[i] >= limit) continue;
      items[size++] = {keys[i], static_cast<uint32_t>(begin + i)};
      if (size == PoolSize(k)) cut();
    }
  }
  if (size > k) cut();
  std::sort(items, items + k);
}

template <class T, bool kDescending>
void SortSlices(int64_t outer, int64_t n, int64_t inner, int64_t k, const T* x,
                T* y, int64_t* places) {
  using K = KeyOf<T>;
  // A pool pays where it is small beside the row.
  const bool few = k < n && PoolSize(k) <= n / 4;
  const int64_t slices = outer * inner;
  ParallelFor(slices, GrainOf(slices, 8 * n), [=](int64_t s, int64_t end) {
    const Scratch<Item<K>> scratch(few ? PoolSize(k) : 2 * n);
    Item<K>* items = scratch.data();
    for (; s < end; ++s) {
      const T* from = x + s / inner * n * inner + s % inner;
      const auto key = [=](int64_t i) {
        const K up = Key(from[i * inner]);
        return kDescending ? static_cast<K>(~up) : up;
      };
      if (few) {
        LeastItems(n, k, key, items);
      } else {
        for (int64_t i = 0; i < n; ++i) {
          items[i] = {key(i), static_cast<uint32_t>(i)};
        }
        SortItems(n, items, items + n);
      }
      const int64_t to = s / inner * k * inner + s % inner;
      for (int64_t i = 0; i < k; ++i) {
        y[to + i * inner] = from[items[i].place * inner];
        places[to + i * inner] = items[i].place;
      }
    }
  });
}

}  // namespace

template <class T>
void SortFirst(int64_t outer, int64_t n, int64_t inner, int64_t k,
               bool descending, const T* x, T* y, int64_t* places) {
  if (k == 0) return;
  descending ? SortSlices<T, true>(outer, n, inner, k, x, y, places)
             : SortSlices<T, false>(outer, n, inner, k, x, y, places);
}

template <class T>
void ScatterPlaces(int64_t outer, int64_t n, int64_t inner, int64_t k,
                   const int64_t* places, const T* x, T* y) {
  ParallelFor(outer, GrainOf(outer, n * inner), [=](int64_t o, int64_t end) {
    std::fill(y + o * n * inner, y + end * n * inner, T(0));
    for (; o < end; ++o) {
      for (int64_t i = o * k; i < (o + 1) * k; ++i) {
        for (int64_t j = 0; j < inner; ++j) {
          const int64_t at = i * inner + j;
          y[(o * n + places[at]) * inner + j] = x[at];
        }
      }
    }
  });
}

template <class T>
void GatherPlaces(int64_t outer, int64_t n, int64_t inner, int64_t k,
                  const int64_t* places, const T* y, T* x) {
  ParallelFor(outer, GrainOf(outer, k * inner), [=](int64_t o, int64_t end) {
    for (; o < end; ++o) {
      for (int64_t i = o * k; i < (o + 1) * k; ++i) {
        for (int64_t j = 0; j < inner; ++j) {
          const int64_t at = i * inner + j;
          x[at] = y[(o * n + places[at]) * inner + j];
        }
      }
    }
  });
}

#define WENGERT_SORT(T)                                                       \
  template void SortFirst(int64_t, int64_t, int64_t, int64_t, bool, const T*, \
                          T*, int64_t*)
WENGERT_SORT(float);
WENGERT_SORT(double);
WENGERT_SORT(int32_t);
WENGERT_SORT(int64_t);
WENGERT_SORT(bool);
#undef WENGERT_SORT
template void ScatterPlaces(int64_t, int64_t, int64_t, int64_t, const int64_t*,
                            const float*, float*);
template void ScatterPlaces(int64_t, int64_t, int64_t, int64_t, const int64_t*,
                            const double*, double*);
template void GatherPlaces(int64_t, int64_t, int64_t, int64_t, const int64_t*,
                           const float*, float*);
template void GatherPlaces(int64_t, int64_t, int64_t, int64_t, const int64_t*,
                           const double*, double*);

}  // namespace wengert::kernels
