// Device memory: pages that the host may not touch. They are open while the device works (DeviceTurn).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <mutex>

#include "core/kernel_args.h"

namespace plmcore::emu {

// Around the kernel of an op. While the op's work runs, ASan lets it touch the op's own tensors and
// workspace, the device's error word and no other device memory: the caching allocator rounds sizes up and
// keeps freed blocks, so a heap block's bounds say little about a tensor's. Outputs start full of NaNs: an
// element that nobody writes cannot look right because of what the block held before. It is this op's turn
// until the end: work of another thread between its fence and its kernel would be taken for a fault.
class OpFence {
 public:
  OpFence(cudaStream_t stream, const KernelArgs& args, void* error_word, size_t bytes);
  ~OpFence();
  OpFence(const OpFence&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> turn_;
  cudaStream_t stream_;
};

// While one lives, device memory can be touched. The caller holds the device's mutex.
class DeviceTurn {
 public:
  DeviceTurn();
  ~DeviceTurn();
  DeviceTurn(const DeviceTurn&) = delete;
};

size_t available_memory();
size_t total_memory();
bool allocate(size_t bytes, void** out);  // full of NaNs; false when the device has no more
void release_memory(void* p);

// Memory of the host that kernels reach as well (cudaHostAlloc).
void note_mapped(void* p, size_t bytes);
// Whether an argument of a kernel may be p: device memory, its end (an empty tensor), or mapped memory.
bool reachable(const void* p);

// A Failure unless [p, p + bytes) lies in one block of device memory.
void check_device_memory(const void* p, size_t bytes, const char* what);

}  // namespace plmcore::emu
