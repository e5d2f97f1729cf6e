#include "text/rows.h"

#include <algorithm>

#include "plmcore/error.h"

namespace plmcore::text {
namespace {

constexpr uint64_t kStep = 0x9E3779B97F4A7C15;

uint64_t stirred(uint64_t state, uint64_t coordinate) {
  uint64_t z = (state ^ coordinate) + kStep;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

double unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }  // in [0, 1)

}  // namespace

template <class Whole, class Id>
Id* narrowed(const Whole* ids, int64_t n, int64_t vocabulary, Id* out) {
  for (int64_t i = 0; i < n; ++i) {
    check<ValueError>(ids[i] >= 0 && ids[i] < vocabulary, "the tokenizer gave the id ", ids[i],
                      "; its vocab_size is ", vocabulary);
    *out++ = static_cast<Id>(ids[i]);
  }
  return out;
}

template uint16_t* narrowed(const int32_t*, int64_t, int64_t, uint16_t*);
template uint32_t* narrowed(const int32_t*, int64_t, int64_t, uint32_t*);
template uint16_t* narrowed(const int64_t*, int64_t, int64_t, uint16_t*);
template uint32_t* narrowed(const int64_t*, int64_t, int64_t, uint32_t*);

template <class Id>
void take(const Source<Id>& source, const int64_t* starts, const int64_t* lengths, int64_t B, int64_t T,
          int64_t fill, int64_t* out) {
  const int64_t* const last = source.ends + source.documents;
  const int64_t size = source.tokens + source.documents;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t start = starts[b], n = lengths[b];
    check<IndexError>(n >= 0 && n <= T && start >= 0 && start <= size - n, "take: row ", b,
                      " must lie in a text of ", size, " tokens, and has ", n, " from ", start,
                      " on; rows have ", T);
    int64_t* row = out + b * T;
    int64_t* const stop = row + n;
    if (source.ends == nullptr) {
      row = std::copy_n(source.ids + start, n, row);
    } else {
      const int64_t* end = std::upper_bound(source.ends, last, start);  // of the document that `place` is in
      for (int64_t place = start; row < stop; ++end) {
        check<IndexError>(end < last && *end > place, "take: the ends of documents must rise up to ", size);
        const int64_t here = std::min<int64_t>(*end - 1 - place, stop - row),
                      token = place - (end - source.ends);
        check<IndexError>(token >= 0 && token + here <= source.tokens,
                          "take: the ends of documents must rise up to ", size);
        row = std::copy_n(source.ids + token, here, row);
        place += here;
        if (row < stop) *row++ = source.separator, ++place;
      }
    }
    std::fill(row, out + (b + 1) * T, fill);
  }
}

template void take(const Source<uint16_t>&, const int64_t*, const int64_t*, int64_t, int64_t, int64_t,
                   int64_t*);
template void take(const Source<uint32_t>&, const int64_t*, const int64_t*, int64_t, int64_t, int64_t,
                   int64_t*);

void lay_out(const std::vector<Part>& parts, const std::vector<std::vector<int64_t>>& fixed, int64_t B,
             int64_t T, bool right, int64_t fill, int64_t* out) {
  int64_t specials = 0;
  for (const auto& tokens : fixed) specials += static_cast<int64_t>(tokens.size());
  for (int64_t b = 0; b < B; ++b) {
    int64_t used = specials;
    for (const Part& part : parts) {
      const int64_t n = part.lengths[b], most = part.text ? part.width : T;
      check<IndexError>(n >= 0 && n <= most, "lay_out: lengths must be 0 to ", most, ", got ", n, " in row ",
                        b);
      used += n;
    }
    check<IndexError>(used <= T, "lay_out: row ", b, " has ", used, " tokens, and rows have room for ", T);
    int64_t* row = out + b * T;
    if (right) row = std::fill_n(row, T - used, fill);
    for (size_t k = 0; k < fixed.size(); ++k) {
      row = std::copy(fixed[k].begin(), fixed[k].end(), row);
      if (k == parts.size()) break;
      const Part& part = parts[k];
      row = part.text ? std::copy_n(part.text + b * part.width, part.lengths[b], row)
                      : std::fill_n(row, part.lengths[b], part.value);
    }
    if (!right) std::fill_n(row, T - used, fill);
  }
}

void uniform(const uint64_t* keys, int64_t B, int64_t T, double* out) {
  for (int64_t b = 0; b < B; ++b) {
    const uint64_t own = stirred(0, keys[b]);
    for (int64_t t = 0; t < T; ++t) *out++ = unit(stirred(own, static_cast<uint64_t>(t)));
  }
}

void uniform(const uint64_t* keys, int64_t B, double* out) {
  for (int64_t b = 0; b < B; ++b) out[b] = unit(stirred(0, keys[b]));
}

void hide(const int64_t* ids, const bool* chosen, const double* u, int64_t n, const Hiding& how,
          int64_t ignored, int64_t* hidden, int64_t* labels) {
  const auto count = static_cast<int64_t>(how.random.size());
  check<ValueError>(how.random_share <= 0 || count > 0, "hide: there must be tokens to put at random");
  const double scale = static_cast<double>(count) / how.random_share;
  for (int64_t i = 0; i < n; ++i) {
    hidden[i] = ids[i];
    labels[i] = chosen[i] ? ids[i] : ignored;
    if (!chosen[i]) continue;
    const double v = u[i] / how.below;
    if (v < how.mask_share) {
      hidden[i] = how.mask;
    } else if (v < how.mask_share + how.random_share) {
      hidden[i] = how.random[static_cast<size_t>(
          std::min(static_cast<int64_t>((v - how.mask_share) * scale), count - 1))];
    }
  }
}

void mark_spans(const int64_t* sizes, const int64_t* shifts, int64_t K, Stretch ratio, const bool* begins,
                const int64_t* lengths, int64_t B, int64_t T, bool* out) {
  std::fill_n(out, B * T, false);
  for (int64_t b = 0; b < B; ++b, begins += T, out += T) {
    check<IndexError>(lengths[b] >= 0 && lengths[b] <= T, "mark_spans: lengths must be 0 to ", T, ", got ",
                      lengths[b]);
    int64_t at = 0;
    for (int64_t k = 0; k < K; ++k) {
      const int64_t size = *sizes++, shift = *shifts++;
      check<IndexError>(size >= 0 && size <= INT32_MAX && shift >= 0 && shift <= INT64_MAX - T,
                        "mark_spans: sizes and shifts must not be below 0 or huge, got ", size, " and ",
                        shift);
      if (at >= T) continue;
      int64_t start = std::min(at + shift, T);
      while (start < T && !begins[start]) ++start;
      if (start + size <= lengths[b]) std::fill_n(out + start, size, true);
      at += size + size * ratio.above / ratio.below;
    }
  }
}

void choose_units(const bool* starts, const bool* able, const double* keys, const int64_t* counts, int64_t B,
                  int64_t T, bool* out) {
  struct Unit {
    double key;
    int64_t first, last, size;
  };
  std::vector<Unit> units;
  std::fill_n(out, B * T, false);
  for (int64_t b = 0; b < B; ++b, starts += T, able += T, keys += T, out += T) {
    units.clear();
    bool begun = false;  // what comes before the first start belongs to the first unit
    for (int64_t t = 0; t < T; ++t) {
      if (t == 0 || (starts[t] && begun)) units.push_back({keys[units.size()], t, t, 0});
      begun |= starts[t];
      units.back().last = t + 1;
      units.back().size += able[t];
    }
    std::sort(units.begin(), units.end(), [](const Unit& x, const Unit& y) { return x.key < y.key; });
    int64_t left = counts[b];
    for (const Unit& unit : units) {
      if (unit.size > left) continue;
      left -= unit.size;
      std::copy(able + unit.first, able + unit.last, out + unit.first);
    }
  }
}

void permutation_mask(const double* rank, const bool* plain, const bool* targets, int64_t B, int64_t T,
                      float* out) {
  std::vector<double> seen(static_cast<size_t>(T));
  for (int64_t b = 0; b < B; ++b, rank += T, plain += T, targets += T) {
    for (int64_t j = 0; j < T; ++j) seen[static_cast<size_t>(j)] = plain[j] ? rank[j] - 0.5 : rank[j];
    for (int64_t i = 0; i < T; ++i, out += T) {
      for (int64_t j = 0; j < T; ++j) out[j] = rank[i] <= seen[static_cast<size_t>(j)] ? 1.0f : 0.0f;
      out[i] = targets[i] ? 1.0f : 0.0f;
    }
  }
}

}  // namespace plmcore::text
