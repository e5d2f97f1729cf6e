#include "emu/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "emu/sanitizer.h"

#if !defined(__x86_64__) || defined(PLM_EMU_UCONTEXT)
#define PLM_EMU_PORTABLE_SWITCH 1
#include <ucontext.h>
#endif

namespace plmcore::emu {

namespace {

#ifdef PLM_EMU_ASAN
constexpr size_t kStack = 256 * 1024;  // instrumented frames are larger
#else
constexpr size_t kStack = 64 * 1024;
#endif
constexpr size_t kGuard = 4096;

thread_local void* host_place = nullptr;
[[maybe_unused]] thread_local const void* host_stack = nullptr;
[[maybe_unused]] thread_local size_t host_stack_size = 0;
[[maybe_unused]] thread_local void* host_clock = nullptr;
[[maybe_unused]] thread_local void* reaper_clock = nullptr;
[[maybe_unused]] thread_local void (*entry_of_new)() = nullptr;

[[maybe_unused]] char* map_stack(char* at) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0);
  void* p = mmap(at ? at - kGuard : nullptr, kStack + kGuard, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  mprotect(p, kGuard, PROT_NONE);
  return static_cast<char*>(p) + kGuard;
}

// ASan follows the change of stacks only when told about it: before by start_switch, after by finish_switch.
void run_entry() {
#ifdef PLM_EMU_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &host_stack, &host_stack_size);
#endif
  entry_of_new();
  __builtin_trap();
}

}  // namespace

#ifdef PLM_EMU_PORTABLE_SWITCH

static void switch_places(void** save, void* to) {
  swapcontext(static_cast<ucontext_t*>(*save), static_cast<ucontext_t*>(to));
}
static void* new_place(void* old, char* stack, size_t) {
  auto* c = old ? static_cast<ucontext_t*>(old) : new ucontext_t;
  getcontext(c);
  c->uc_stack = {.ss_sp = stack, .ss_flags = 0, .ss_size = kStack};
  c->uc_link = nullptr;
  makecontext(c, run_entry, 0);
  return c;
}
static void note_host_place() {
  static thread_local ucontext_t host;
  host_place = &host;
}
static void drop_place(void* place) { delete static_cast<ucontext_t*>(place); }

#else

// System V x86-64: the callee-saved registers go to the old stack, the new ones come from the other.
extern "C" void plm_emu_switch(void** save, void* to);
asm(R"(
.text
.globl plm_emu_switch
.hidden plm_emu_switch
.type plm_emu_switch,@function
plm_emu_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
.size plm_emu_switch,.-plm_emu_switch
)");

static void switch_places(void** save, void* to) { plm_emu_switch(save, to); }
static void* new_place(void*, char* stack, size_t offset) {
  void** sp = reinterpret_cast<void**>(stack + kStack - 64 - offset);
  *--sp = nullptr;  // run_entry's return address: it has none
  *--sp = reinterpret_cast<void*>(run_entry);
  for (int i = 0; i < 6; ++i) *--sp = nullptr;
  return sp;
}
static void note_host_place() {}
static void drop_place(void*) {}

#endif

Fiber::Fiber() : stack_(map_stack(nullptr)) {}
Fiber::~Fiber() {
  drop_place(place_);
  munmap(stack_ - kGuard, kStack + kGuard);
}

void Fiber::prepare(void (*entry)(), int number) {
  entry_of_new = entry;
  shadow_ = nullptr;
  allow(stack_, kStack);
#ifdef PLM_EMU_TSAN
  map_stack(stack_);  // a fresh mapping: TSan forgets what earlier fibers did here
  clock_ = __tsan_create_fiber(0);
#endif
  // Stacks that start at different offsets: otherwise all of them fight for the same cache sets.
  place_ = new_place(place_, stack_, static_cast<size_t>(number) * 320 % 32768);
}

void Fiber::enter() {
#ifdef PLM_EMU_ASAN
  void* shadow;
  __sanitizer_start_switch_fiber(&shadow, stack_, kStack);
#endif
#ifdef PLM_EMU_TSAN
  __tsan_switch_to_fiber(clock_, __tsan_switch_to_fiber_no_sync);
#endif
  switch_places(&host_place, place_);
#ifdef PLM_EMU_ASAN
  __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr);
#endif
}

void Fiber::leave([[maybe_unused]] bool for_good) {
#ifdef PLM_EMU_ASAN
  __sanitizer_start_switch_fiber(for_good ? nullptr : &shadow_, host_stack, host_stack_size);
#endif
#ifdef PLM_EMU_TSAN
  __tsan_switch_to_fiber(host_clock, __tsan_switch_to_fiber_no_sync);
#endif
  switch_places(&place_, host_place);
#ifdef PLM_EMU_ASAN
  __sanitizer_finish_switch_fiber(shadow_, nullptr, nullptr);
#endif
}

void Fiber::forget() {
#ifdef PLM_EMU_TSAN
  __tsan_destroy_fiber(clock_);
  clock_ = nullptr;
#endif
}

void note_host() {
  note_host_place();
#ifdef PLM_EMU_TSAN
  host_clock = __tsan_get_current_fiber();
  if (!reaper_clock) reaper_clock = __tsan_create_fiber(0);
#endif
}

#ifdef PLM_EMU_TSAN
OnHostClock::OnHostClock() : before_(__tsan_get_current_fiber()) {
  __tsan_switch_to_fiber(host_clock, __tsan_switch_to_fiber_no_sync);
}
OnHostClock::~OnHostClock() { __tsan_switch_to_fiber(before_, __tsan_switch_to_fiber_no_sync); }
OnReaperClock::OnReaperClock(const void* block_end) {
  __tsan_switch_to_fiber(reaper_clock, __tsan_switch_to_fiber_no_sync);
  acquire(block_end);
}
OnReaperClock::~OnReaperClock() { __tsan_switch_to_fiber(host_clock, __tsan_switch_to_fiber_no_sync); }
#else
OnHostClock::OnHostClock() {}
OnHostClock::~OnHostClock() {}
OnReaperClock::OnReaperClock(const void*) {}
OnReaperClock::~OnReaperClock() {}
#endif

}  // namespace plmcore::emu
