// An element is kept where its 16 random bits reach p * 2^16. The mask is made in registers between one read
// and one write of x, and stored as bits; backward reads the bits instead of drawing again. Locked: the mask
// is [B, C], expanded once and then read for every position.
#include "kernels/random.h"

namespace plmcore::PLM_ISA {

// The bits of elements i ... i + kF - 1, up to `end`; i is a multiple of kF.
PLM_INLINE void store_bits(uint8_t* bits, int64_t i, int64_t end, vi mask) {
  const uint32_t b = lane_bits(mask);
  if constexpr (kF == 4) bits[i / 8] = static_cast<uint8_t>(i % 8 ? bits[i / 8] | b << 4 : b);
  else
    for (int k = 0; k < kF / 8 && i + 8 * k < end; ++k) bits[i / 8 + k] = static_cast<uint8_t>(b >> 8 * k);
}
PLM_INLINE vi load_bits(const uint8_t* bits, int64_t i, int64_t end) {
  vi lane;
  for (int k = 0; k < kF; ++k) lane[k] = 1 << k;
  int32_t b = bits[i / 8];
  if constexpr (kF == 4) b >>= i % 8;
  if constexpr (kF == 16) b |= i + 8 < end ? bits[i / 8 + 1] << 8 : 0;
  return (lane & b) != 0;
}

// y = kept ? x * scale : 0 on the elements i ... i + kF - 1, up to `end`.
template <class T, class A>
PLM_INLINE void apply(vi kept, const T* x, T* y, int64_t i, int64_t end, A scale) {
  if constexpr (!std::is_same_v<T, double>)
    if (i + kF <= end) return store(y + i, kept ? load(x + i) * scale : vf{});
  for (int k = 0; k < kF && i + k < end; ++k)
    y[i + k] = from_float<T>(kept[k] ? to_float(x[i + k]) * scale : A(0));
}

// f(kept, i) over n elements, kF at a time, with `end` of the chunk; the bits are left in `bits`.
template <class F>
PLM_INLINE void draw(const View& state, double p, uint8_t* bits, int64_t n, F f) {
  const int threshold = static_cast<int>(p * 65536 + 0.5);
  for_chunks(n, kGrain, [&](int64_t begin, int64_t end) {
    for_random<128>(state.as<int64_t>(), begin, end,
                    [&](const RandomWords& r, int64_t i) __attribute__((always_inline)) {
                      auto half = [&](vu word, int64_t at) __attribute__((always_inline)) {
                        if (at >= end) return;
                        const vi kept = __builtin_bit_cast(vi, word) >= threshold;
                        store_bits(bits, at, end, kept);
                        f(kept, at, end);
                      };
                      for (int w = 0; w < 4; ++w, i += 16) {
                        half(r.word[w] & 0xffffu, i);
                        half(r.word[w] >> 16, i + 64);
                      }
                    });
  });
}
template <class F>
PLM_INLINE void redraw(const uint8_t* bits, int64_t n, F f) {
  for_chunks(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kF) f(load_bits(bits, i, end), i, end);
  });
}

static void fill_zero(const View& y) {
  const int64_t bytes = y.numel * static_cast<int64_t>(size_of(y.dtype));
  for_chunks(bytes, 4 * kGrain,
             [&](int64_t b, int64_t e) { std::memset(y.as<char>() + b, 0, static_cast<size_t>(e - b)); });
}

// Runs `source` (draw or redraw) over the mask and applies it to x.
template <class S>
PLM_INLINE void drop(const KernelArgs& args, S source) {
  const View &x = args.in[0], &y = args.out[0];
  const double p = args.f("p");
  if (p >= 1) return fill_zero(y);
  for_float("dropout", x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    const A scale = static_cast<A>(1 / (1 - p));
    const T* in = x.as<T>();
    T* out = y.as<T>();
    if (!args.i("locked"))
      return source(x.numel, [&](vi kept, int64_t i, int64_t end)
                                 __attribute__((always_inline)) { apply(kept, in, out, i, end, scale); });
    float* mask = args.shared_as<float>();
    const int64_t B = x.size[0], length = x.size[1], C = x.size[2];
    source(B * C, [&](vi kept, int64_t i, int64_t end) __attribute__((always_inline)) {
      store_until(mask, i, end, kept ? splat(1.f) : vf{});
    });
    for_rows(B * length, C, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const float* m = mask + r / length * C;
        for (int64_t c = 0; c < C; ++c)
          out[r * C + c] = from_float<T>(m[c] != 0 ? to_float(in[r * C + c]) * scale : A(0));
      }
    });
  });
}

static Workspace workspace(const KernelArgs& args) {
  return {.shared = args.i("locked")
                        ? static_cast<size_t>(args.in[0].size[0] * args.in[0].size[2]) * sizeof(float)
                        : 0};
}

PLM_KERNEL(dropout, workspace) {
  uint8_t* bits = args.out[1].as<uint8_t>();
  drop(args,
       [&](int64_t n, auto f) __attribute__((always_inline)) { draw(args.in[1], args.f("p"), bits, n, f); });
}

PLM_KERNEL(dropout_grad, workspace) {
  const uint8_t* bits = args.in[1].as<uint8_t>();
  drop(args, [&](int64_t n, auto f) __attribute__((always_inline)) { redraw(bits, n, f); });
}

}  // namespace plmcore::PLM_ISA
