#include "generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/philox.h"

namespace plmcore {

namespace {
struct Candidate {
  float score;
  int64_t token;
};
using Candidates = std::vector<Candidate>;

bool before(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.token < b.token;
}

double mass(const Candidates& c, float top) {
  double sum = 0;
  for (const auto& x : c) sum += std::exp(static_cast<double>(x.score) - top);
  return sum;
}

// The k best, and those that equal the last of them.
void keep_best(Candidates& c, size_t k) {
  if (k >= c.size()) return;
  const auto last = c.begin() + static_cast<int64_t>(k) - 1;
  std::nth_element(c.begin(), last, c.end(), before);
  const float least = last->score;
  std::erase_if(c, [&](const Candidate& x) { return x.score < least; });
}

// The fewest, in the order of `rank`, with a share of at least p. The front is sorted in growing pieces: a
// peaked row ends early.
template <class Rank>
void keep_mass(Candidates& c, double p, float top, Rank rank) {
  const double wanted = p * mass(c, top);
  double sum = 0;
  size_t sorted = 0;
  for (size_t piece = 256; sorted < c.size(); piece *= 4) {
    const size_t end = std::min(c.size(), sorted + piece);
    const auto from = c.begin() + static_cast<int64_t>(sorted), to = c.begin() + static_cast<int64_t>(end);
    std::partial_sort(from, to, c.end(), rank);
    for (; sorted < end; ++sorted) {
      sum += std::exp(static_cast<double>(c[sorted].score) - top);
      if (sum >= wanted) {
        c.resize(sorted + 1);
        return;
      }
    }
  }
}

// Those whose surprise is nearest to the mean, with a share of at least p.
void keep_typical(Candidates& c, double p, float top) {
  const double log_sum = std::log(mass(c, top)) + top;
  double entropy = 0;
  for (const auto& x : c) entropy -= (x.score - log_sum) * std::exp(x.score - log_sum);
  const auto distance = [&](const Candidate& x) { return std::abs(log_sum - x.score - entropy); };
  keep_mass(c, p, top, [&](const Candidate& a, const Candidate& b) {
    const double da = distance(a), db = distance(b);
    return da != db ? da < db : before(a, b);
  });
}
}  // namespace

Drawn draw_token(const SearchOptions& o, std::span<const float> scores, double uniform, int64_t shown,
                 std::vector<Drawn>* best) {
  Candidates c;
  c.reserve(scores.size());
  const auto by = static_cast<float>(o.temperature);
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  float highest = kNever;
  for (const float score : scores) {
    if (score != score || score == -kNever) return {-1, 0};
    highest = std::max(highest, score);
  }
  if (highest == kNever) return {-1, 0};
  const float shift =
      std::isfinite(highest / by) ? 0 : highest;  // so low a temperature leaves the best alone
  const float top = (highest - shift) / by;
  for (size_t i = 0; i < scores.size(); ++i)
    if (const float score = (scores[i] - shift) / by; score > kNever)
      c.push_back({score, static_cast<int64_t>(i)});
  if (o.top_k > 0) keep_best(c, static_cast<size_t>(o.top_k));
  if (o.top_p < 1) keep_mass(c, o.top_p, top, before);
  if (o.typical_p < 1) keep_typical(c, o.typical_p, top);
  if (c.size() < scores.size()) std::ranges::sort(c, {}, &Candidate::token);  // whatever way they were found
  const double total = mass(c, top);
  double left = uniform * total;
  const Candidate* chosen = &c.back();
  for (const auto& x : c) {
    left -= std::exp(static_cast<double>(x.score) - top);
    if (left < 0) {
      chosen = &x;
      break;
    }
  }
  const auto drawn = [&](const Candidate& x) {
    return Drawn{x.token, static_cast<float>(x.score - top - std::log(total))};
  };
  const Drawn result = drawn(*chosen);
  if (best) {
    const auto end = c.begin() + std::min(shown, static_cast<int64_t>(c.size()));
    std::partial_sort(c.begin(), end, c.end(), before);
    for (auto x = c.begin(); x != end; ++x) best->push_back(drawn(*x));
  }
  return result;
}

double stream_uniform(int64_t seed, int64_t sample, int64_t step) {
  const Random4 r =
      philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(sample) << 32 | static_cast<uint64_t>(step));
  const uint64_t bits = (static_cast<uint64_t>(r.x[0]) << 32 | r.x[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace plmcore
