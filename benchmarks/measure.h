// What a benchmark compares itself with: the machine's own limits.
#ifndef WENGERT_BENCHMARKS_MEASURE_H_
#define WENGERT_BENCHMARKS_MEASURE_H_

namespace wengert::benchmarks {

// Seconds on a clock that never goes back.
double Now();

// Fused multiply-adds in float, in GFLOP/s, that `threads` threads reach
// together on numbers in registers.
double FmaPeak(int threads);

// The most memory that this process held, in MB.
double PeakRssMb();

}  // namespace wengert::benchmarks

#endif  // WENGERT_BENCHMARKS_MEASURE_H_
