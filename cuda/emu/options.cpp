#include "emu/options.h"

#include <cstdlib>
#include <cstring>

#include "emu/failure.h"

namespace plmcore::emu {

namespace {
// The least that a GPU of the plug-in has comes first.
constexpr struct {
  const char* name;
  int major, minor;
  size_t shared_kilobytes;
} kDevices[] = {{"sm_86", 8, 6, 99}, {"sm_80", 8, 0, 163}, {"sm_90", 9, 0, 227}};

void choose_device(const char* name, Options* chosen) {
  for (const auto& d : kDevices)
    if (std::strcmp(name, d.name) == 0) {
      chosen->device = d.name;
      chosen->major = d.major;
      chosen->minor = d.minor;
      chosen->shared_bytes = d.shared_kilobytes * 1024;
      return;
    }
  fail("PLMCORE_EMU_DEVICE must be sm_86, sm_80 or sm_90, got '%s'", name);
}
}  // namespace

Options options() {
  Options chosen{.order = Order::forward, .async = true};
  const char* device = std::getenv("PLMCORE_EMU_DEVICE");
  choose_device(device && *device ? device : kDevices[0].name, &chosen);
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
