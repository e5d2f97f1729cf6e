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

}  // namespace plmcore::cuda
