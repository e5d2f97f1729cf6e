// What changes the scores of a sequence's next token before one is chosen, in the order in which transformers
// applies them.
#pragma once

#include <span>

#include "plmcore/generate.h"

namespace plmcore {

// Whether any of them does something when `step` tokens were made.
bool changes_scores(const SearchOptions& options, int64_t step);
// scores [V] of the token after `ids`, which end with `step` new ones.
void change_scores(const SearchOptions& options, int64_t prompt, std::span<const int64_t> ids, int64_t step,
                   std::span<float> scores);

}  // namespace plmcore
