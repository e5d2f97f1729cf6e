// The part of the CUDA runtime API that the plug-in and the tests call.
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>

#include "emu/failure.h"
#include "emu/memory.h"
#include "emu/options.h"
#include "emu/stream.h"

namespace plmcore::emu {

namespace {

struct Event {
  uint64_t recorded = 0, reached = 0;
};

void copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyDeviceToHost) check_device_memory(to, bytes, "a copy writes");
  if (kind != cudaMemcpyHostToDevice) check_device_memory(from, bytes, "a copy reads");
  const DeviceTurn turn;
  std::memmove(to, from, bytes);
}

}  // namespace

}  // namespace plmcore::emu

using namespace plmcore::emu;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaSetDevice(int index) { return index == 0 ? cudaSuccess : cudaErrorInvalidValue; }
cudaError_t cudaGetLastError() { return cudaSuccess; }  // a launch returns its own error
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = options().major; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor: *value = options().minor; return cudaSuccess;
    case cudaDevAttrMultiProcessorCount: *value = 4; return cudaSuccess;
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  return guarded([&] {
    *total = total_memory();
    *available = available_memory();
  });
}
cudaError_t cudaMalloc(void** out, size_t bytes) {
  bool got = false;
  const cudaError_t error = guarded([&] { got = allocate(bytes, out); });
  if (error) return error;
  return got ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* p) {
  if (!p) return cudaSuccess;
  return guarded([&] {
    drain_all();
    release_memory(p);
  });
}

// Memory of the host that kernels reach as well: no device memory, so it is in no list.
cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned) {
  if (posix_memalign(out, 256, bytes)) return cudaErrorMemoryAllocation;
  return guarded([&] { note_mapped(*out, bytes); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return guarded([&] { enqueue(stream, [=] { copy(to, from, bytes, kind); }); });
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return guarded([&] {
    drain(nullptr);
    copy(to, from, bytes, kind);
  });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return guarded([&] {
    enqueue(stream, [=] {
      check_device_memory(to, bytes, "a fill writes");
      std::memset(to, value, bytes);
    });
  });
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return guarded([&] {
    if (width > pitch) fail("cudaMemset2DAsync: rows of %zu bytes, %zu apart", width, pitch);
    enqueue(stream, [=] {
      for (size_t row = 0; row < height; ++row) {
        char* at = static_cast<char*>(to) + row * pitch;
        check_device_memory(at, width, "a fill writes");
        std::memset(at, value, width);
      }
    });
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return guarded([&] { *stream = new_stream(); });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return guarded([&] { delete_stream(stream); });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return guarded([&] { drain(stream); });
}
cudaError_t cudaDeviceSynchronize() {
  return guarded([] { drain_all(); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return *event = reinterpret_cast<cudaEvent_t>(new Event), cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return guarded([&] {
    drain_all();
    delete reinterpret_cast<Event*>(event);
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return guarded([&] {
    auto* e = reinterpret_cast<Event*>(event);
    enqueue(stream, [e, n = ++e->recorded] { e->reached = n; });
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return guarded([&] {
    auto* e = reinterpret_cast<Event*>(event);
    enqueue_wait(stream, [e, n = e->recorded] { return e->reached >= n; });
  });
}

}  // extern "C"
