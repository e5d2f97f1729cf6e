#include "embed/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plmcore {

namespace {

struct Sequence {
  const float* states;  // [T, C]
  const int64_t* mask;  // [T]
  int64_t T, C;

  int64_t first() const { return std::find(mask, mask + T, 1) - mask; }
  int64_t last() const {
    int64_t t = T - 1;
    while (t > 0 && !mask[t]) --t;
    return t;
  }
  void copy(int64_t t, float* to) const { std::copy_n(states + t * C, C, to); }

  // Sum of weight(t) * state / max(sum of weights, 1) * scale(sum)
  template <class Weight>
  float mean(Weight weight, float* to) const {
    std::vector<double> sum(static_cast<size_t>(C));
    double weights = 0;
    for (int64_t t = 0; t < T; ++t) {
      if (!mask[t]) continue;
      const double w = weight(t);
      weights += w;
      for (int64_t c = 0; c < C; ++c) sum[static_cast<size_t>(c)] += w * states[t * C + c];
    }
    for (int64_t c = 0; c < C; ++c)
      to[c] = static_cast<float>(sum[static_cast<size_t>(c)] / std::max(weights, 1.0));
    return static_cast<float>(weights);
  }
  void largest(float* to) const {
    std::fill_n(to, C, -std::numeric_limits<float>::infinity());
    for (int64_t t = 0; t < T; ++t)
      for (int64_t c = 0; mask[t] && c < C; ++c) to[c] = std::max(to[c], states[t * C + c]);
  }

  void pool(const std::string& mode, float* to) const {
    const auto one = [](int64_t) { return 1.0; };
    if (mode == "cls") copy(std::min(first(), T - 1), to);
    else if (mode == "lasttoken") copy(last(), to);
    else if (mode == "max") largest(to);
    else if (mode == "weightedmean") mean([](int64_t t) { return static_cast<double>(t + 1); }, to);
    else {
      const float n = mean(one, to);
      if (mode == "mean_sqrt_len_tokens")
        for (int64_t c = 0; c < C; ++c) to[c] *= std::sqrt(std::max(n, 1.0f));
    }
  }
};

void normalise(float* row, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(row[i]) * row[i];
  const double length = std::max(std::sqrt(sum), 1e-12);
  for (int64_t i = 0; i < n; ++i) row[i] = static_cast<float>(row[i] / length);
}

}  // namespace

Tensor pooled(const Pooling& how, const Tensor& states, const Tensor& mask) {
  const int64_t B = states.size(0).value(), T = states.size(1).value(), C = states.size(2).value();
  const auto modes = static_cast<int64_t>(how.modes.size());
  const Tensor found = Tensor::empty({B, C * modes}, DType::float32);
  for (int64_t b = 0; b < B; ++b) {
    const Sequence one = {states.as<float>() + b * T * C, mask.as<int64_t>() + b * T, T, C};
    float* row = found.as<float>() + b * C * modes;
    for (int64_t m = 0; m < modes; ++m) one.pool(how.modes[static_cast<size_t>(m)], row + m * C);
    if (how.normalise) normalise(row, C * modes);
  }
  return found;
}

}  // namespace plmcore
