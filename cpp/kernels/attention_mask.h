// Which keys a query may see, and what is added to its scores. Scores are in base 2: scaled by log2(e).
#pragma once

#include <limits>

#include "kernels/attention_layout.h"

namespace plmcore::PLM_ISA {

// The keys of one query: [begin, end) without the hole, in which only every stride-th key back from
// `position` shows.
struct KeyRange {
  int64_t begin, end, hole_begin, hole_end, position;
};

// The structural pattern of one sequence.
class Pattern {
 public:
  Pattern(const KernelArgs& args, const AttentionLayout& at, int64_t b, const Sequence& s)
      : keys_(at.has(kLengths) ? index_at(at.in[kLengths], b) : s.S),
        causal_(args.i("causal") != 0),
        band_(least(args.i("band"), INT64_MAX / 2)),  // any number: what is counted from it must not overflow
        stride_(args.i("stride")),
        prefix_(at.has(kPrefix) ? index_at(at.in[kPrefix], b) : 0),
        first_(at.has(kStart) ? index_at(at.in[kStart], b) : s.S - s.T) {}

  int64_t stride() const { return stride_; }
  KeyRange row(int64_t i) const {
    if (!causal_) return {0, keys_, 0, 0, 0};
    const int64_t position = first_ + i;
    KeyRange r{0, clamp(position + 1), clamp(prefix_), 0, position};
    if (band_ > 0) r.hole_end = clamp(position + 1 - band_);
    else if (stride_ > 0) r.hole_end = r.end;
    if (prefix_ > r.end) r.end = clamp(prefix_);
    if (r.hole_end <= r.hole_begin) r.hole_begin = r.hole_end = 0;
    else if (r.hole_begin == 0 && stride_ == 0) r.begin = r.hole_end;
    return r;
  }
  // The first and one past the last key that any of the queries [i, i + n) sees. Both rise with i.
  int64_t begin(int64_t i) const { return row(i).begin; }
  int64_t end(int64_t i, int64_t n) const { return row(i + n - 1).end; }
  // Whether all queries [i, i + n) see all keys [begin, end).
  bool all(int64_t i, int64_t n, int64_t begin, int64_t end) const {
    const KeyRange first = row(i), last = row(i + n - 1);
    return last.begin <= begin && end <= first.end &&
           (last.hole_begin == last.hole_end || end <= last.hole_begin || last.hole_end <= begin);
  }

 private:
  int64_t clamp(int64_t j) const { return j < 0 ? 0 : j > keys_ ? keys_ : j; }

  int64_t keys_;
  bool causal_;
  int64_t band_, stride_, prefix_, first_;
};

// A row of mask or bias [B|1, H|1, T|1, S].
template <class E>
class Plane {
 public:
  Plane() = default;
  Plane(const View& v, int64_t b, int64_t h) {
    if (!v) return;
    const int64_t rows = v.size[2], columns = v.size[3];
    at_ = v.as<E>() + ((v.size[0] == 1 ? 0 : b) * v.size[1] + (v.size[1] == 1 ? 0 : h)) * rows * columns;
    stride_ = rows == 1 ? 0 : columns;
  }
  explicit operator bool() const { return at_ != nullptr; }
  E* row(int64_t i) const { return at_ + i * stride_; }

 private:
  E* at_ = nullptr;
  int64_t stride_ = 0;
};

// The scores of one query over the keys [key, key + n) of a tile: bias, then -inf where the query may not
// look. Columns [n, padded) belong to no key.
template <class T, class A>
struct ScoreRules {
  Pattern pattern;
  Plane<const uint8_t> mask;  // a bool from outside may be any byte
  Plane<const T> bias;

  bool plain(int64_t i, int64_t rows, int64_t key, int64_t n, int64_t padded) const {
    return n == padded && !mask && !bias && pattern.all(i, rows, key, key + n);
  }
  void apply(int64_t i, int64_t key, int64_t n, int64_t padded, A* s) const {
    constexpr A kLog2e = static_cast<A>(1.44269504088896340736);
    constexpr A kNever = -std::numeric_limits<A>::infinity();
    if (bias) {
      const T* row = bias.row(i) + key;
      for (int64_t j = 0; j < n; ++j) s[j] += static_cast<A>(to_float(row[j])) * kLog2e;
    }
    if (mask) {
      const uint8_t* row = mask.row(i) + key;
      for (int64_t j = 0; j < n; ++j) s[j] = row[j] ? s[j] : kNever;
    }
    const KeyRange see = pattern.row(i);
    const auto within = [&](int64_t j) { return j < key ? 0 : j - key > n ? n : j - key; };
    for (int64_t j = 0; j < within(see.begin); ++j) s[j] = kNever;
    for (int64_t j = within(see.end); j < padded; ++j) s[j] = kNever;
    const int64_t hole_end = within(see.hole_end), stride = pattern.stride();
    for (int64_t j = within(see.hole_begin); j < hole_end; ++j) {
      const int64_t next =
          stride == 0 ? hole_end : j + (see.position - key - j) % stride;  // the next key that shows
      for (; j < next && j < hole_end; ++j) s[j] = kNever;
    }
  }
};

}  // namespace plmcore::PLM_ISA
