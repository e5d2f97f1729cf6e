// Scores and stopping follow transformers: of the best continuations the first k may finish, the first k that
// did not finish go on; a search is over when it has k finished ones and the best that is alive cannot beat
// the worst of them by the rule of `early_stopping`.
#include "generate/beams.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plmcore {

constexpr float kNever = -std::numeric_limits<float>::infinity();
// A log-probability divided by it, or by its inverse, is an ordinary float32.
constexpr double kLeastPenalty = 1e-30;

Beam::Beam(const SearchOptions& options, int64_t prompt, std::vector<int64_t> ids)
    : options_(&options), prompt_(prompt), k_(options.beams / options.groups), prompt_length_(ids.size()) {
  alive_.push_back({std::move(ids), {}, 0, 0, -1});
}

int64_t Beam::wanted(const SearchOptions& o) {
  return std::max<int64_t>(2, 1 + static_cast<int64_t>(o.eos.size())) * (o.beams / o.groups);
}

double Beam::penalty(const SearchOptions& o, int64_t length) {
  const auto n = static_cast<double>(length);
  return std::pow(o.gnmt ? (5 + n) / 6 : n, o.length_penalty);
}

void Beam::check_penalty(const SearchOptions& o, int64_t length) {
  const double by = penalty(o, length);
  check<ValueError>(by >= kLeastPenalty && by <= 1 / kLeastPenalty, "length_penalty = ", o.length_penalty,
                    " divides the score of ", length, " tokens by ", by,
                    ", which leaves the range of float32");
}

bool Beam::ends(const std::vector<int64_t>& ids, int64_t length) const {
  return length == options_->max_new_tokens ||
         std::ranges::find(options_->eos, ids.back()) != options_->eos.end() ||
         (options_->stop && options_->stop(prompt_, ids));
}

// -> its score
double Beam::finish(Hypothesis&& h, int64_t length) {
  const double score = static_cast<float>(h.score / penalty(*options_, length));
  const auto at = std::ranges::find_if(finished_, [&](const Completion& s) { return s.score < score; });
  if (at - finished_.begin() >= k_) return score;
  const auto first = h.ids.begin() + static_cast<int64_t>(prompt_length_);
  finished_.insert(at, {{first, h.ids.end()}, score, std::move(h.token_scores)});
  if (static_cast<int64_t>(finished_.size()) > k_) finished_.pop_back();
  return score;
}

void Beam::advance(const Continuations& best, int64_t length, int64_t group, std::vector<Considered>* trace) {
  std::vector<Hypothesis> next;
  const auto full = [&](size_t i) {
    return static_cast<int64_t>(next.size()) == k_ && static_cast<int64_t>(i) >= k_;
  };
  for (size_t i = 0; i < best.size() && (trace || !full(i)); ++i) {
    const Continuation& c = best[i];
    const Hypothesis& from = alive_[static_cast<size_t>(c.parent)];
    Considered* seen = nullptr;
    if (trace)
      seen =
          &trace->emplace_back(Considered{group, from.place, c.token, c.score, Fate::dropped, std::nan("")});
    if (full(i)) continue;
    Hypothesis h{from.ids, {}, c.score, c.parent, trace ? static_cast<int64_t>(trace->size()) - 1 : -1};
    h.ids.push_back(c.token);
    if (options_->token_scores) {
      h.token_scores = from.token_scores;
      h.token_scores.push_back(c.token_score);
    }
    if (ends(h.ids, length)) {
      if (static_cast<int64_t>(i) >= k_) continue;
      const double score = finish(std::move(h), length);
      if (seen) seen->fate = Fate::finished, seen->final_score = score;
    } else {
      next.push_back(std::move(h));
      if (seen) seen->fate = Fate::kept;
    }
  }
  alive_ = std::move(next);
  over_ = alive_.empty();
  if (over_ || static_cast<int64_t>(finished_.size()) < k_) return;
  const bool far = options_->early_stopping == EarlyStopping::never && options_->length_penalty > 0;
  const double possible =
      static_cast<float>(alive_[0].score / penalty(*options_, far ? options_->max_new_tokens : length));
  over_ = options_->early_stopping == EarlyStopping::yes || !(possible > finished_.back().score);
}

static bool before(const Continuation& a, const Continuation& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
}

void append_best(std::span<const float> scores, float base, int64_t parent, int64_t n, Continuations& out) {
  const auto first = static_cast<int64_t>(out.size());
  const auto better = [](const Continuation& a, const Continuation& b) { return before(a, b); };
  float least = kNever;  // of the heap, whose root is the worst, once it is full
  for (size_t i = 0; i < scores.size(); ++i) {
    const float score = scores[i] + base;
    if (!(score > least)) continue;
    if (static_cast<int64_t>(out.size()) - first == n) {
      std::pop_heap(out.begin() + first, out.end(), better);
      out.pop_back();
    }
    out.push_back({score, parent, static_cast<int64_t>(i), scores[i]});
    std::push_heap(out.begin() + first, out.end(), better);
    if (static_cast<int64_t>(out.size()) - first == n) least = out[static_cast<size_t>(first)].score;
  }
}

void keep_best(Continuations& c, int64_t n) {
  std::ranges::sort(c, before);
  if (static_cast<int64_t>(c.size()) > n) c.resize(static_cast<size_t>(n));
}

}  // namespace plmcore
