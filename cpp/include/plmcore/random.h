// Counter-based random numbers (Philox 4x32-10). A random op takes its (seed, offset) as an int64 [2] tensor;
// the offset advances by the number of elements drawn, so a seed gives the same bits for any number of
// threads, and recomputation replays them. Each thread has a generator of its own, which begins at (0, 0);
// the functions here speak of the calling thread's.
#pragma once

#include <cstdint>

#include "plmcore/tensor.h"

namespace plmcore {

struct RandomState {
  int64_t seed = 0, offset = 0;
  Tensor traced;  // inside a trace: the value that holds (seed, offset)
};

void manual_seed(int64_t seed);
RandomState random_state();
void set_random_state(const RandomState& state);

// The (seed, offset) of the next `count` numbers, as a tensor for a random op, on the host wherever that op
// runs; advances the generator.
Tensor next_random(Dim count);
Tensor rng_advance(const Tensor& state, Dim by);  // what that does to the pair (seed, offset), as an op

class RandomReplay {  // the generator starts from `state` for its lifetime, then continues where it was
 public:
  explicit RandomReplay(const RandomState& state);
  ~RandomReplay();
  RandomReplay(const RandomReplay&) = delete;

 private:
  RandomState before_;
};

}  // namespace plmcore
