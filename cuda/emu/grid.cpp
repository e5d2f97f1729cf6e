// Runs the blocks of a grid one after the other, and the threads of a block in turns.
#include <algorithm>
#include <exception>
#include <numeric>

#include "emu/block.h"
#include "emu/options.h"
#include "emu/sanitizer.h"

namespace plmcore::emu {

namespace {

constexpr size_t kThreadLimit = 1024;

// The life of one CUDA thread. What it throws stops here: beneath lies the foot of its stack.
void run_thread() {
  acquire(&block->start_tag);
  try {
    block->body();
    for (const auto& group : current->groups)
      if (!group.empty()) fail("a thread returns with cp.async in flight");
    if (!current->open_copies.empty()) fail("a thread returns with cp.async that was never committed");
    current->state = State::returned;
    block->returned[current->at.warp] |= 1u << current->at.lane;
    if (--block->running && block->waiting == block->running) block->release_barrier();
  } catch (const Failure& f) {
    const Unwatched own;
    block->failure = std::make_unique<Failure>(f);
  } catch (const std::exception& e) {
    const Unwatched own;
    block->failure = std::make_unique<Failure>(Failure{e.what()});
  }
  release(&block->end_tag);
  release(&grid_end_tag);
  current->fiber.leave(true);
}

void enter(Thread& t) {
  current = &t;
  indices = &t.at;
  t.fiber.enter();
  current = nullptr;
  indices = nullptr;
  if (block->failure) throw *block->failure;
}

[[noreturn]] void report_deadlock(const Block& b) {
  std::string waiting;
  int shown = 0;
  for (const Thread* t : b.threads) {
    if (t->state == State::returned || shown++ == 4) continue;
    waiting += (waiting.empty() ? "thread " : ", thread ") + std::to_string(t->at.number) +
               (t->state == State::at_barrier ? " in __syncthreads at " : " in a warp operation at ") +
               t->place.file + ":" + std::to_string(t->place.line);
    if (shown == 4) break;
  }
  fail("deadlock: %d threads wait (%s), %zu have returned", b.running, waiting.c_str(),
       b.threads.size() - static_cast<size_t>(b.running));
}

// A warp runs ahead until it can go no further: with all warps in step, one missing barrier in the
// prototype's tests was never found.
void run_block(Block& b, Order order) {
  const size_t n = b.threads.size();
  std::vector<size_t> warps((n + 31) / 32);
  std::iota(warps.begin(), warps.end(), size_t{0});
  if (order == Order::reverse) std::reverse(warps.begin(), warps.end());
  while (b.running) {
    bool progress = false;
    if (order == Order::random)
      for (size_t i = warps.size() - 1; i > 0; --i) std::swap(warps[i], warps[random_bits() % (i + 1)]);
    for (const size_t warp : warps) {
      const size_t first = warp * 32, lanes = std::min<size_t>(32, n - first);
      for (bool again = true; again;) {
        again = false;
        const size_t start = order == Order::random ? random_bits() : 0;
        for (size_t i = 0; i < lanes; ++i) {
          Thread& t = *b.threads[first + (order == Order::reverse ? lanes - 1 - i : (i + start) % lanes)];
          if (t.state != State::ready) continue;
          enter(t);
          again = progress = true;
        }
        if (order == Order::random && random_bits() % 8 == 0) break;  // sometimes it is overtaken
      }
    }
    if (!progress && std::none_of(b.threads.begin(), b.threads.end(),
                                  [](const Thread* t) { return t->state == State::ready; }))
      report_deadlock(b);
  }
}

// Threads and their stacks are made once and serve every launch.
Thread& pooled_thread(size_t i) {
  static std::vector<std::unique_ptr<Thread>> pool;
  while (pool.size() <= i) pool.push_back(std::make_unique<Thread>());
  return *pool[i];
}

void check_launch(const char* kernel, dim3 grid, size_t threads, size_t dynamic_bytes) {
  if (!threads || threads > kThreadLimit)
    fail("%s: a block of %zu threads; 1 to 1024 are possible", kernel, threads);
  if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    fail("%s: no such grid: (%u, %u, %u)", kernel, grid.x, grid.y, grid.z);
  if (dynamic_bytes > options().shared_bytes)
    fail("%s: %zu bytes of dynamic shared memory, more than the %zu KiB of %s", kernel, dynamic_bytes,
         options().shared_bytes / 1024, options().device);
}

}  // namespace

void run_grid(const char* kernel, dim3 grid, dim3 size, size_t dynamic_bytes,
              const std::function<void()>& body) {
  const size_t threads = size_t{size.x} * size.y * size.z, blocks = size_t{grid.x} * grid.y * grid.z;
  const Order order = options().order;
  check_launch(kernel, grid, threads, dynamic_bytes);
  note_host();
  const Unwatched own;
  for (size_t i = 0; i < blocks; ++i) {
    const size_t k = order == Order::reverse ? blocks - 1 - i : i;
    const uint3 id{static_cast<unsigned>(k % grid.x), static_cast<unsigned>(k / grid.x % grid.y),
                   static_cast<unsigned>(k / grid.x / grid.y)};
    auto b = std::make_unique<Block>(kernel, body, threads, dynamic_bytes);
    for (size_t t = 0; t < threads; ++t) {
      Thread& thread = pooled_thread(t);
      const uint3 place{static_cast<unsigned>(t % size.x), static_cast<unsigned>(t / size.x % size.y),
                        static_cast<unsigned>(t / size.x / size.y)};
      thread.at = {
          place, id, size, grid, static_cast<int>(t % 32), static_cast<int>(t / 32), static_cast<int>(t)};
      thread.state = State::ready;
      thread.groups.clear();
      thread.open_copies.clear();
      thread.fiber.prepare(run_thread, static_cast<int>(t));
      b->threads.push_back(&thread);
    }
    release(&b->start_tag);
    block = b.get();
    std::unique_ptr<Failure> failure;
    try {
      run_block(*b, order);
    } catch (const Failure& f) {  // the other threads of the block are left where they stand
      failure = std::make_unique<Failure>(f);
    }
    block = nullptr;
    for (Thread* t : b->threads) t->fiber.forget();
    {
      const OnReaperClock reaper(&b->end_tag);
      b.reset();
    }
    if (failure) {
      acquire(&grid_end_tag);
      throw *failure;
    }
  }
  acquire(&grid_end_tag);
}

}  // namespace plmcore::emu
