#include "kernels/indices.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(gather_beams) {
  const View &x = args.in[0], &beams = args.in[1], &y = args.out[0];
  const int64_t K = x.size[1], n = y.size[1], bytes = x.inner(1) * static_cast<int64_t>(size_of(x.dtype));
  for_index("gather_beams", beams.dtype, [&](auto type) {
    using I = typename decltype(type)::type;
    check_indices<I>(ops::id_gather_beams, beams, K);
    for_blocks(y.size[0] * n, bytes, [&](int64_t r, int64_t at, int64_t count, int64_t size) {
      for (int64_t k = r; k < r + count; ++k)
        copy_some(1, size, y.as<char>() + k * bytes + at, bytes,
                  x.as<char>() + (k / n * K + beams.as<I>()[k]) * bytes + at, bytes);
    });
  });
}

PLM_KERNEL(gather_beams_grad) {
  const View &dy = args.in[0], &beams = args.in[1], &dx = args.out[0];
  const int64_t K = dx.size[1], n = dy.size[1], width = dx.inner(1);
  constexpr int64_t kColumns = 512;
  const int64_t parts = (width + kColumns - 1) / kColumns;
  for_index("gather_beams_grad", beams.dtype, [&](auto index) {
    using I = typename decltype(index)::type;
    check_indices<I>(ops::id_gather_beams_grad, beams, K);
    for_float("gather_beams_grad", dx.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      using A = typename Lane<T>::Scalar;
      parallel_for(dx.size[0] * K * parts, [&](int64_t task, int) {
        const int64_t row = task / parts, b = row / K, begin = task % parts * kColumns,
                      size = begin + kColumns < width ? kColumns : width - begin;
        A sum[kColumns] = {};
        for (int64_t j = 0; j < n; ++j) {
          if (beams.as<I>()[b * n + j] != row % K) continue;
          const T* from = dy.as<T>() + (b * n + j) * width + begin;
          for (int64_t c = 0; c < size; ++c) sum[c] += to_float(from[c]);
        }
        T* to = dx.as<T>() + row * width + begin;
        for (int64_t c = 0; c < size; ++c) to[c] = from_float<T>(sum[c]);
      });
    });
  });
}

}  // namespace plmcore::PLM_ISA
