// One beam search of k beams for one prompt: what is alive, what is finished, when it is over. Several of
// them are the groups of a diverse search.
#pragma once

#include <span>

#include "plmcore/generate.h"

namespace plmcore {

// A continuation of the sequence `parent` of this prompt.
struct Continuation {
  float score;  // the sum of log-probabilities
  int64_t parent, token;
  float token_score;
};
using Continuations = std::vector<Continuation>;

struct Hypothesis {
  std::vector<int64_t> ids;  // the prompt's and the new ones
  std::vector<float> token_scores;
  float score = 0;
  int64_t parent = 0;        // in the run before
  int64_t place = -1;        // among what the last step looked at, if that is traced
};

class Beam {
 public:
  Beam(const SearchOptions& options, int64_t prompt, std::vector<int64_t> ids);

  // How many of the best continuations a step needs: as many as can end, and k that go on.
  static int64_t wanted(const SearchOptions& options);
  // Whether scores of so many new tokens can be compared.
  static void check_penalty(const SearchOptions& options, int64_t length);
  // The best continuations in descending order; `length` counts their new tokens. What becomes of each is
  // added to `trace`, unless null.
  void advance(const Continuations& best, int64_t length, int64_t group, std::vector<Considered>* trace);
  bool over() const { return over_; }
  const std::vector<Hypothesis>& alive() const { return alive_; }
  const std::vector<Completion>& finished() const { return finished_; }

 private:
  static double penalty(const SearchOptions& options, int64_t length);
  bool ends(const std::vector<int64_t>& ids, int64_t length) const;
  double finish(Hypothesis&& h, int64_t length);

  const SearchOptions* options_;
  int64_t prompt_, k_;
  size_t prompt_length_;
  bool over_ = false;
  std::vector<Hypothesis> alive_;
  std::vector<Completion> finished_;  // the best k, descending
};

// The best n of the scores, each plus `base`, in descending order; of equals the smaller token first. What
// cannot happen is left out.
void append_best(std::span<const float> scores, float base, int64_t parent, int64_t n, Continuations& out);
// Sorts, and keeps the best n; of equals the smaller parent, then the smaller token, first.
void keep_best(Continuations& c, int64_t n);

}  // namespace plmcore
