#include "emu/block.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "emu/sanitizer.h"

namespace plmcore::emu {

constinit thread_local Indices* indices = nullptr;
constinit thread_local Thread* current = nullptr;
constinit thread_local Block* block = nullptr;
char grid_end_tag;

constexpr size_t kStaticSharedLimit = 48 * 1024;

bool Place::operator==(const Place& o) const {
  return line == o.line && column == o.column && std::strcmp(file, o.file) == 0;
}

void fail(const char* format, ...) {
  const Unwatched own;
  char text[512];
  va_list values;
  va_start(values, format);
  int n = std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  std::string whole(text, n < 0 ? 0 : std::min<size_t>(static_cast<size_t>(n), sizeof text - 1));
  if (indices) {
    std::snprintf(text, sizeof text, "; thread (%u, %u, %u) of block (%u, %u, %u)", indices->thread.x,
                  indices->thread.y, indices->thread.z, indices->block.x, indices->block.y, indices->block.z);
    whole += text;
  }
  if (block) whole += std::string("; in ") + block->kernel;
  throw Failure{whole};
}

Block::Block(const char* name, const std::function<void()>& f, size_t n, size_t dynamic_bytes)
    : kernel(name),
      body(f),
      running(static_cast<int>(n)),
      returned((n + 31) / 32),
      meetings((n + 31) / 32 * 32) {
  if (dynamic_bytes) dynamic_shared = poisoned(dynamic_bytes, &start_tag);
}
Block::~Block() {
  for (auto& [key, array] : shared) std::free(array.data);
  std::free(dynamic_shared);
}

// Every array has a heap block of its own: ASan then sees its bounds, TSan its accesses. Where nothing was
// written a float reads as NaN, so a missing write or wait cannot give the right answer by luck.
void* poisoned(size_t bytes, const void* tag) {
  const OnHostClock host;
  void* p = std::aligned_alloc(128, (bytes + 127) / 128 * 128);
  if (!p) throw std::bad_alloc();
  std::memset(p, 0xff, bytes);
  forbid(static_cast<char*>(p) + bytes, (bytes + 127) / 128 * 128 - bytes);
  release(tag);
  return p;
}

// A thread may be left standing here for good, when another one fails: what it did so far must count as done.
void suspend() {
  release(&block->end_tag);
  release(&grid_end_tag);
  current->fiber.leave();
}

// ---- barriers ----

void Block::release_barrier() {
  const Thread* first = nullptr;
  int votes = 0;
  for (const Thread* t : threads) {
    if (t->state != State::at_barrier) continue;
    if (!first) first = t;
    votes += t->vote;
    if (!(t->place == first->place))
      fail("divergent __syncthreads: thread %d waits at %s:%d, thread %d at %s:%d", first->at.number,
           first->place.file, first->place.line, t->at.number, t->place.file, t->place.line);
  }
  if (running < static_cast<int>(threads.size()))
    fail("__syncthreads at %s:%d, but %zu of %zu threads have returned", first->place.file, first->place.line,
         threads.size() - static_cast<size_t>(running), threads.size());
  for (Thread* t : threads) {
    t->state = State::ready;
    t->votes = votes;
  }
  waiting = 0;
  ++order.round;
}

int sync_block(bool vote, Place place) {
  current->state = State::at_barrier;
  current->place = place;
  current->vote = vote;
  const void* tag = block->order.now();
  release(tag);
  if (++block->waiting == block->running) block->release_barrier();
  suspend();
  acquire(tag);
  return current->votes;
}

// ---- warp operations ----

void collective(uint32_t mask, int operation, void* brought, Combine combine, bool orders_memory,
                Place place) {
  Thread& me = *current;
  const int warp = me.at.warp, base = warp * 32, threads = static_cast<int>(block->threads.size());
  if (!(mask >> me.at.lane & 1))
    fail("%s:%d: lane %d calls a warp operation with mask %08x, which leaves it out", place.file, place.line,
         me.at.lane, mask);
  const uint32_t members =
      base + 32 > threads ? mask & ((1u << (threads - base)) - 1) : mask;  // lanes that exist
  me.state = State::in_warp_operation;
  me.place = place;
  me.brought = brought;
  me.mask = mask;

  Meeting& meeting = block->meetings[base + __builtin_ctz(members)];
  const void* tag = meeting.order.now();
  if (orders_memory) release(tag);
  if (!meeting.arrived) {
    meeting.mask = mask;
    meeting.operation = operation;
    meeting.place = place;
  } else if (meeting.operation != operation || meeting.mask != mask || !(meeting.place == place))
    fail("divergent warp operation: lane %d at %s:%d (mask %08x), other lanes wait at %s:%d (mask %08x)",
         me.at.lane, place.file, place.line, mask, meeting.place.file, meeting.place.line, meeting.mask);
  meeting.arrived |= 1u << me.at.lane;
  if (meeting.arrived == members) {
    void* lane[32];
    for (int i = 0; i < 32; ++i) lane[i] = members >> i & 1 ? block->threads[base + i]->brought : nullptr;
    meeting.arrived = 0;
    ++meeting.order.round;
    {
      const Unwatched own;
      combine(lane, members);
    }
    for (int i = 0; i < 32; ++i)
      if (members >> i & 1) block->threads[base + i]->state = State::ready;
  } else if (const uint32_t gone = members & block->returned[warp])
    fail("%s:%d: mask %08x names lane %d, which has returned", place.file, place.line, mask,
         __builtin_ctz(gone));
  suspend();
  if (orders_memory) acquire(tag);
}

// ---- shared memory ----

void* shared_array(const void* key, size_t bytes, const char* name) {
  const Unwatched own;
  auto it = block->shared.find(key);
  if (it == block->shared.end()) {
    block->shared_bytes += bytes;
    if (block->shared_bytes > kStaticSharedLimit)
      fail("static shared memory of %zu bytes at '%s', more than 48 KiB", block->shared_bytes, name);
    it = block->shared.emplace(key, SharedArray{poisoned(bytes, key), bytes}).first;
  }
  acquire(key);
  return it->second.data;
}

void* dynamic_shared() {
  if (!block->dynamic_shared) fail("dynamic shared memory is used, but the launch gave none");
  return block->dynamic_shared;
}

void fence() {
  static char tag;
  release(&tag);
  acquire(&tag);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// ---- asynchronous copies: what was there is gone at once, what comes arrives as late as the program allows
// ----

void cp_async(void* to, const void* from, int bytes, bool there) {
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % static_cast<uintptr_t>(bytes))
    fail("cp.async of %d bytes from or to an address that is not a multiple of it", bytes);
  saw_write(to, static_cast<size_t>(bytes));  // it may arrive at once, over what others still read
  const Unwatched own;
  std::memset(to, 0xff, static_cast<size_t>(bytes));
  current->open_copies.push_back({to, there ? from : nullptr, bytes});
}
void cp_commit() {
  const Unwatched own;
  current->groups.push_back(std::move(current->open_copies));
  current->open_copies.clear();
}
void cp_wait(int open_groups) {
  while (static_cast<int>(current->groups.size()) > open_groups) {
    for (const Thread::Copy& c : current->groups.front()) {
      if (c.from) saw_read(c.from, static_cast<size_t>(c.bytes));
      saw_write(c.to, static_cast<size_t>(c.bytes));
      const Unwatched own;
      if (c.from) std::memcpy(c.to, c.from, static_cast<size_t>(c.bytes));
      else std::memset(c.to, 0, static_cast<size_t>(c.bytes));
    }
    const Unwatched own;
    current->groups.erase(current->groups.begin());
  }
}

}  // namespace plmcore::emu
