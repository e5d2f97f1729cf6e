#include "emu/memory.h"

#include <cstdlib>
#include <cstring>
#include <map>

#include "emu/failure.h"
#include "emu/sanitizer.h"
#include "emu/stream.h"

namespace plmcore::emu {

namespace {

constexpr size_t kDeviceMemory = size_t{256} << 20;  // what the emulated device claims to have
size_t used_memory = 0;

std::map<const char*, size_t>& blocks() {
  static auto* all = new std::map<const char*, size_t>;
  return *all;
}
// The block that holds p, or the end.
auto block_of(const void* p) {
  auto it = blocks().upper_bound(static_cast<const char*>(p));
  if (it == blocks().begin()) return blocks().end();
  --it;
  return static_cast<const char*>(p) < it->first + it->second ? it : blocks().end();
}

}  // namespace

size_t available_memory() { return kDeviceMemory - used_memory; }
size_t total_memory() { return kDeviceMemory; }

bool allocate(size_t bytes, void** out) {
  *out = nullptr;
  if (bytes > kDeviceMemory - used_memory) return false;
  if (posix_memalign(out, 256, bytes ? bytes : 1)) return false;
  std::memset(*out, 0xff, bytes);
  blocks()[static_cast<char*>(*out)] = bytes;
  used_memory += bytes;
  return true;
}

void release_memory(void* p) {
  const auto it = blocks().find(static_cast<char*>(p));
  if (it == blocks().end()) fail("cudaFree of an address that cudaMalloc did not return");
  used_memory -= it->second;
  blocks().erase(it);
  std::free(p);
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
