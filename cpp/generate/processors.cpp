#include "generate/processors.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plmcore {

constexpr float kNever = -std::numeric_limits<float>::infinity();

static void forbid(std::span<float> scores, int64_t token) {
  if (token < static_cast<int64_t>(scores.size())) scores[static_cast<size_t>(token)] = kNever;
}

// Only `tokens` are left, all alike.
static void force(std::span<float> scores, const std::vector<int64_t>& tokens) {
  std::ranges::fill(scores, kNever);
  for (int64_t token : tokens)
    if (token < static_cast<int64_t>(scores.size())) scores[static_cast<size_t>(token)] = 0;
}

static void penalise_repetition(double penalty, std::span<const int64_t> ids, std::span<float> scores) {
  std::vector<int64_t> seen(ids.begin(), ids.end());
  std::ranges::sort(seen);
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  const auto p = static_cast<float>(penalty);
  for (int64_t token : seen)
    if (token < static_cast<int64_t>(scores.size())) {
      float& s = scores[static_cast<size_t>(token)];
      const float before = s;
      s = s < 0 ? s * p : s / p;
      check<ValueError>(std::isfinite(s) || !std::isfinite(before), "repetition_penalty = ", penalty,
                        " takes the score ", before, " of token ", token, " out of the range of float32");
    }
}

// The last n - 1 tokens must not be followed by what followed them before.
static void forbid_ngrams(int64_t size, std::span<const int64_t> ids, std::span<float> scores) {
  const auto n = static_cast<size_t>(size);
  if (ids.size() < n) return;
  const auto suffix = ids.last(n - 1);
  for (size_t i = 0; i + n <= ids.size(); ++i)
    if (std::ranges::equal(ids.subspan(i, n - 1), suffix)) forbid(scores, ids[i + n - 1]);
}

static void forbid_words(const SearchOptions& o, std::span<const int64_t> ids, std::span<float> scores) {
  for (const auto& word : o.bad_words) {
    if (word.size() == 1 && std::ranges::find(o.eos, word[0]) != o.eos.end()) continue;
    const size_t before = word.size() - 1;
    if (before <= ids.size() && std::ranges::equal(ids.last(before), std::span(word).first(before)))
      forbid(scores, word.back());
  }
}

static void allow(const SearchOptions& o, int64_t prompt, std::span<const int64_t> ids,
                  std::span<float> scores) {
  const std::vector<int64_t> tokens = o.allowed(prompt, ids);
  check<ValueError>(!tokens.empty(), "the prefix constraint allows no token after ", ids.size(),
                    " tokens of prompt ", prompt);
  std::vector<float> kept;
  for (int64_t token : tokens) {
    check<ValueError>(token >= 0 && token < static_cast<int64_t>(scores.size()),
                      "the prefix constraint allows the token ", token, ", and the vocabulary has ",
                      scores.size());
    kept.push_back(scores[static_cast<size_t>(token)]);
  }
  std::ranges::fill(scores, kNever);
  for (size_t i = 0; i < tokens.size(); ++i) scores[static_cast<size_t>(tokens[i])] = kept[i];
}

bool changes_scores(const SearchOptions& o, int64_t step) {
  return o.repetition_penalty != 1 || o.no_repeat_ngram > 0 || !o.bad_words.empty() ||
         (step < o.min_new_tokens && !o.eos.empty()) || o.allowed || (step == 0 && !o.forced_first.empty()) ||
         (step == o.max_new_tokens - 1 && !o.forced_last.empty());
}

void change_scores(const SearchOptions& o, int64_t prompt, std::span<const int64_t> ids, int64_t step,
                   std::span<float> scores) {
  if (o.repetition_penalty != 1) penalise_repetition(o.repetition_penalty, ids, scores);
  if (o.no_repeat_ngram > 0) forbid_ngrams(o.no_repeat_ngram, ids, scores);
  if (!o.bad_words.empty()) forbid_words(o, ids, scores);
  if (step < o.min_new_tokens)
    for (int64_t token : o.eos) forbid(scores, token);
  if (o.allowed) allow(o, prompt, ids, scores);
  if (step == 0 && !o.forced_first.empty()) force(scores, o.forced_first);
  if (step == o.max_new_tokens - 1 && !o.forced_last.empty()) force(scores, o.forced_last);
}

}  // namespace plmcore
