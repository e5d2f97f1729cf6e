#include <cmath>

#include "plmcore/generate.h"

namespace plmcore {

static void at_least(const char* name, int64_t value, int64_t least) {
  check<ValueError>(value >= least, name, " must be at least ", least, ", got ", value);
}

// Scores are float32, and so is what they are divided by: a number that is 0 or infinite there would make
// every score one.
static void fits(const char* name, double value) {
  check<ValueError>(value == 0 || std::isnormal(static_cast<float>(value)), name, " = ", value,
                    " is out of the range of float32, which is 1.2e-38 to 3.4e38");
}

void SearchOptions::check(int64_t prompts) const {
  using plmcore::check;
  at_least("max_new_tokens", max_new_tokens, 1);
  at_least("min_new_tokens", min_new_tokens, 0);
  check<ValueError>(min_new_tokens <= max_new_tokens,
                    "min_new_tokens must be at most max_new_tokens = ", max_new_tokens, ", got ",
                    min_new_tokens);
  at_least("num_beams", beams, 1);
  at_least("num_beam_groups", groups, 1);
  check<ValueError>(beams % groups == 0, "num_beams must be a multiple of num_beam_groups = ", groups,
                    ", got ", beams);
  check<ValueError>(diversity >= 0, "diversity_penalty must not be negative, got ", diversity);
  check<ValueError>(diversity == 0 || groups > 1,
                    "diversity_penalty needs num_beam_groups of more than 1, got ", groups);
  fits("diversity_penalty", diversity);
  check<ValueError>(std::isfinite(length_penalty), "length_penalty must be finite, got ", length_penalty);
  at_least("num_return_sequences", returns, 1);
  check<ValueError>(beams == 1 || !sample, "do_sample and num_beams = ", beams,
                    ": sampling has no beams here");
  check<ValueError>(returns == 1 || sample || returns <= beams,
                    "num_return_sequences must be at most num_beams = ", beams, " without do_sample, got ",
                    returns);
  check<ValueError>(temperature > 0, "temperature must be more than 0 (do_sample=False is greedy), got ",
                    temperature);
  fits("temperature", temperature);
  at_least("top_k", top_k, 0);
  check<ValueError>(top_p > 0 && top_p <= 1, "top_p must be in (0, 1], got ", top_p);
  check<ValueError>(typical_p > 0 && typical_p <= 1, "typical_p must be in (0, 1], got ", typical_p);
  check<ValueError>(repetition_penalty > 0, "repetition_penalty must be more than 0, got ",
                    repetition_penalty);
  fits("repetition_penalty", repetition_penalty);
  at_least("no_repeat_ngram_size", no_repeat_ngram, 0);
  check<ValueError>(!sample || static_cast<int64_t>(seeds.size()) == prompts,
                    "seed must give one number for each of the ", prompts, " prompts, got ", seeds.size());
  for (int64_t token : eos) at_least("eos_token_id", token, 0);
  for (int64_t token : forced_first) at_least("forced_bos_token_id", token, 0);
  for (int64_t token : forced_last) at_least("forced_eos_token_id", token, 0);
  for (const auto& word : bad_words) {
    check<ValueError>(!word.empty(), "bad_words_ids must be lists of tokens, got an empty one");
    for (int64_t token : word) at_least("bad_words_ids", token, 0);
  }
}

}  // namespace plmcore
