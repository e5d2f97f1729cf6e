#include "emu/options.h"

#include <cstdlib>
#include <cstring>

#include "emu/failure.h"

namespace plmcore::emu {

Options options() {
  Options chosen{Order::forward, true};
  if (const char* order = std::getenv("PLMCORE_EMU_ORDER"); order && *order) {
    if (std::strcmp(order, "forward") == 0) chosen.order = Order::forward;
    else if (std::strcmp(order, "reverse") == 0) chosen.order = Order::reverse;
    else if (std::strcmp(order, "random") == 0) chosen.order = Order::random;
    else fail("PLMCORE_EMU_ORDER must be forward, reverse or random, got '%s'", order);
  }
  if (const char* async = std::getenv("PLMCORE_EMU_ASYNC")) chosen.async = std::strcmp(async, "0") != 0;
  return chosen;
}

uint32_t random_bits() {
  static uint64_t state = [] {
    const char* seed = std::getenv("PLMCORE_EMU_SEED");
    return (seed ? std::strtoull(seed, nullptr, 10) : 1) * 0x9E3779B97F4A7C15ull + 1;
  }();
  state ^= state << 13;  // xorshift64
  state ^= state >> 7;
  state ^= state << 17;
  return static_cast<uint32_t>(state >> 32);
}

}  // namespace plmcore::emu
