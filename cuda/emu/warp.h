// Warp operations: shuffles, votes, matches. Each is one `collective`: the last lane to arrive does the work
// for all.
#pragma once

#include <cstring>
#include <type_traits>

#include "emu/block.h"

namespace plmcore::emu {

enum Operation : int {
  kShuffle = 1,
  kShuffleXor,
  kShuffleDown,
  kShuffleUp,
  kBallot,
  kMatch,
  kSync,
  kLoadMatrix,
  kLoadMatrixTrans,
  kProduct
};

template <class F>
void for_lanes(uint32_t mask, F f) {
  for (int i = 0; i < 32; ++i)
    if (mask >> i & 1) f(i);
}

template <class T>
struct Exchange {
  T value;
  int source;
  T result;
};
template <class T>
T shuffle(uint32_t mask, T value, int source, Operation operation, Place place) {
  static_assert(std::is_trivially_copyable_v<T>);
  Exchange<T> mine{value, source, value};
  collective(
      mask, operation, &mine,
      [](void** lane, uint32_t members) {
        for_lanes(members, [&](int i) {
          auto* e = static_cast<Exchange<T>*>(lane[i]);
          if (!(members >> e->source & 1))
            fail("a shuffle reads lane %d, which is not in mask %08x", e->source, members);
          e->result = static_cast<Exchange<T>*>(lane[e->source])->value;
        });
      },
      false, place);
  return mine.result;
}

// Lanes are exchanged within segments of `width`; a source outside of the segment gives the lane its own
// value.
struct Segment {
  int lane, begin, end;
  explicit Segment(int width) : lane(indices->lane), begin(lane & ~(width - 1)), end(begin + width) {
    if (width <= 0 || width > 32 || (width & (width - 1)))
      fail("a shuffle's width must be a power of two up to 32, got %d", width);
  }
  int or_own(int source) const { return source >= begin && source < end ? source : lane; }
};
template <class T>
T shuffle_from(Place place, uint32_t mask, T value, int source, int width = 32) {
  return shuffle(mask, value, Segment(width).begin + (source & (width - 1)), kShuffle, place);
}
template <class T>
T shuffle_xor(Place place, uint32_t mask, T value, int bits, int width = 32) {
  const Segment s(width);
  const int source = s.lane ^ bits;  // an earlier segment may be read, a later one not
  return shuffle(mask, value, source < s.end ? source : s.lane, kShuffleXor, place);
}
template <class T>
T shuffle_down(Place place, uint32_t mask, T value, int delta, int width = 32) {
  const Segment s(width);
  return shuffle(mask, value, s.or_own(s.lane + delta), kShuffleDown, place);
}
template <class T>
T shuffle_up(Place place, uint32_t mask, T value, int delta, int width = 32) {
  const Segment s(width);
  return shuffle(mask, value, s.or_own(s.lane - delta), kShuffleUp, place);
}

struct Vote {
  bool yes;
  uint32_t result;
};
inline uint32_t ballot(Place place, uint32_t mask, bool yes) {
  Vote mine{yes, 0};
  collective(
      mask, kBallot, &mine,
      [](void** lane, uint32_t members) {
        uint32_t result = 0;
        for_lanes(members,
                  [&](int i) { result |= static_cast<uint32_t>(static_cast<Vote*>(lane[i])->yes) << i; });
        for_lanes(members, [&](int i) { static_cast<Vote*>(lane[i])->result = result; });
      },
      false, place);
  return mine.result;
}

template <class T>
struct Match {
  T value;
  uint32_t result;
};
template <class T>
uint32_t match_any(Place place, uint32_t mask, T value) {
  Match<T> mine{value, 0};
  collective(
      mask, kMatch, &mine,
      [](void** lane, uint32_t members) {
        for_lanes(members, [&](int i) {
          auto* a = static_cast<Match<T>*>(lane[i]);
          for_lanes(members, [&](int j) {
            if (std::memcmp(&a->value, &static_cast<Match<T>*>(lane[j])->value, sizeof(T)) == 0)
              a->result |= 1u << j;
          });
        });
      },
      false, place);
  return mine.result;
}

inline void sync_warp(Place place, uint32_t mask = 0xffffffffu) {
  char nothing;
  collective(mask, kSync, &nothing, [](void**, uint32_t) {}, true, place);
}

}  // namespace plmcore::emu
