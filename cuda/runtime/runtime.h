// The plug-in's side of a device: its stream, its error word, and error texts.
#pragma once

#include <cuda_runtime.h>

#include "core/fault.h"

namespace plmcore::cuda {

// All work of a GPU goes to one stream in the order of the calls, so memory may be handed out again as soon
// as a tensor is gone.
struct Gpu {
  int index = 0;
  cudaStream_t stream = nullptr;
  // Where kernels note errors in data (device/fault.cuh): the first bad position of the op that runs, in
  // device memory, and the first error since the last wait, in the host's, where a wait need not copy it.
  unsigned long long* bad_position = nullptr;
  Fault* fault = nullptr;
};
const Gpu& gpu_of(const KernelArgs& args);
inline cudaStream_t stream_of(const KernelArgs& args) { return gpu_of(args).stream; }

// nullptr for success, otherwise a sentence that is valid until the next error on this thread.
const char* problem(cudaError_t error);

}  // namespace plmcore::cuda
