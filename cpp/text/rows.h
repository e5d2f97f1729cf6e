// Rows of token ids: what building a batch does to every one of its tokens, in one pass each. Memory in, memory out, all
// row-major and contiguous; B rows of T columns.
#pragma once

#include <cstdint>
#include <vector>

namespace plmcore::text {

// The documents of a corpus on end, with a separator after each where `ends` is given. Places count tokens and separators.
template <class Id>
struct Source {
  const Id* ids;
  int64_t tokens;
  const int64_t* ends;  // of each document, behind its separator; null: there are none
  int64_t documents;
  int64_t separator;
};

// out[b, t] = what stands at starts[b] + t, `fill` from lengths[b] on. IndexError for a run that is not inside the text.
template <class Id>
void take(const Source<Id>& source, const int64_t* starts, const int64_t* lengths, int64_t B, int64_t T, int64_t fill, int64_t* out);

// One text of each row, or one value that stands for all of its tokens.
struct Part {
  const int64_t* text;     // [B, width]; null: `value`
  int64_t width;
  int64_t value;
  const int64_t* lengths;  // [B], each at most width
};

// Each row is fixed[0], the first text, fixed[1], the second, ..., at the left or the right, and `fill` elsewhere.
void lay_out(const std::vector<Part>& parts, const std::vector<std::vector<int64_t>>& fixed, int64_t B, int64_t T, bool right, int64_t fill,
             int64_t* out);

// float64 in [0, 1) for each row's key and the column: SplitMix64's output function (Steele, Lea, Flood 2014) over both, as plmcore.draws.
void uniform(const uint64_t* keys, int64_t B, int64_t T, double* out);

// out[b, i, j] = 1 where i may not see j: where rank[i] <= rank[j], a plain j taken for half lower, so that plain ones of one rank see
// each other. i sees itself unless it is a target.  rank, plain, targets [B, T], out [B, T, T]
void permutation_mask(const double* rank, const bool* plain, const bool* targets, int64_t B, int64_t T, float* out);

}  // namespace plmcore::text
