#include "core/allocator.h"

#include <cstdlib>
#include <cstring>

#include "core/device.h"
#include "plmcore/error.h"
#include "plmcore/tensor.h"
#include "test.h"

using namespace plmcore;

namespace {
size_t g_left, g_held;
class Limited final : public CachingAllocator::Source {
 public:
  explicit Limited(size_t bytes) {
    g_left = bytes;
    g_held = 0;
  }
  void* get(size_t n) override {
    if (n > g_left) return nullptr;
    g_left -= n;
    g_held += n;
    return std::aligned_alloc(64, n);
  }
  void put(void* p, size_t n) override {
    g_left += n;
    g_held -= n;
    std::free(p);
  }
  size_t available() override { return g_left; }
};
// An allocator lives as long as the process: its lock is held over every later fork.
CachingAllocator& make_allocator(size_t bytes) { return *new CachingAllocator("test", *new Limited(bytes)); }
}  // namespace

TEST(allocator_reuses_blocks) {
  CachingAllocator& a = make_allocator(64 << 20);
  void* p = a.allocate(1000);
  std::memset(p, 1, 1000);
  CHECK_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
  a.free(p, 1000);
  CHECK(a.allocate(1024) == p);  // the same size class
  a.free(p, 1024);
  const MemoryStats s = a.stats();
  CHECK_EQ(s.in_use, 0u);
  CHECK_EQ(s.peak, CachingAllocator::block_size(1000));
  CHECK_EQ(s.reserved, g_held);
  CHECK_EQ(s.allocations, 2u);
  CHECK_EQ(s.system_allocations, 1u);
  a.trim();
  CHECK_EQ(g_held, 0u);
  CHECK_EQ(a.stats().reserved, 0u);
}

TEST(allocator_block_sizes) {
  size_t before = 0;
  for (size_t n : {0, 1, 63, 64, 65, 4096, 4097, 5000, 100000, 1 << 20, (2 << 20) - 1, 2 << 20, 5 << 20}) {
    const size_t block = CachingAllocator::block_size(n);
    CHECK(block >= n && block % 64 == 0 && block >= before);
    CHECK(n < 256 || block <= n + n / 4 + 64);  // little is wasted
    CHECK_EQ(CachingAllocator::block_size(block), block);
    before = block;
  }
}

TEST(allocator_splits_and_joins_large_blocks) {
  constexpr size_t MB = 1 << 20;
  CachingAllocator& a = make_allocator(1024 * MB);
  char* whole = static_cast<char*>(a.allocate(101 * MB));  // slabs are whole pages of 2 MB
  a.free(whole, 101 * MB);
  char* parts[10];
  for (size_t i = 0; i < 10; ++i) parts[i] = static_cast<char*>(a.allocate(10 * MB));
  for (size_t i = 0; i < 10; ++i) CHECK(parts[i] == whole + i * 10 * MB);  // in the room of the one before
  for (size_t i : {3, 5, 4}) a.free(parts[i], 10 * MB);
  CHECK(a.allocate(30 * MB) == parts[3]);
  CHECK(a.allocate(1 * MB) == parts[9] + 10 * MB);
  CHECK_EQ(a.stats().system_allocations, 1u);
  a.free(parts[3], 30 * MB);
  a.free(parts[9] + 10 * MB, 1 * MB);
  for (size_t i : {9, 0, 7, 2, 1, 8, 6}) a.free(parts[i], 10 * MB);
  CHECK_EQ(a.stats().in_use, 0u);
  CHECK(a.allocate(102 * MB) == whole);
  char* other = static_cast<char*>(a.allocate(300 << 10));
  a.free(whole, 102 * MB);
  a.trim();  // gives back what nobody uses, and no more
  CHECK_EQ(a.stats().reserved, g_held);
  CHECK(g_held >= 300 << 10 && g_held < 100 * MB);
  std::memset(other, 1, 300 << 10);
  a.free(other, 300 << 10);
  a.trim();
  CHECK_EQ(g_held, 0u);
}

TEST(allocator_refuses_and_goes_on) {
  CachingAllocator& a = make_allocator(1 << 20);
  CHECK_THROWS(MemoryError, "cannot allocate 3145728 bytes", a.allocate(3 << 20));
  CHECK_THROWS(MemoryError, "more than any machine has", a.allocate(SIZE_MAX / 2));
  void* p = a.allocate(512 << 10);
  a.free(p, 512 << 10);
  void* q = a.allocate(900 << 10);  // the cached block is given back to make room
  CHECK(q != nullptr);
  a.free(q, 900 << 10);
  a.trim();
  a.set_cap(100 << 10);
  CHECK_THROWS(MemoryError, "the cap set by set_memory_cap is 102400 bytes", a.allocate(200 << 10));
  p = a.allocate(50 << 10);
  a.free(p, 50 << 10);
  a.trim();
  CHECK_EQ(g_held, 0u);
}

TEST(allocator_counts_tensors) {
  const size_t before = cpu().allocator().stats().in_use;
  {
    const Tensor t = Tensor::zeros({1000, 1000}, DType::float32);
    CHECK_EQ(cpu().allocator().stats().in_use - before, CachingAllocator::block_size(4000000));
    CHECK_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  }
  CHECK_EQ(cpu().allocator().stats().in_use, before);
}
