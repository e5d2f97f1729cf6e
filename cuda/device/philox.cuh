// The words of the CPU's draws (core/philox.h): a thread makes one block of four and places its words where
// they belong. The (seed, offset) pair comes from the host, as an argument.
#pragma once

#include "core/philox.h"
#include "device/grid.h"
#include "device/kernel.h"

namespace plmcore::cuda {

struct Draw {
  uint64_t seed, offset;
};
inline Draw draw_of(const View& state) {
  const int64_t* pair = state.as<int64_t>();  // in host memory
  return {static_cast<uint64_t>(pair[0]), static_cast<uint64_t>(pair[1])};
}

// Blocks for n elements that take a word each: 64 elements share 16.
inline int64_t blocks_for(int64_t n) { return (n + 63) / 64 * 16; }

// f(words, i) for the blocks of n elements, with word w for the element i + 16 w.
template <class F>
__device__ __forceinline__ void for_random(Draw draw, int64_t n, F f) {
  for (int64_t b = first_of_thread(); b < (n + 63) / 64 * 16; b += threads_of_grid())
    f(philox(draw.seed, draw.offset + static_cast<uint64_t>(b)), b / 16 * 64 + b % 16);
}

}  // namespace plmcore::cuda
