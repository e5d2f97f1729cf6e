// One stack per CUDA thread, and the switch between it and the host.
#pragma once

#include <cstddef>

namespace plmcore::emu {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;

  void prepare(void (*entry)(),
               int number);  // the next enter() calls `entry` on an empty stack; it must not return
  void enter();                               // host to fiber; comes back when the fiber leaves
  void leave(bool for_good = false);          // fiber to host
  void forget();  // after the last leave: TSan may drop its record of the fiber

 private:
  char* stack_ = nullptr;  // lowest address; below it lies a page that may not be touched
  void* place_ = nullptr;  // where the fiber stands: its stack pointer, or its ucontext_t
  void* shadow_ = nullptr;  // ASan's fake stack while the fiber rests
  void* clock_ = nullptr;  // TSan's fiber
};

// TSan only. Host code between begin and end is attributed to the host although a fiber runs it.
class OnHostClock {
 public:
  OnHostClock();
  ~OnHostClock();
  OnHostClock(const OnHostClock&) = delete;

 private:
  [[maybe_unused]] void* before_ = nullptr;
};

// TSan only. The end of a block is attributed to a third party, so that blocks stay unordered among each
// other.
class OnReaperClock {
 public:
  explicit OnReaperClock(const void* block_end);
  ~OnReaperClock();
  OnReaperClock(const OnReaperClock&) = delete;
};

void note_host();  // the calling thread is the host of the fibers that it will enter

}  // namespace plmcore::emu
