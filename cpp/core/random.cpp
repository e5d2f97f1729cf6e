#include "plmcore/random.h"

#include "core/device.h"
#include "core/recorder.h"

namespace plmcore {

namespace {
struct Place {
  int64_t seed = 0, offset = 0;
};
thread_local Place t_place;  // what other threads draw moves nobody else's stream
}  // namespace

void manual_seed(int64_t seed) { set_random_state({seed, 0, {}}); }

RandomState random_state() {
  if (TraceRecorder* trace = TraceRecorder::current()) return {0, 0, trace->random()};
  return {t_place.seed, t_place.offset, {}};
}
void set_random_state(const RandomState& state) {
  if (TraceRecorder* trace = TraceRecorder::current()) {
    check<TraceError>(state.traced.defined(),
                      "the random seed cannot be set while tracing; seed before running the program");
    trace->random() = state.traced;
    return;
  }
  t_place = {state.seed, state.offset};
}

Tensor next_random(Dim count) {
  if (TraceRecorder* trace = TraceRecorder::current()) return trace->draw(count);
  const int64_t pair[2] = {t_place.seed, t_place.offset};
  t_place.offset += count.value();
  Tensor t = Tensor::empty({2}, DType::int64);
  cpu().copy_in(t.data(), pair, sizeof pair);
  return t;
}

RandomReplay::RandomReplay(const RandomState& state) : before_(random_state()) { set_random_state(state); }
RandomReplay::~RandomReplay() { set_random_state(before_); }

}  // namespace plmcore
