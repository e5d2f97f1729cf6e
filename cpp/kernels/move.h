// Moving elements without looking at them: rows of bytes with strides, cut into tasks by size alone.
#pragma once

#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

constexpr int64_t kMoveGrain = 1 << 17;  // bytes worth a task

PLM_INLINE int64_t rows_per_task(int64_t bytes) {
  return bytes < kMoveGrain ? kMoveGrain / (bytes > 0 ? bytes : 1) : 1;
}

template <int Bytes>
PLM_INLINE void copy_fixed(int64_t rows, char* dst, int64_t dst_stride, const char* src, int64_t src_stride) {
  for (int64_t r = 0; r < rows; ++r) std::memcpy(dst + r * dst_stride, src + r * src_stride, Bytes);
}
// One task's share of copy_rows. Short rows, single elements above all, get a loop without calls.
PLM_INLINE void copy_some(int64_t rows, int64_t bytes, char* dst, int64_t dst_stride, const char* src,
                          int64_t src_stride) {
  switch (bytes) {
    case 1: return copy_fixed<1>(rows, dst, dst_stride, src, src_stride);
    case 2: return copy_fixed<2>(rows, dst, dst_stride, src, src_stride);
    case 4: return copy_fixed<4>(rows, dst, dst_stride, src, src_stride);
    case 8: return copy_fixed<8>(rows, dst, dst_stride, src, src_stride);
    case 16: return copy_fixed<16>(rows, dst, dst_stride, src, src_stride);
    default:
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(dst + r * dst_stride, src + r * src_stride, static_cast<size_t>(bytes));
  }
}

// f(row, offset, count, bytes) for blocks that cover `rows` rows of `bytes` bytes: many short rows, or a part
// of a long one.
template <class F>
PLM_INLINE void for_blocks(int64_t rows, int64_t bytes, F f) {
  if (rows == 0 || bytes == 0) return;
  if (bytes <= kMoveGrain)
    return for_chunks(rows, rows_per_task(bytes),
                      [&](int64_t b, int64_t e) { f(b, int64_t{0}, e - b, bytes); });
  const int64_t parts = (bytes + kMoveGrain - 1) / kMoveGrain;
  parallel_for(rows * parts, [&](int64_t t, int) {
    const int64_t at = t % parts * kMoveGrain;
    f(t / parts, at, int64_t{1}, at + kMoveGrain < bytes ? kMoveGrain : bytes - at);
  });
}

// Copies `rows` rows of `bytes` bytes; strides in bytes.
PLM_INLINE void copy_rows(int64_t rows, int64_t bytes, char* dst, int64_t dst_stride, const char* src,
                          int64_t src_stride) {
  if (bytes == dst_stride && bytes == src_stride) {  // one piece
    bytes *= rows;
    rows = rows > 0;
  }
  for_blocks(rows, bytes, [&](int64_t r, int64_t at, int64_t count, int64_t n) {
    copy_some(count, n, dst + r * dst_stride + at, dst_stride, src + r * src_stride + at, src_stride);
  });
}
PLM_INLINE void zero_rows(int64_t rows, int64_t bytes, char* dst, int64_t dst_stride) {
  if (bytes == dst_stride) {
    bytes *= rows;
    rows = rows > 0;
  }
  for_blocks(rows, bytes, [&](int64_t r, int64_t at, int64_t count, int64_t n) {
    for (int64_t k = 0; k < count; ++k)
      std::memset(dst + (r + k) * dst_stride + at, 0, static_cast<size_t>(n));
  });
}

// f(block, first, count) for the parts of [begin, end) that stay inside one block of `size`: no division for
// each element.
template <class F>
PLM_INLINE void in_blocks(int64_t begin, int64_t end, int64_t size, F f) {
  while (begin < end) {
    const int64_t first = begin % size, count = size - first < end - begin ? size - first : end - begin;
    f(begin / size, first, count);
    begin += count;
  }
}

// A tensor of `outer` rows and the tensors it is made of along an axis: f(part, bytes of its row, where it
// starts in the row, first row, rows). All parts of a task's rows come one after the other, so the whole rows
// pass the cache once.
template <class F>
PLM_INLINE void for_parts(int64_t outer, int64_t unit, int axis, const View* parts, int n, F f) {
  int64_t row = 0;
  for (int k = 0; k < n; ++k) row += parts[k].size[axis] * unit;
  auto some = [&](int64_t b, int64_t e) {
    int64_t at = 0;
    for (int k = 0; k < n; ++k) {
      const int64_t bytes = parts[k].size[axis] * unit;
      f(k, bytes, at, b, e - b);
      at += bytes;
    }
  };
  if (outer == 0) return;
  if (outer == 1 || row > kMoveGrain) some(0, outer);
  else for_chunks(outer, rows_per_task(row), some);
}

// The bits of `value` as an element of type t, in the low bytes.
inline uint64_t element_bits(double value, DType t) {
  switch (t) {
    case DType::float64: return __builtin_bit_cast(uint64_t, value);
    case DType::float32: return __builtin_bit_cast(uint32_t, static_cast<float>(value));
    case DType::bfloat16: return from_float<bf16>(value).bits;
    case DType::float16: return __builtin_bit_cast(uint16_t, from_float<f16>(value).value);
    case DType::boolean: return value != 0;
    default: return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

}  // namespace plmcore::PLM_ISA
