#include "plmcore/random.h"

#include <mutex>

#include "core/device.h"
#include "core/fork.h"
#include "ops/op.h"
#include "program/trace.h"

namespace plmcore {

namespace {
std::mutex g_mutex;
RandomState g_state;
[[maybe_unused]] const bool g_survives_fork = (hold_over_fork(g_mutex), true);
}  // namespace

void manual_seed(int64_t seed) { set_random_state({seed, 0, {}}); }

RandomState random_state() {
  if (Tracer* tracer = Tracer::current()) return {0, 0, tracer->random()};
  std::lock_guard lock(g_mutex);
  return g_state;
}
void set_random_state(const RandomState& state) {
  if (Tracer* tracer = Tracer::current()) {
    check<TraceError>(state.traced.defined(), "the random seed cannot be set while tracing; seed before running the program");
    tracer->random() = state.traced;
    return;
  }
  std::lock_guard lock(g_mutex);
  g_state = state;
}

Tensor next_random(Dim count, Device& device) {
  if (Tracer* tracer = Tracer::current()) {
    const Tensor now = tracer->random();
    tracer->random() = rng_advance(now, count);
    return now;
  }
  int64_t pair[2];
  {
    std::lock_guard lock(g_mutex);
    pair[0] = g_state.seed;
    pair[1] = g_state.offset;
    g_state.offset += count.value();
  }
  Tensor t = Tensor::empty({2}, DType::int64, device);
  device.copy_in(t.data(), pair, sizeof pair);
  return t;
}

RandomReplay::RandomReplay(const RandomState& state) : before_(random_state()) { set_random_state(state); }
RandomReplay::~RandomReplay() { set_random_state(before_); }

}  // namespace plmcore
