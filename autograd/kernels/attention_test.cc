#include "autograd/kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "autograd/kernels/dropout.h"
#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

enum Broadcast { kNone, kFull, kRows };  // kRows: the same for all b and i

// One problem and its data.
template <class T>
struct Problem {
  AttentionArgs<T> x;
  std::vector<T> q, k, v, bias, dout;
  std::unique_ptr<bool[]> key_mask, mask;
};

template <class T>
Problem<T> MakeProblem(AttentionArgs<T> x, bool key_mask, Broadcast mask,
                       Broadcast bias) {
  Problem<T> p;
  x.q = {x.tq * x.heads * x.d, x.heads * x.d};
  x.k = {x.tk * x.kv_heads * x.d, x.kv_heads * x.d};
  x.v = {x.tk * x.kv_heads * x.dv, x.kv_heads * x.dv};
  x.out = {x.tq * x.heads * x.dv, x.heads * x.dv};
  p.q = RandomVector<T>(x.batch * x.q.batch, 1);
  p.k = RandomVector<T>(x.batch * x.k.batch, 2);
  p.v = RandomVector<T>(x.batch * x.v.batch, 3);
  p.dout = RandomVector<T>(x.batch * x.out.batch, 4);
  const int64_t all = x.batch * x.heads * x.tq * x.tk;
  const auto random_mask = [](int64_t n, uint64_t seed) {
    std::unique_ptr<bool[]> keep(new bool[n]);
    for (int64_t i = 0; i < n; ++i) keep[i] = Uniform01(seed, 0, i) < .6;
    return keep;
  };
  const auto strides = [&x](Broadcast shape) {
    return shape == kFull ? std::array<int64_t, 4>{x.heads * x.tq * x.tk,
                                                   x.tq * x.tk, x.tk, 1}
                          : std::array<int64_t, 4>{0, x.tk, 0, 1};
  };
  if (key_mask) p.key_mask = random_mask(x.batch * x.tk, 5);
  if (mask != kNone) p.mask = random_mask(all, 6);
  if (bias != kNone) p.bias = RandomVector<T>(all, 7);
  x.key_mask = p.key_mask.get();
  x.mask = p.mask.get();
  x.mask_strides = strides(mask);
  x.bias = p.bias.empty() ? nullptr : p.bias.data();
  x.bias_strides = strides(bias);
  p.x = x;
  return p;
}

// The definition, with every weight of a row at once, in double.
template <class T>
std::vector<double> Reference(const AttentionArgs<T>& x, const T* q, const T* k,
                              const T* v, int64_t out_size) {
  std::vector<double> out(out_size);
  const int64_t group = x.heads / x.kv_heads;
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t h = 0; h < x.heads; ++h) {
      for (int64_t i = 0; i < x.tq; ++i) {
        std::vector<double> s(x.tk);
        double max = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = 0; j < x.tk; ++j) {
          for (int64_t l = 0; l < x.d; ++l) {
            s[j] += double(q[b * x.q.batch + i * x.q.row + h * x.d + l]) *
                    k[b * x.k.batch + j * x.k.row + h / group * x.d + l];
          }
          s[j] *= x.scale;
          const auto at = [&](const std::array<int64_t, 4>& strides) {
            return b * strides[0] + h * strides[1] + i * strides[2] +
                   j * strides[3];
          };
          if (x.bias != nullptr) s[j] += x.bias[at(x.bias_strides)];
          if ((x.causal && j > i + x.tk - x.tq) ||
              (x.mask != nullptr && !x.mask[at(x.mask_strides)]) ||
              (x.key_mask != nullptr && !x.key_mask[b * x.tk + j])) {
            s[j] = -std::numeric_limits<double>::infinity();
          }
          max = std::max(max, s[j]);
        }
        if (std::isinf(max)) continue;
        for (double& w : s) sum += w = std::exp(w - max);
        for (int64_t j = 0; j < x.tk; ++j) {
          double factor = 1;
          if (x.dropout_p > 0) {
            DropoutMaskRow(x.seed, x.offset,
                           ((b * x.heads + h) * x.tq + i) * x.tk + j, 1,
                           x.dropout_p, &factor);
          }
          for (int64_t l = 0; l < x.dv; ++l) {
            out[b * x.out.batch + i * x.out.row + h * x.dv + l] +=
                s[j] / sum * factor *
                v[b * x.v.batch + j * x.v.row + h / group * x.dv + l];
          }
        }
      }
    }
  }
  return out;
}

template <class T>
struct Result {
  std::vector<T> out, lse, dq, dk, dv;
};

template <class T>
Result<T> Solve(const Problem<T>& p) {
  Result<T> r;
  r.out.assign(p.dout.size(), T(NAN));
  r.lse.assign(p.x.batch * p.x.heads * p.x.tq, T(NAN));
  r.dq.assign(p.q.size(), T(NAN));
  r.dk.assign(p.k.size(), T(NAN));
  r.dv.assign(p.v.size(), T(NAN));
  Attention(p.x, p.q.data(), p.k.data(), p.v.data(), r.out.data(),
            r.lse.data());
  AttentionGrad(p.x, p.q.data(), p.k.data(), p.v.data(), r.out.data(),
                r.lse.data(), p.dout.data(), false, r.dq.data(), false,
                r.dk.data(), false, r.dv.data());
  return r;
}

// d(dout · out) along the element that `value` is, by central differences of
// the definition.
double Slope(const Problem<double>& p, double& value) {
  constexpr double kStep = 1e-5;
  const double before = value;
  double slope = 0;
  for (const double sign : {1, -1}) {
    value = before + sign * kStep;
    const auto out =
        Reference(p.x, p.q.data(), p.k.data(), p.v.data(), p.dout.size());
    for (size_t i = 0; i < out.size(); ++i) slope += sign * out[i] * p.dout[i];
  }
  value = before;
  return slope / (2 * kStep);
}

void ExpectGradient(Problem<double>& p) {
  const Result<double> r = Solve(p);
  const auto out =
      Reference(p.x, p.q.data(), p.k.data(), p.v.data(), p.dout.size());
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(r.out[i], out[i], 1e-12);
  for (size_t i = 0; i < p.q.size(); ++i) {
    ASSERT_NEAR(r.dq[i], Slope(p, p.q[i]), 1e-8) << "dq " << i;
  }
  for (size_t i = 0; i < p.k.size(); ++i) {
    ASSERT_NEAR(r.dk[i], Slope(p, p.k[i]), 1e-8) << "dk " << i;
  }
  for (size_t i = 0; i < p.v.size(); ++i) {
    ASSERT_NEAR(r.dv[i], Slope(p, p.v[i]), 1e-8) << "dv " << i;
  }
}

// dv = 1 takes lanes, dv = 17 blocks.
TEST(AttentionTest, EveryCombinationOfMasksAgreesWithTheDefinition) {
  for (const auto& [kv_heads, dv] :
       {std::array<int64_t, 2>{1, 1}, {2, 1}, {4, 1}, {2, 17}}) {
    for (const Broadcast mask : {kNone, kFull, kRows}) {
      for (const Broadcast bias : {kNone, kFull, kRows}) {
        for (int bits = 0; bits < 8; ++bits) {
          AttentionArgs<double> x;
          x.batch = 2, x.heads = 4, x.kv_heads = kv_heads;
          x.tq = bits & 4 ? 4 : 2, x.tk = 3, x.d = 2, x.dv = dv;
          x.scale = .7;
          x.causal = bits & 1;
          x.dropout_p = bits & 2 ? .3 : 0;
          x.seed = 11, x.offset = 5;
          auto p = MakeProblem(x, bits & 4, mask, bias);
          ExpectGradient(p);
          if (HasFatalFailure()) {
            FAIL() << "kv_heads " << kv_heads << " dv " << dv << " mask "
                   << mask << " bias " << bias << " bits " << bits;
          }
        }
      }
    }
  }
}

// Sizes on both sides of the blocks; the gradient along random directions.
TEST(AttentionTest, BlocksOfQueriesAndKeysAgreeWithTheDefinition) {
  for (const auto& [tq, tk] : {std::array<int64_t, 2>{64, 128},
                               {1, 300},
                               {65, 129},
                               {150, 70},
                               {131, 270}}) {
    for (const bool causal : {false, true}) {
      AttentionArgs<double> x;
      x.batch = 2, x.heads = 2, x.kv_heads = 1, x.tq = tq, x.tk = tk;
      x.d = 17, x.dv = 5, x.scale = .25, x.causal = causal;
      x.dropout_p = causal ? .2 : 0, x.seed = 3;
      auto p = MakeProblem(x, true, kFull, kFull);
      const Result<double> r = Solve(p);
      const auto out =
          Reference(p.x, p.q.data(), p.k.data(), p.v.data(), p.dout.size());
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(r.out[i], out[i], 1e-12) << tq << " " << tk << " at " << i;
      }
      const auto expect_slope = [&](std::vector<double>& input,
                                    const std::vector<double>& gradient) {
        const std::vector<double> at = input;
        const auto direction = RandomVector<double>(at.size(), 9);
        double expected = 0, slope = 0;
        for (size_t i = 0; i < at.size(); ++i) {
          expected += gradient[i] * direction[i];
        }
        constexpr double kStep = 1e-5;
        for (const double sign : {1, -1}) {
          for (size_t i = 0; i < at.size(); ++i) {
            input[i] = at[i] + sign * kStep * direction[i];
          }
          const auto moved =
              Reference(p.x, p.q.data(), p.k.data(), p.v.data(), out.size());
          for (size_t i = 0; i < moved.size(); ++i) {
            slope += sign * moved[i] * p.dout[i] / (2 * kStep);
          }
        }
        input = at;
        EXPECT_NEAR(slope, expected, 1e-6 * std::max(1., std::abs(expected)));
      };
      expect_slope(p.q, r.dq);
      expect_slope(p.k, r.dk);
      expect_slope(p.v, r.dv);

      AttentionArgs<float> xf;
      xf.batch = 2, xf.heads = 2, xf.kv_heads = 1, xf.tq = tq, xf.tk = tk;
      xf.d = 17, xf.dv = 5, xf.scale = .25, xf.causal = causal;
      xf.dropout_p = x.dropout_p, xf.seed = x.seed;
      const Result<float> f = Solve(MakeProblem(xf, true, kFull, kFull));
      const auto expect_near = [](const std::vector<float>& got,
                                  const std::vector<double>& expected) {
        for (size_t i = 0; i < got.size(); ++i) {
          if (std::isinf(expected[i])) {
            ASSERT_EQ(got[i], expected[i]);
          } else {
            ASSERT_NEAR(got[i], expected[i], 2e-5);
          }
        }
      };
      expect_near(f.out, r.out);
      expect_near(f.lse, r.lse);
      expect_near(f.dq, r.dq);
      expect_near(f.dk, r.dk);
      expect_near(f.dv, r.dv);
    }
  }
}

// Of 21 small problems the last ones do not fill the lanes.
TEST(AttentionTest, APlaceInTheBatchChangesNoBit) {
  AttentionArgs<float> x;
  x.batch = 7, x.heads = x.kv_heads = 3, x.tq = 3, x.tk = 4, x.d = 5, x.dv = 2;
  Problem<float> p = MakeProblem(x, true, kNone, kNone);
  const Result<float> all = Solve(p);
  const auto expect_part = [](const std::vector<float>& whole, int64_t b,
                              const std::vector<float>& part) {
    const auto from = whole.begin() + b * static_cast<int64_t>(part.size());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), from)) << b;
  };
  for (int64_t b = 0; b < 7; ++b) {
    x.batch = 1;
    Problem<float> one = MakeProblem(x, true, kNone, kNone);
    const auto cut = [b](const std::vector<float>& from,
                         std::vector<float>& to) {
      std::copy_n(from.begin() + b * static_cast<int64_t>(to.size()), to.size(),
                  to.begin());
    };
    cut(p.q, one.q), cut(p.k, one.k), cut(p.v, one.v), cut(p.dout, one.dout);
    std::copy_n(p.key_mask.get() + b * x.tk, x.tk, one.key_mask.get());
    const Result<float> r = Solve(one);
    expect_part(all.out, b, r.out), expect_part(all.lse, b, r.lse);
    expect_part(all.dq, b, r.dq), expect_part(all.dk, b, r.dk);
    expect_part(all.dv, b, r.dv);
  }
}

TEST(AttentionTest, PackedQkvIsReadAndWrittenInPlace) {
  AttentionArgs<float> x;
  x.batch = 2, x.heads = x.kv_heads = 3, x.tq = x.tk = 70, x.d = x.dv = 4;
  x.causal = true;
  const auto p = MakeProblem(x, false, kNone, kNone);
  const Result<float> expected = Solve(p);
  const int64_t width = x.heads * x.d, rows = x.batch * x.tq;
  std::vector<float> qkv(3 * rows * width), dqkv(qkv.size(), NAN);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t part = 3 * r;
    for (const auto* from : {&p.q, &p.k, &p.v}) {
      std::copy_n(from->data() + r * width, width, qkv.data() + part++ * width);
    }
  }
  AttentionArgs<float> packed = p.x;
  packed.q = packed.k = packed.v = {x.tq * 3 * width, 3 * width};
  Result<float> r = expected;
  const float *q = qkv.data(), *k = q + width, *v = k + width;
  Attention(packed, q, k, v, r.out.data(), r.lse.data());
  EXPECT_EQ(r.out, expected.out);
  float* dq = dqkv.data();
  AttentionGrad(packed, q, k, v, r.out.data(), r.lse.data(), p.dout.data(),
                false, dq, false, dq + width, false, dq + 2 * width);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t l = 0; l < width; ++l) {
      ASSERT_EQ(dq[3 * i * width + l], expected.dq[i * width + l]);
      ASSERT_EQ(dq[(3 * i + 1) * width + l], expected.dk[i * width + l]);
      ASSERT_EQ(dq[(3 * i + 2) * width + l], expected.dv[i * width + l]);
    }
  }
}

TEST(AttentionTest, GradientsAccumulateOneByOneAndMayBeLeftOut) {
  AttentionArgs<double> x;
  x.batch = 1, x.heads = 2, x.kv_heads = 1, x.tq = 5, x.tk = 6, x.d = 3;
  x.dv = 2;
  const auto p = MakeProblem(x, true, kNone, kNone);
  const Result<double> once = Solve(p);
  for (int accumulate = 0; accumulate < 8; ++accumulate) {
    for (int wanted = 0; wanted < 8; ++wanted) {
      std::vector<double> got[3];
      const std::vector<double>* expected[] = {&once.dq, &once.dk, &once.dv};
      double* to[3];
      bool add[3];
      for (int i = 0; i < 3; ++i) {
        got[i].assign(expected[i]->size(), 10);
        to[i] = wanted >> i & 1 ? got[i].data() : nullptr;
        add[i] = accumulate >> i & 1;
      }
      AttentionGrad(p.x, p.q.data(), p.k.data(), p.v.data(), once.out.data(),
                    once.lse.data(), p.dout.data(), add[0], to[0], add[1],
                    to[1], add[2], to[2]);
      for (int i = 0; i < 3; ++i) {
        for (size_t l = 0; l < got[i].size(); ++l) {
          const double value = (*expected[i])[l];
          ASSERT_NEAR(got[i][l],
                      to[i] == nullptr ? 10 : value + (add[i] ? 10 : 0), 1e-12);
        }
      }
    }
  }
}

TEST(AttentionTest, AMaskedRowGivesZerosAndZeroGradients) {
  AttentionArgs<float> x;
  x.batch = x.heads = x.kv_heads = 1, x.tq = x.tk = 2, x.d = x.dv = 1;
  auto p = MakeProblem(x, false, kFull, kNone);
  p.q = p.k = {1, 1};
  p.v = {1, 3};
  p.dout = {1, 1};
  p.mask[0] = p.mask[1] = false;
  p.mask[2] = p.mask[3] = true;
  const auto expect = [&] {
    const Result<float> r = Solve(p);
    EXPECT_EQ(r.out, (std::vector<float>{0, 2}));
    EXPECT_EQ(r.lse[0], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(r.dv, (std::vector<float>{.5, .5}));
    EXPECT_EQ(r.dq, (std::vector<float>{0, 0}));
    EXPECT_EQ(r.dk, (std::vector<float>{-.5, .5}));
  };
  expect();
  const float inf = std::numeric_limits<float>::infinity();
  p.x.mask = nullptr;
  const std::vector<float> bias = {-inf, -inf, 0, 0};
  p.x.bias = bias.data();
  p.x.bias_strides = {4, 4, 2, 1};
  expect();
}

TEST(AttentionTest, QueriesBeforeEveryKeyGiveZeros) {
  AttentionArgs<float> x;  // query i sees keys up to i - 98
  x.batch = x.heads = x.kv_heads = 1, x.tq = 100, x.tk = 2, x.d = x.dv = 1;
  x.causal = true;
  const auto p = MakeProblem(x, false, kNone, kNone);
  const Result<float> r = Solve(p);
  for (int i = 0; i < 98; ++i) {
    EXPECT_EQ(r.out[i], 0);
    EXPECT_EQ(r.dq[i], 0);
  }
  EXPECT_EQ(r.out[98], p.v[0]);
}

TEST(AttentionTest, TheLastQueryIsAlignedWithTheLastKey) {
  AttentionArgs<float> x;
  x.batch = x.heads = x.kv_heads = 1, x.tq = 1, x.tk = 4, x.d = x.dv = 1;
  x.causal = true;
  auto p = MakeProblem(x, false, kNone, kNone);
  p.q = {0};
  p.v = {1, 2, 3, 4};
  EXPECT_EQ(Solve(p).out, (std::vector<float>{2.5}));
}

TEST(AttentionTest, AnAdditiveMaskWeighsTheKeys) {
  AttentionArgs<double> x;
  x.batch = x.heads = x.kv_heads = 1, x.tq = 1, x.tk = 2, x.d = 1, x.dv = 2;
  auto p = MakeProblem(x, false, kNone, kFull);
  p.q = {0};
  p.v = {1, 0, 0, 1};  // out is the weights
  p.bias = {0, std::log(3.)};
  p.x.bias = p.bias.data();
  const auto out = Solve(p).out;
  EXPECT_NEAR(out[0], .25, 1e-15);
  EXPECT_NEAR(out[1], .75, 1e-15);
}

TEST(AttentionTest, NothingToAttendToOrFrom) {
  for (const auto& [tq, tk] : {std::array<int64_t, 2>{0, 3}, {3, 0}, {0, 0}}) {
    AttentionArgs<float> x;
    x.batch = 2, x.heads = 2, x.kv_heads = 1, x.tq = tq, x.tk = tk;
    x.d = x.dv = 2;
    const Result<float> r = Solve(MakeProblem(x, false, kNone, kNone));
    for (const auto* zeros : {&r.out, &r.dq, &r.dk, &r.dv}) {
      EXPECT_EQ(*zeros, std::vector<float>(zeros->size(), 0));
    }
  }
}

TEST(AttentionTest, LargeScoresNeitherOverflowNorLoseTheirDifferences) {
  AttentionArgs<float> x;
  x.batch = x.heads = x.kv_heads = 1, x.tq = 1, x.tk = 2, x.d = 1, x.dv = 2;
  auto p = MakeProblem(x, false, kNone, kNone);
  p.q = {1};
  p.k = {1000, 1001};
  p.v = {1, 0, 0, 1};
  const auto out = Solve(p).out;
  EXPECT_NEAR(out[0], .26894143, 1e-6);
  EXPECT_NEAR(out[1], .73105857, 1e-6);
}

TEST(AttentionTest, NanSpreadsToItsRowAlone) {
  AttentionArgs<float> x;
  x.batch = x.heads = x.kv_heads = 1, x.tq = 3, x.tk = 200, x.d = x.dv = 2;
  auto p = MakeProblem(x, false, kNone, kNone);
  p.q[2] = NAN;
  const auto out = Solve(p).out;
  EXPECT_TRUE(std::isfinite(out[0]) && std::isfinite(out[4]));
  EXPECT_TRUE(std::isnan(out[2]) && std::isnan(out[3]));
}

// Equal queries give equal outputs wherever they stand, and a query has the
// bits that it has when it comes alone, after its keys have been cached.
TEST(AttentionTest, ARowHasTheSameBitsInAnyCompany) {
  AttentionArgs<float> x;
  x.batch = 1, x.heads = 2, x.kv_heads = 1, x.tq = x.tk = 300, x.d = 24;
  x.dv = 40;
  auto p = MakeProblem(x, false, kNone, kNone);
  for (int i = 3; i < 300; ++i) {
    std::copy_n(p.q.begin() + i % 3 * 48, 48, p.q.begin() + i * 48);
  }
  const auto out = Solve(p).out;
  for (int i = 3; i < 300; ++i) {
    for (int l = 0; l < 80; ++l) {
      ASSERT_EQ(out[i * 80 + l], out[i % 3 * 80 + l]) << i;
    }
  }
  p.x.causal = true;
  const auto causal = Solve(p).out;
  for (int i = 0; i < 300; i += 7) {
    AttentionArgs<float> one = p.x;
    one.tq = 1, one.tk = i + 1;
    std::vector<float> row(80), lse(2);
    Attention(one, p.q.data() + i * 48, p.k.data(), p.v.data(), row.data(),
              lse.data());
    for (int l = 0; l < 80; ++l) ASSERT_EQ(row[l], causal[i * 80 + l]) << i;
  }
}

TEST(AttentionTest, SameBitsForAnyNumberOfThreads) {
  AttentionArgs<float> x;
  x.batch = 3, x.heads = 4, x.kv_heads = 2, x.tq = x.tk = 150, x.d = x.dv = 16;
  x.causal = true, x.dropout_p = .1;
  const auto p = MakeProblem(x, true, kFull, kRows);
  ExpectSameBitsForAnyThreads([&] {
    const Result<float> r = Solve(p);
    std::vector<float> all;
    for (const auto* part : {&r.out, &r.lse, &r.dq, &r.dk, &r.dv}) {
      all.insert(all.end(), part->begin(), part->end());
    }
    return all;
  });
}

}  // namespace
}  // namespace wengert::kernels
