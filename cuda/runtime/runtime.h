// The plug-in's side of a device: its stream, and error texts.
#pragma once

#include <cuda_runtime.h>

#include "core/kernel_args.h"

namespace plmcore::cuda {

// All work of a GPU goes to one stream in the order of the calls, so memory may be handed out again as soon
// as a tensor is gone.
struct Gpu {
  int index;
  cudaStream_t stream;
};
cudaStream_t stream_of(const KernelArgs& args);

// nullptr for success, otherwise a sentence that is valid until the next error on this thread.
const char* problem(cudaError_t error);

}  // namespace plmcore::cuda
