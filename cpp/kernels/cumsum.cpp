// x is [outer, n, inner]; each of the outer * inner columns is one chain, added up in double (int64 for
// integers).
#include "kernels/kernel.h"
#include "kernels/wrap.h"

namespace plmcore::PLM_ISA {

template <class T> using Sum = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

template <class T>
PLM_INLINE T add_to(Sum<T>& sum, T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(sum = static_cast<int64_t>(unsigned_of(sum) + unsigned_of(int64_t{x})));
  else return from_float<T>(sum += to_float(x));
}

// R rows of n elements, one after the other in memory.
template <int R, class T>
PLM_INLINE void scan_rows(const T* __restrict__ from, T* __restrict__ to, int64_t n, bool reverse) {
  Sum<T> sum[R] = {};
  for (int64_t j = 0; j < n; ++j) {
    const int64_t at = reverse ? n - 1 - j : j;
    for (int r = 0; r < R; ++r) to[r * n + at] = add_to(sum[r], from[r * n + at]);
  }
}

template <class T>
static void scan(const KernelArgs& args) {
  constexpr int64_t kBlock = 256;  // columns of a task
  const View& x = args.in[0];
  const int axis = static_cast<int>(args.i("axis"));
  const bool reverse = args.i("reverse");
  const int64_t n = x.size[axis], inner = x.inner(axis), blocks = (inner + kBlock - 1) / kBlock;
  const T* from = x.as<T>();
  T* to = args.out[0].as<T>();
  if (inner == 1) {  // four rows side by side: each addition waits for the one before it
    for_rows(x.outer(axis), n, [&](int64_t begin, int64_t end) {
      int64_t r = begin;
      for (; r + 4 <= end; r += 4) scan_rows<4>(from + r * n, to + r * n, n, reverse);
      for (; r < end; ++r) scan_rows<1>(from + r * n, to + r * n, n, reverse);
    });
    return;
  }
  for_rows(x.outer(axis) * blocks, n * (inner < kBlock ? inner : kBlock), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t c = t % blocks * kBlock, width = c + kBlock < inner ? kBlock : inner - c,
                    base = t / blocks * n * inner + c;
      Sum<T> sum[kBlock] = {};
      for (int64_t j = 0; j < n; ++j) {
        const int64_t at = base + (reverse ? n - 1 - j : j) * inner;
        for (int64_t i = 0; i < width; ++i) to[at + i] = add_to(sum[i], from[at + i]);
      }
    }
  });
}

PLM_KERNEL(cumsum) {
  switch (args.in[0].dtype) {
    case DType::int64: return scan<int64_t>(args);
    case DType::int32: return scan<int32_t>(args);
    default:
      for_float("cumsum", args.in[0].dtype, [&](auto type) { scan<typename decltype(type)::type>(args); });
  }
}

}  // namespace plmcore::PLM_ISA
