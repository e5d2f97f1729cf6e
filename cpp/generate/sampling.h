// A token drawn from the scores of one sequence, after temperature, top-k, top-p and typical sampling.
#pragma once

#include <span>

#include "plmcore/generate.h"

namespace plmcore {

struct Drawn {
  int64_t token;    // -1: none has a probability, or one is NaN or infinite
  float log_probability;  // among the tokens that were left
};
// `uniform` in [0, 1). The `shown` likeliest tokens of those that were left are added to `best`, unless null,
// in descending order.
Drawn draw_token(const SearchOptions& options, std::span<const float> scores, double uniform,
                 int64_t shown = 0, std::vector<Drawn>* best = nullptr);

// Of the random stream of a seed: number `step` of its sequence `sample`. [0, 1) with 53 bits.
double stream_uniform(int64_t seed, int64_t sample, int64_t step);

}  // namespace plmcore
