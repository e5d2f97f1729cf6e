// What every CPU kernel file includes: the arguments, the vectors, the pool, dtype switches.
#pragma once

#include "core/kernel_args.h"
#include "kernels/simd.h"
#include "plmcore/threads.h"

// PLM_KERNEL(add) { ... } is the kernel of an op. PLM_KERNEL(sum, workspace) { ... } needs the memory that
// the function `workspace` says.
#define PLM_KERNEL(name, ...)                                              \
  static void name##_run(const KernelArgs& args);                          \
  extern const KernelDef name##_kernel;                                    \
  const KernelDef name##_kernel = {name##_run __VA_OPT__(, ) __VA_ARGS__}; \
  static void name##_run(const KernelArgs& args)

namespace plmcore::PLM_ISA {

constexpr int64_t kGrain = 1 << 15;  // elements of cheap work that are worth a task

// Calls f(begin, end) over [0, n) in chunks whose bounds depend on n and `grain` alone.
template <class F>
PLM_INLINE void for_chunks(int64_t n, int64_t grain, F f) {
  if (n <= grain) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  auto task = [&](int64_t t, int) {
    const int64_t b = t * grain;
    f(b, b + grain < n ? b + grain : n);
  };
  parallel_for((n + grain - 1) / grain, task);
}
// Rows of `width` elements, several to a task.
template <class F>
PLM_INLINE void for_rows(int64_t rows, int64_t width, F f) {
  const int64_t each = kGrain / (width > 0 ? width : 1);
  for_chunks(rows, each > 1 ? each : 1, f);
}

template <class T> struct Type {
  using type = T;
};

// f(Type<T>) for the element type of a float tensor; DTypeError otherwise.
template <class F>
PLM_INLINE void for_float(const char* op, DType t, F f) {
  switch (t) {
    case DType::float32: return f(Type<float>{});
    case DType::float64: return f(Type<double>{});
    case DType::bfloat16: return f(Type<bf16>{});
    case DType::float16: return f(Type<f16>{});
    default: fail<DTypeError>(op, ": needs a float dtype, got ", t);
  }
}
template <class F>
PLM_INLINE void for_index(const char* op, DType t, F f) {
  switch (t) {
    case DType::int64: return f(Type<int64_t>{});
    case DType::int32: return f(Type<int32_t>{});
    default: fail<DTypeError>(op, ": needs int64 or int32 indices, got ", t);
  }
}
// By size only: for kernels that move elements without looking at them.
template <class F>
PLM_INLINE void for_bytes(DType t, F f) {
  switch (size_of(t)) {
    case 1: return f(Type<uint8_t>{});
    case 2: return f(Type<uint16_t>{});
    case 4: return f(Type<uint32_t>{});
    default: return f(Type<uint64_t>{});
  }
}

}  // namespace plmcore::PLM_ISA
