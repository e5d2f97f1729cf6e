// What every kernel file's host side includes: the arguments, the dtype switch, the stream, error texts.
#pragma once

#include "core/kernel_args.h"
#include "device/element.cuh"
#include "runtime/runtime.h"

// PLM_KERNEL(softmax) { ... } is the launcher of an op: nullptr, or what went wrong.
// PLM_KERNEL(layer_norm_grad, workspace) { ... } needs the memory that the function `workspace` says.
#define PLM_KERNEL(name, ...)                                                    \
  static const char* name##_run(const KernelArgs& args);                         \
  extern const PluginKernelDef name##_kernel;                                    \
  const PluginKernelDef name##_kernel = {name##_run __VA_OPT__(, ) __VA_ARGS__}; \
  static const char* name##_run(const KernelArgs& args)

namespace plmcore::cuda {

template <class T> struct Type {
  using type = T;
};

// f(Type<T>) for the element type of a float tensor; nullptr or the text of an error, as a kernel returns it.
template <class F>
const char* for_float(DType t, F f) {
  switch (t) {
    case DType::float32: return f(Type<float>{});
    case DType::float64: return f(Type<double>{});
    case DType::bfloat16: return f(Type<bf16>{});
    case DType::float16: return f(Type<f16>{});
    default: return "needs a float dtype";
  }
}
template <class F>
const char* for_index(DType t, F f) {
  switch (t) {
    case DType::int64: return f(Type<int64_t>{});
    case DType::int32: return f(Type<int32_t>{});
    default: return "needs int64 or int32 indices";
  }
}
// bool is uint8.
template <class F>
const char* for_any(DType t, F f) {
  switch (t) {
    case DType::int64: return f(Type<int64_t>{});
    case DType::int32: return f(Type<int32_t>{});
    case DType::int8: return f(Type<int8_t>{});
    case DType::uint8:
    case DType::boolean: return f(Type<uint8_t>{});
    default: return for_float(t, f);
  }
}
// By size only: for kernels that move elements without looking at them.
template <class F>
const char* for_bytes(DType t, F f) {
  switch (size_of(t)) {
    case 1: return f(Type<uint8_t>{});
    case 2: return f(Type<uint16_t>{});
    case 4: return f(Type<uint32_t>{});
    default: return f(Type<uint64_t>{});
  }
}

}  // namespace plmcore::cuda
