// Errors in data that kernels find: indices outside of their axis. A kernel cannot throw. A thread that meets
// one leaves the access out and keeps the lowest position (note_bad); after the kernel one thread writes down
// what is there (report_bad), unless an earlier op has; the next wait raises it. Good data cost one launch of
// one thread.
#pragma once

#include "device/kernel.h"

namespace plmcore::cuda {

inline constexpr unsigned long long kNoPosition = ~0ull;

__device__ __forceinline__ void note_bad(unsigned long long* bad_position, int64_t at) {
  atomicMin(bad_position, static_cast<unsigned long long>(at));
}
template <class I>
__device__ __forceinline__ bool within(I index, int64_t limit) {
  return static_cast<uint64_t>(static_cast<int64_t>(index)) < static_cast<uint64_t>(limit);
}

// One thread, after the kernel: the fault at the noted position, unless there is an earlier one.
__device__ __forceinline__ void write_fault(unsigned long long* bad_position, int64_t value, Fault fault,
                                            Fault* word) {
  fault.at = static_cast<int64_t>(*bad_position);
  *bad_position = kNoPosition;
  if (word->error != DataError::none) return;
  const DataError error = fault.error;
  fault.value = value;
  fault.error = DataError::none;
  *word = fault;
  __threadfence_system();
  word->error = error;
}
// Grid and block of one.
template <class I>
__global__ void report_bad(unsigned long long* bad_position, const I* values, Fault fault, Fault* word) {
  if (*bad_position != kNoPosition) write_fault(bad_position, values[*bad_position], fault, word);
}

inline Fault fault_of(ops::Id op, DataError error, const View& values, int64_t limit) {
  Fault fault;
  fault.error = error;
  fault.op = op;
  fault.rank = values.rank;
  for (int a = 0; a < values.rank; ++a) fault.size[a] = values.size[a];
  fault.limit = limit;
  return fault;
}
// After a kernel that called note_bad with places of `values`, which must lie within [0, limit).
template <class I>
const char* report_faults(const KernelArgs& args, ops::Id op, DataError error, const View& values,
                          int64_t limit) {
  const Gpu& gpu = gpu_of(args);
  return problem(launch<report_bad<I>>(dim3(1), dim3(1), 0, gpu.stream, gpu.bad_position, values.as<I>(),
                                       fault_of(op, error, values, limit), gpu.fault));
}

}  // namespace plmcore::cuda
