// y = kept ? x / (1 - p) : 0. An element is kept where its 16 random bits reach p * 2^16; the bits are the
// CPU's. A thread takes the eight elements of one byte of the mask: their eight blocks of words stand beside
// each other in the counter, and two neighbours in memory read one block each. The mask is stored as bits;
// backward reads them instead of drawing again. Locked: the mask is [B, C], and serves every position.
// Traffic: one read of x, one write of y and of the bits.
#include "device/axes.h"
#include "device/philox.cuh"

namespace plmcore::cuda {

namespace {

// The bits of the elements i ... i + 7, up to n; i is a multiple of 8.
__device__ __forceinline__ uint32_t drawn_bits(Draw draw, int64_t i, int64_t n, uint32_t threshold) {
  uint32_t bits = 0;
  for (int k = 0; k < 8 && i + k < n; ++k)
    bits |=
        static_cast<uint32_t>(random_half(draw.seed, draw.offset, static_cast<uint64_t>(i + k)) >= threshold)
        << k;
  return bits;
}

template <class T>
__device__ __forceinline__ T dropped(T x, uint32_t kept, Acc<T> scale) {
  return narrow<T>(kept ? widen(x) * scale : Acc<T>(0));
}

__global__ void __launch_bounds__(kThreads)
    dropout_bits(Draw draw, uint8_t* __restrict__ bits, int64_t n, uint32_t threshold) {
  for (int64_t byte = first_of_thread(); byte < (n + 7) / 8; byte += threads_of_grid())
    bits[byte] = static_cast<uint8_t>(drawn_bits(draw, byte * 8, n, threshold));
}
template <class T, bool kDraws>
__global__ void __launch_bounds__(kThreads)
    dropout_apply(Draw draw, const T* __restrict__ x, T* __restrict__ y, uint8_t* bits, int64_t n,
                  uint32_t threshold, Acc<T> scale) {
  for (int64_t byte = first_of_thread(); byte < (n + 7) / 8; byte += threads_of_grid()) {
    const int64_t i = byte * 8;
    uint32_t kept;
    if constexpr (kDraws) bits[byte] = static_cast<uint8_t>(kept = drawn_bits(draw, i, n, threshold));
    else kept = bits[byte];
    for (int k = 0; k < 8 && i + k < n; ++k) y[i + k] = dropped(x[i + k], kept >> k & 1, scale);
  }
}
// x [B, length, C], bits of [B, C]; `row` divides by the length.
template <class T>
__global__ void __launch_bounds__(kThreads)
    dropout_locked(const T* __restrict__ x, T* __restrict__ y, const uint8_t* __restrict__ bits, int64_t n,
                   Divisor width, Divisor length, Acc<T> scale) {
  for (int64_t i = first_of_thread(); i < n; i += threads_of_grid()) {
    const uint32_t row = width.divide(static_cast<uint32_t>(i)),
                   c = static_cast<uint32_t>(i) - row * width.size;
    const int64_t at = static_cast<int64_t>(length.divide(row)) * width.size + c;
    y[i] = dropped(x[i], bits[at / 8] >> (at % 8) & 1, scale);
  }
}

// Without `state` the bits are there already.
const char* drop(const KernelArgs& args, const View* state, uint8_t* bits) {
  const View &x = args.in[0], &y = args.out[0];
  const double p = args.f("p");
  const cudaStream_t stream = stream_of(args);
  if (x.numel == 0) return nullptr;
  const auto threshold = static_cast<uint32_t>(p * 65536 + 0.5);
  const Draw draw = state ? draw_of(*state) : Draw{};
  const bool locked = args.i("locked");
  const int64_t masked = locked ? x.size[0] * x.size[2] : x.numel;
  if (locked && state)
    if (const char* why = problem(launch<dropout_bits>(grid_for((masked + 7) / 8), dim3(kThreads), 0, stream,
                                                       draw, bits, masked, threshold)))
      return why;
  if (locked && x.numel >> 31) return "a locked mask over 2^31 elements and more is not on this device yet";
  return for_float(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto scale = static_cast<Acc<T>>(p < 1 ? 1 / (1 - p) : 0);
    const dim3 grid = grid_for((x.numel + 7) / 8);
    if (locked)
      return problem(launch<dropout_locked<T>>(grid_for(x.numel), dim3(kThreads), 0, stream, x.as<T>(),
                                               y.as<T>(), bits, x.numel, Divisor(x.size[2]),
                                               Divisor(x.size[1]), scale));
    if (state)
      return problem(launch<dropout_apply<T, true>>(grid, dim3(kThreads), 0, stream, draw, x.as<T>(),
                                                    y.as<T>(), bits, x.numel, threshold, scale));
    return problem(launch<dropout_apply<T, false>>(grid, dim3(kThreads), 0, stream, draw, x.as<T>(),
                                                   y.as<T>(), bits, x.numel, threshold, scale));
  });
}

}  // namespace

PLM_KERNEL(dropout) { return drop(args, &args.in[1], args.out[1].as<uint8_t>()); }
// dy, bits -> dx
PLM_KERNEL(dropout_grad) { return drop(args, nullptr, args.in[1].as<uint8_t>()); }

}  // namespace plmcore::cuda
