// What a test may choose about a run. Read from the environment at every launch, so that one process can try
// several.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plmcore::emu {

// The order in which warps, their lanes and the blocks of a grid get their turn.
enum class Order { forward, reverse, random };

struct Options {
  Order order;  // PLMCORE_EMU_ORDER: forward, reverse, random
  bool async;  // PLMCORE_EMU_ASYNC=0: a launch runs at once, so that a failure names the call that caused it
  const char* device;  // PLMCORE_EMU_DEVICE: sm_86, sm_80, sm_90
  int major, minor;  // its compute capability
  size_t shared_bytes;  // that a block may have
};
Options options();

uint32_t random_bits();  // seeded by PLMCORE_EMU_SEED when the first number is drawn

}  // namespace plmcore::emu
