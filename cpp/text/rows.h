// Rows of token ids: what building a batch does to every one of its tokens, in one pass each. Memory in,
// memory out, all row-major and contiguous; B rows of T columns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plmcore::text {

// Copies n ids to `out` and returns the end. ValueError for one that is not of the vocabulary.
template <class Whole, class Id>
Id* narrowed(const Whole* ids, int64_t n, int64_t vocabulary, Id* out);

// The documents of a corpus on end, with a separator after each where `ends` is given. Places count tokens
// and separators.
template <class Id>
struct Source {
  const Id* ids;
  int64_t tokens;
  const int64_t* ends;  // of each document, behind its separator; null: there are none
  int64_t documents;
  int64_t separator;
};

// out[b, t] = what stands at starts[b] + t, `fill` from lengths[b] on. IndexError for a run that is not
// inside the text.
template <class Id>
void take(const Source<Id>& source, const int64_t* starts, const int64_t* lengths, int64_t B, int64_t T,
          int64_t fill, int64_t* out);

// One text of each row, or one value that stands for all of its tokens.
struct Part {
  const int64_t* text;     // [B, width]; null: `value`
  int64_t width;
  int64_t value;
  const int64_t* lengths;  // [B], each at most width
};

// Each row is fixed[0], the first text, fixed[1], the second, ..., at the left or the right, and `fill`
// elsewhere.
void lay_out(const std::vector<Part>& parts, const std::vector<std::vector<int64_t>>& fixed, int64_t B,
             int64_t T, bool right, int64_t fill, int64_t* out);

// float64 in [0, 1) for each row's key and the column: SplitMix64's output function (Steele, Lea, Flood 2014)
// over both, as plmcore.runtime.draws.
void uniform(const uint64_t* keys, int64_t B, int64_t T, double* out);
void uniform(const uint64_t* keys, int64_t B, double* out);  // for the key alone

// What becomes of chosen tokens: by their draw u / below in [0, 1) the mask, one of `random`, or what they
// were.
struct Hiding {
  double below;   // the draws of chosen tokens are below this
  double mask_share, random_share;
  int64_t mask;
  std::span<const int64_t> random;
};

// hidden: the ids with the chosen ones replaced; labels: the chosen ids, `ignored` elsewhere.  all [n]
void hide(const int64_t* ids, const bool* chosen, const double* u, int64_t n, const Hiding& how,
          int64_t ignored, int64_t* hidden, int64_t* labels);

// Marks spans, one after the other. The k-th of a row has sizes[b, k] tokens and, beside it, a stretch of its
// own of `ratio` times as many: it begins shifts[b, k] later, at the next place of `begins`, and is left out
// where it does not fit into lengths[b]. sizes, shifts [B, K]; begins, out [B, T]; lengths [B]
struct Stretch {
  int64_t above, below;  // the ratio
};
void mark_spans(const int64_t* sizes, const int64_t* shifts, int64_t K, Stretch ratio, const bool* begins,
                const int64_t* lengths, int64_t B, int64_t T, bool* out);

// Units of a row in the order of their keys, each as a whole, as long as they fit into counts[b] tokens; one
// that does not is passed over. starts: where units begin; only tokens that are `able` count and are taken;
// keys[b, k] is that of the k-th unit.  all [B, T]
void choose_units(const bool* starts, const bool* able, const double* keys, const int64_t* counts, int64_t B,
                  int64_t T, bool* out);

// out[b, i, j] = 1 where i may not see j: where rank[i] <= rank[j], a plain j taken for half lower, so that
// plain ones of one rank see each other. i sees itself unless it is a target.  rank, plain, targets [B, T],
// out [B, T, T]
void permutation_mask(const double* rank, const bool* plain, const bool* targets, int64_t B, int64_t T,
                      float* out);

}  // namespace plmcore::text
