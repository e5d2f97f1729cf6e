#include "emu/memory.h"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <new>

#include "emu/failure.h"
#include "emu/sanitizer.h"
#include "emu/stream.h"

namespace plmcore::emu {

namespace {

constexpr size_t kDeviceMemory = size_t{256} << 20;  // what the emulated device claims to have
constexpr size_t kArena = 2 * kDeviceMemory;         // addresses: there are gaps between blocks
constexpr size_t kGap = 256;                         // between blocks, and what they are aligned to
constexpr size_t kPage = 4096;
size_t used_memory = 0, opened = 0;                  // opened: bytes of the arena that a turn opens
int turns = 0;

using Blocks = std::map<const char*, size_t>;
Blocks& blocks() {
  static auto* all = new Blocks;
  return *all;
}
Blocks& mapped() {
  static auto* all = new Blocks;
  return *all;
}
char* arena() {
  static char* const base = [] {
    void* p = mmap(nullptr, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(p);
  }();
  return base;
}
void permit(int how) {
  if (opened && mprotect(arena(), opened, how)) fail("mprotect of the device's memory failed");
}
// The block of a list that holds p, or the end.
auto block_of(const void* p, Blocks& list = blocks()) {
  auto it = list.upper_bound(static_cast<const char*>(p));
  if (it == list.begin()) return list.end();
  --it;
  return static_cast<const char*>(p) < it->first + it->second ? it : list.end();
}
// The first gap between blocks that has room, with kGap around; null without one.
char* find_room(size_t bytes) {
  char* at = arena() + kGap;
  for (const auto& [p, n] : blocks()) {
    if (at + bytes + kGap <= p) break;
    at = arena() + (static_cast<size_t>(p + n - arena()) + 2 * kGap - 1) / kGap * kGap;
  }
  return at + bytes + kGap <= arena() + kArena ? at : nullptr;
}

}  // namespace

DeviceTurn::DeviceTurn() {
  if (turns++ == 0) permit(PROT_READ | PROT_WRITE);
}
DeviceTurn::~DeviceTurn() {
  if (--turns == 0) permit(PROT_NONE);
}

size_t available_memory() { return kDeviceMemory - used_memory; }
size_t total_memory() { return kDeviceMemory; }

bool allocate(size_t bytes, void** out) {
  *out = nullptr;
  if (bytes > kDeviceMemory - used_memory) return false;
  char* p = find_room(bytes ? bytes : 1);
  if (!p) return false;
  const size_t end = (static_cast<size_t>(p - arena()) + bytes + kGap + kPage - 1) / kPage * kPage;
  if (end > opened) {
    if (turns && mprotect(arena() + opened, end - opened, PROT_READ | PROT_WRITE)) return false;
    opened = end;
  }
  const DeviceTurn turn;
  forbid(p - kGap, kGap);
  allow(p, bytes);
  forbid(p + bytes, kGap);
  std::memset(p, 0xff, bytes);
  blocks()[p] = bytes ? bytes : 1;
  used_memory += bytes ? bytes : 1;
  *out = p;
  return true;
}

void release_memory(void* p) {
  const auto it = blocks().find(static_cast<char*>(p));
  if (it == blocks().end()) fail("cudaFree of an address that cudaMalloc did not return");
  used_memory -= it->second;
  forbid(p, it->second);
  blocks().erase(it);
}

void note_mapped(void* p, size_t bytes) { mapped()[static_cast<char*>(p)] = bytes; }
bool reachable(const void* p) {
  if (block_of(p) != blocks().end() || block_of(p, mapped()) != mapped().end()) return true;
  return block_of(static_cast<const char*>(p) - 1) != blocks().end();
}

void check_device_memory(const void* p, size_t bytes, const char* what) {
  if (!bytes) return;
  const auto it = block_of(p);
  if (it == blocks().end() || static_cast<const char*>(p) + bytes > it->first + it->second)
    fail("%s %zu bytes outside of device memory", what, bytes);
  if (forbidden(p, bytes)) fail("%s %zu bytes outside of the op's own tensors", what, bytes);
}

OpFence::OpFence(cudaStream_t stream, const KernelArgs& args, void* error_word, size_t word_bytes)
    : turn_(device_mutex()), stream_(stream) {
  std::vector<std::pair<char*, size_t>> allowed = {{static_cast<char*>(error_word), word_bytes}}, outputs;
  auto bytes = [](const View& v) { return static_cast<size_t>(v.numel) * size_of(v.dtype); };
  for (int i = 0; i < args.n_in; ++i)
    if (args.in[i] && block_of(args.in[i].data) != blocks().end())  // not one that stays on the host
      allowed.push_back({args.in[i].as<char>(), bytes(args.in[i])});
  for (int i = 0; i < args.n_out; ++i) outputs.push_back({args.out[i].as<char>(), bytes(args.out[i])});
  if (args.shared)  // a block may hold other tensors beside the workspace
    outputs.push_back({args.shared, static_cast<size_t>(args.private_ - args.shared) + args.private_bytes});
  guarded([&] {
    enqueue(stream, [=] {
      for (const auto& [p, n] : outputs) std::memset(p, 0xff, n);
      for (const auto& [p, n] : blocks()) forbid(const_cast<char*>(p), n);
      for (const auto& [p, n] : allowed) allow(p, n);
      for (const auto& [p, n] : outputs) allow(p, n);
    });
  });
}
OpFence::~OpFence() {
  guarded([&] {
    enqueue(stream_, [] {
      for (const auto& [p, n] : blocks()) allow(const_cast<char*>(p), n);
    });
  });
}

}  // namespace plmcore::emu
