// GloVe over records (i, j, x), in their order, as the Stanford program:
//   d = w_i . c_j + b_i + b_j - log x;  f = min(1, (x / x_max)^alpha) d;  cost = f d / 2
//   u = clip(f c_j, -100, 100) rate;  w_i -= u / sqrt(G_i);  G_i += u^2, and likewise c_j by the old w_i
//   b -= f / sqrt(G_b);  G_b += f^2
// The rows of a record lie anywhere: they are asked for eight records ahead.
#include <cmath>

#include "kernels/simd.h"
#include "vectors/kernels.h"

namespace plmcore::PLM_ISA {

double glove(const vectors::GloveModel&, const vectors::Record*, int64_t n);

namespace {

constexpr int kAhead = 8;
constexpr double kClip = 100;

PLM_INLINE vd reciprocal_root(vd x) {
#if defined(__AVX512F__) && PLM_VECTOR_BYTES == 64
  // 14 bits, doubled twice
  vd y = _mm512_rsqrt14_pd(x);
  y = y * (1.5 - 0.5 * x * y * y);
  return y * (1.5 - 0.5 * x * y * y);
#else
  vd y;
  for (int i = 0; i < kD; ++i) y[i] = 1 / std::sqrt(x[i]);
  return y;
#endif
}

PLM_INLINE vd clipped(vd x) { return min(max(x, splat(-kClip)), splat(kClip)); }

PLM_INLINE void prefetch(const double* row, int64_t n) {
  for (int64_t c = 0; c < n; c += 8) __builtin_prefetch(row + c, 1);
}

}  // namespace

double glove(const vectors::GloveModel& m, const vectors::Record* records, int64_t n) {
  const int64_t stride = m.stride(), width = m.width;
  double* const contexts = m.rows + m.vocabulary * stride;
  const bool usual = m.alpha == 0.75;
  double cost = 0;
  for (int64_t r = 0; r < n; ++r) {
    if (r + kAhead < n) {
      prefetch(m.rows + (records[r + kAhead].row - 1) * stride, stride);
      prefetch(contexts + (records[r + kAhead].column - 1) * stride, stride);
    }
    double* const w = m.rows + (records[r].row - 1) * stride;
    double* const c = contexts + (records[r].column - 1) * stride;
    double *const bias_w = w + 2 * width, *const bias_c = c + 2 * width;
    vd sum = {};
    for (int64_t i = 0; i < width; i += kD) sum += load(w + i) * load(c + i);
    const double x = records[r].value, d = reduce_add(sum) + bias_w[0] + bias_c[0] - std::log(x);
    const double share = x / m.x_max;
    double f = d;
    if (share < 1) f *= usual ? std::sqrt(share * std::sqrt(share)) : std::pow(share, m.alpha);
    cost += 0.5 * f * d;
    for (int64_t i = 0; i < width; i += kD) {
      const vd a = load(w + i), b = load(c + i), squares_a = load(w + width + i),
               squares_b = load(c + width + i);
      const vd u = clipped(f * b) * m.rate, v = clipped(f * a) * m.rate;
      store(w + i, a - u * reciprocal_root(squares_a));
      store(c + i, b - v * reciprocal_root(squares_b));
      store(w + width + i, squares_a + u * u);
      store(c + width + i, squares_b + v * v);
    }
    bias_w[0] -= f / std::sqrt(bias_w[1]);
    bias_c[0] -= f / std::sqrt(bias_c[1]);
    bias_w[1] += f * f;
    bias_c[1] += f * f;
  }
  return cost;
}

}  // namespace plmcore::PLM_ISA
