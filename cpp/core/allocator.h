// Caching allocator: freed blocks are kept and handed out again, small ones by size class, large ones as
// ranges of slabs. One per device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/ranges.h"

namespace plmcore {

struct MemoryStats {
  size_t in_use = 0;       // bytes of live blocks
  size_t peak = 0;         // highest in_use since the last reset
  size_t reserved = 0;     // bytes held from the system, live or cached
  size_t cap = 0;          // 0: no cap
  uint64_t allocations = 0, system_allocations = 0;
};

class CachingAllocator {
 public:
  // The source of raw memory: 64-byte aligned blocks, nullptr when there is none left.
  class Source {
   public:
    virtual void* get(size_t bytes) = 0;
    virtual void put(void* p, size_t bytes) = 0;
    virtual size_t available() = 0;  // bytes that the system could still give
    virtual bool is_host() const { return false; }

   protected:
    ~Source() = default;
  };
  CachingAllocator(const char* device, Source& source);  // all three live as long as the process

  void* allocate(size_t bytes);  // MemoryError that states the request, the limit and what is in use
  void free(void* p, size_t bytes);  // with the size that was asked for
  void trim();  // gives cached blocks back to the system
  MemoryStats stats() const;
  void reset_peak();
  void set_cap(size_t bytes);
  static size_t block_size(size_t bytes);  // what a request occupies

 private:
  void* large_block(size_t block, size_t bytes);
  void* reserve(size_t block, size_t bytes);
  void trim_locked();

  const char* device_;
  Source& source_;
  mutable std::mutex mutex_;
  static constexpr int kSmallClasses = 64;
  std::vector<void*> small_[kSmallClasses];
  std::map<size_t, std::vector<void*>> medium_;
  Ranges large_;
  MemoryStats stats_;
};

CachingAllocator::Source& system_memory();  // malloc for small blocks, 2 MB pages for large ones

}  // namespace plmcore
