// Streams: work is queued and runs as late as the API allows, in any order between streams. A missing event
// or a missing wait then shows in the results.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <initializer_list>
#include <mutex>
#include <type_traits>

namespace plmcore::emu {

// The emulator is one device: whoever calls it waits for its turn.
std::recursive_mutex& device_mutex();

void enqueue(cudaStream_t stream, std::function<void()> work);
void enqueue_wait(cudaStream_t stream,
                  std::function<bool()> reached);  // holds the stream back until it is true
void drain(cudaStream_t stream);  // runs what the stream holds, and what that waits for
void drain_all();
cudaStream_t new_stream();
void delete_stream(cudaStream_t stream);

// A call of the API: a Failure inside becomes an error, whose text cudaGetErrorString then gives.
cudaError_t guarded(const std::function<void()>& call);

// `name`: the __PRETTY_FUNCTION__ of a template whose parameter `kernel` is the kernel. `addresses`: those of
// its arguments that are pointers; each must be memory that a kernel can reach.
cudaError_t launch(const char* name, dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                   std::initializer_list<const void*> addresses, std::function<void()> body);
template <class T>
const void* address_in(const T& argument) {
  if constexpr (std::is_pointer_v<T>) return argument;
  else return nullptr;
}

}  // namespace plmcore::emu
