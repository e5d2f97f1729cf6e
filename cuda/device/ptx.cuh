// Inline PTX, one small function each: asynchronous copies into shared memory, products of tensor cores,
// loads of their operands, exp2. The emulator's twins are in emu/ptx.h. Nothing beyond sm_80.
//
// Operands of a product lie in the registers of a warp as the PTX manual says. With g = lane / 4, t = lane %
// 4:
//   a (16 rows, 32 bytes each)   register r: row g + 8 (r % 2), bytes 4 t + 16 (r / 2) ...
//   b (8 columns, 32 bytes each) register r: column g, bytes 4 t + 16 r ...
//   c (16 x 8 sums)              register r: row g + 8 (r / 2), column 2 t + r % 2
#pragma once

#include <type_traits>

#include "device/cuda.cuh"

#if defined(__CUDACC__)

namespace plmcore::cuda {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// kBytes from global to shared memory without a register in between, or zeros where `there` is false: then
// nothing is read. Both addresses are multiples of kBytes.
template <int kBytes>
__device__ __forceinline__ void cp_async(void* shared, const void* global, bool there = true) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  const uint32_t to = shared_address(shared), bytes = there ? kBytes : 0;
  if constexpr (kBytes == 16)  // past the first-level cache
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(kBytes),
                 "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void cp_wait() {  // until at most N groups are open
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// N matrices of 8 rows of 16 bytes. Lane 8 i + r brings the address of row r of matrix i. Register i of a
// lane gets bytes 4 t ... of row g of matrix i; kTrans: elements (2 t, g) and (2 t + 1, g), of two bytes
// each.
template <bool kTrans = false>
__device__ __forceinline__ void ldmatrix(uint32_t (&to)[1], const void* row) {
  if constexpr (kTrans)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(to[0])
                 : "r"(shared_address(row))
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(to[0])
                 : "r"(shared_address(row))
                 : "memory");
}
template <bool kTrans = false>
__device__ __forceinline__ void ldmatrix(uint32_t (&to)[2], const void* row) {
  if constexpr (kTrans)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(shared_address(row))
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(shared_address(row))
                 : "memory");
}
template <bool kTrans = false>
__device__ __forceinline__ void ldmatrix(uint32_t (&to)[4], const void* row) {
  if constexpr (kTrans)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// c += a b with 16 elements of bf16 or f16 in a row of a, and in a column of b: m16n8k16.
template <class T>
__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// c += a b with 32 elements of int8: m16n8k32, whole numbers.
__device__ __forceinline__ void mma_int8(int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// 2^x to two units in the last place; results below the normal numbers are 0.
__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace plmcore::cuda

#else
#include "emu/ptx.h"
#endif
