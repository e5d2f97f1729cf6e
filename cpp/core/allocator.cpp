#include "core/allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "core/available_memory.h"
#include "core/fork.h"
#include "plmcore/error.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace plmcore {

namespace {
constexpr size_t kAlign = 64;
constexpr size_t kSmallLimit = 4096;       // classes of 64 bytes up to here
constexpr size_t kLarge = 256 << 10;       // from here on ranges of slabs, in steps of kGrain
constexpr size_t kGrain = 16 << 10;
constexpr size_t kPage = size_t{2} << 20;  // slabs from here on start at a 2 MB page
constexpr size_t kSlab = size_t{32} << 20;

// Under AddressSanitizer the part of a block that was not asked for, and all of a cached one, count as
// foreign memory; the sanitizer alone sees whole blocks.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kHides = true;
void hide(const void* p, size_t bytes) { __asan_poison_memory_region(p, bytes); }
void show(const void* p, size_t bytes) { __asan_unpoison_memory_region(p, bytes); }
#else
constexpr bool kHides = false;
void hide(const void*, size_t) {}
void show(const void*, size_t) {}
#endif
}  // namespace

// Small: multiples of 64. Medium: four steps per power of two. Large: multiples of 16 KB.
size_t CachingAllocator::block_size(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  if (bytes <= kSmallLimit) return (bytes + kAlign - 1) / kAlign * kAlign;
  if (bytes <= kLarge) {
    const size_t step = std::bit_floor(bytes - 1) / 4;
    return (bytes + step - 1) / step * step;
  }
  return (bytes + kGrain - 1) / kGrain * kGrain;
}

CachingAllocator::CachingAllocator(const char* device, Source& source) : device_(device), source_(source) {
  hold_over_fork(mutex_);
}

void* CachingAllocator::allocate(size_t bytes) {
  check<MemoryError>(bytes <= (size_t{1} << 46), device_, ": asked for ", bytes,
                     " bytes, more than any machine has");
  const size_t block = block_size(bytes);
  std::lock_guard lock(mutex_);
  void* p = nullptr;
  if (block > kLarge) {
    p = large_block(block, bytes);
  } else if (auto& list = block <= kSmallLimit ? small_[block / kAlign - 1] : medium_[block]; !list.empty()) {
    p = list.back();
    list.pop_back();
  } else {
    p = reserve(block, bytes);
  }
  if (kHides && source_.is_host()) {
    show(p, bytes);
    hide(static_cast<char*>(p) + bytes, block - bytes);
  }
  ++stats_.allocations;
  stats_.in_use += block;
  stats_.peak = std::max(stats_.peak, stats_.in_use);
  return p;
}

void* CachingAllocator::large_block(size_t block, size_t bytes) {
  if (void* p = large_.take(block)) return p;
  // A slab with room for others, where the limits leave that much.
  size_t slab = std::max(kSlab, (block + kPage - 1) / kPage * kPage);
  if ((stats_.cap && stats_.reserved + slab > stats_.cap) || slab > source_.available() / 4) slab = block;
  void* p = reserve(slab, bytes);
  if (kHides && source_.is_host()) hide(p, slab);
  large_.add(p, slab);
  return large_.take(block);
}

void* CachingAllocator::reserve(size_t block, size_t bytes) {
  auto refuse = [&](const char* limit, size_t size) {
    fail<MemoryError>(device_, ": cannot allocate ", bytes, " bytes: ", limit, " ", size, " bytes, in use ",
                      stats_.in_use, " bytes");
  };
  if (stats_.cap && stats_.reserved + block > stats_.cap) {
    trim_locked();
    if (stats_.reserved + block > stats_.cap) refuse("the cap set by set_memory_cap is", stats_.cap);
  }
  if (block >= kPage && block > source_.available()) {  // asked only for blocks that could matter
    trim_locked();
    if (const size_t left = source_.available(); block > left) refuse("the system can still give", left);
  }
  void* p = source_.get(block);
  if (!p) {
    trim_locked();
    p = source_.get(block);
    if (!p) refuse("the system refused; it reports as available", source_.available());
  }
  stats_.reserved += block;
  ++stats_.system_allocations;
  return p;
}

void CachingAllocator::free(void* p, size_t bytes) {
  const size_t block = block_size(bytes);
  std::lock_guard lock(mutex_);
  stats_.in_use -= block;
  if (kHides && source_.is_host()) hide(p, block);
  if (block > kLarge) large_.put(p);
  else if (block > kSmallLimit) medium_[block].push_back(p);
  else small_[block / kAlign - 1].push_back(p);
}

void CachingAllocator::trim() {
  std::lock_guard lock(mutex_);
  trim_locked();
}
void CachingAllocator::trim_locked() {
  auto put = [&](void* p, size_t block) {
    source_.put(p, block);
    stats_.reserved -= block;
  };
  auto put_all = [&](std::vector<void*>& list, size_t block) {
    for (void* p : list) put(p, block);
    list.clear();
  };
  for (int i = 0; i < kSmallClasses; ++i) put_all(small_[i], (i + 1) * kAlign);
  for (auto& [block, list] : medium_) put_all(list, block);
  large_.release(put);
}

MemoryStats CachingAllocator::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}
void CachingAllocator::reset_peak() {
  std::lock_guard lock(mutex_);
  stats_.peak = stats_.in_use;
}
void CachingAllocator::set_cap(size_t bytes) {
  std::lock_guard lock(mutex_);
  stats_.cap = bytes;
}

// ---- system memory ----

namespace {
void* get_memory(size_t bytes) {  // blocks of the host
  if (bytes < kPage) return std::aligned_alloc(kAlign, bytes);
  // One page more, so that the block can start at a 2 MB boundary; the surplus is given back.
  char* p = static_cast<char*>(
      mmap(nullptr, bytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (p == MAP_FAILED) return nullptr;
  char* start = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(p) + kPage - 1) / kPage * kPage);
  if (start > p) munmap(p, start - p);
  if (char* end = start + bytes; end < p + bytes + kPage) munmap(end, p + bytes + kPage - end);
  madvise(start, bytes, MADV_HUGEPAGE);
  return start;
}
void put_memory(void* p, size_t bytes) {
  show(p, bytes);
  if (bytes < kPage) std::free(p);
  else munmap(p, bytes);
}
}  // namespace

CachingAllocator::Source& system_memory() {
  class System final : public CachingAllocator::Source {
   public:
    void* get(size_t bytes) override { return get_memory(bytes); }
    void put(void* p, size_t bytes) override { put_memory(p, bytes); }
    size_t available() override { return available_memory(); }
    bool is_host() const override { return true; }
  };
  static System* system = new System;
  return *system;
}

}  // namespace plmcore
