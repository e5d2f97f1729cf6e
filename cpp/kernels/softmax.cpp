// A row is read for its maximum, again for e^(x - max), which goes to y, and y is scaled: the last two from
// cache, so traffic is one read of x and one write of y. The half types compute e^(x - max) a second time
// instead of rounding it twice. Backward: dx = y (dy - sum(y dy)).
#include "kernels/softmax_rows.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(softmax) {
  const int64_t C = args.in[0].last();
  for_float("softmax", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    for_rows(args.in[0].rows(), C, [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r) {
        const T* x = args.in[0].as<T>() + r * C;
        T* y = args.out[0].as<T>() + r * C;
        const A m = row_max(x, C);
        if constexpr (std::is_same_v<T, A>) {
          const A scale = 1 / row_exp_sum(x, C, m,
                                          [&](int64_t i, int part, auto v)
                                              __attribute__((always_inline)) { store_at(y, i, part, v); });
          over_row<T>(C, [&](int64_t i, int part) __attribute__((always_inline)) {
            store_at(y, i, part, load_at(y, i, part) * scale);
          });
        } else {
          const A scale = 1 / row_exp_sum(x, C, m, [](int64_t, int, auto) {});
          over_row<T>(C, [&](int64_t i, int part) __attribute__((always_inline)) {
            store_at(y, i, part, exp_nonpositive(load_at(x, i, part) - m) * scale);
          });
        }
      }
    });
  });
}

PLM_KERNEL(softmax_grad) {
  const int64_t C = args.in[0].last();
  for_float("softmax_grad", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using V = typename Lane<T>::Vec;
    for_rows(args.in[0].rows(), C, [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r) {
        const T *y = args.in[0].as<T>() + r * C, *dy = args.in[1].as<T>() + r * C;
        T* dx = args.out[0].as<T>() + r * C;
        constexpr int W = Lane<T>::n;
        V s0{}, s1{};
        int64_t i = 0;
        for (; i + 2 * W <= C; i += 2 * W) {
          s0 += load(y + i) * load(dy + i);
          s1 += load(y + i + W) * load(dy + i + W);
        }
        for (; i < C; i += W) {
          const int part = C - i < W ? static_cast<int>(C - i) : -1;
          s0 += load_at(y, i, part) * load_at(dy, i, part);
        }
        const auto s = reduce_add(s0 + s1);
        over_row<T>(C, [&](int64_t k, int part) __attribute__((always_inline)) {
          store_at(dx, k, part, load_at(y, k, part) * (load_at(dy, k, part) - s));
        });
      }
    });
  });
}

}  // namespace plmcore::PLM_ISA
