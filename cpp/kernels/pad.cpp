// The axes after the last padded one are one run of memory. Each row of y along the last padded axis is
// written once: all fill, or fill, a row of x, fill.
#include "kernels/move.h"

namespace plmcore::PLM_ISA {

template <class T>
static void pad_rows(const KernelArgs& args, T value) {
  const View &x = args.in[0], &y = args.out[0];
  int last = -1;
  for (int a = 0; a < x.rank; ++a)
    if (y.size[a] != x.size[a]) last = a;
  const int64_t inner = last < 0 ? y.numel : y.inner(last);
  const int64_t rows = last < 0 ? 1 : y.outer(last), width = last < 0 ? inner : y.size[last] * inner;
  const int64_t left = last < 0 ? 0 : args.dim("before", last) * inner,
                run = last < 0 ? inner : x.size[last] * inner;
  int64_t before[Shape::kMaxRank];
  for (int a = 0; a < last; ++a) before[a] = args.dim("before", a);
  for_rows(rows, width, [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      int64_t from = 0, rest = r, stride = 1;  // the row of x, if this row has one
      bool inside = true;
      for (int a = last - 1; a >= 0; --a) {
        const int64_t p = rest % y.size[a] - before[a];
        rest /= y.size[a];
        inside = inside && p >= 0 && p < x.size[a];
        from += p * stride;
        stride *= x.size[a];
      }
      T* row = y.as<T>() + r * width;
      const int64_t end = inside ? left : width;
      for (int64_t i = 0; i < end; ++i) row[i] = value;
      if (!inside) continue;
      std::memcpy(row + left, x.as<T>() + from * run, static_cast<size_t>(run) * sizeof(T));
      for (int64_t i = left + run; i < width; ++i) row[i] = value;
    }
  });
}

PLM_KERNEL(pad) {
  if (args.out[0].numel == 0) return;
  const uint64_t bits = element_bits(args.f("value"), args.out[0].dtype);
  for_bytes(args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    pad_rows<T>(args, static_cast<T>(bits));
  });
}

}  // namespace plmcore::PLM_ISA
