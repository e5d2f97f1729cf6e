// A row is read for its maximum, for the sum of e^(x - max) and for y = x - max - ln sum, the last two from
// cache: traffic is one read of x and one write of y.  Backward: dx = dy - e^y sum(dy).
#include "kernels/reduce.h"
#include "kernels/softmax_rows.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(log_softmax) {
  const int64_t C = args.in[0].last();
  for_float("log_softmax", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    for_rows(args.in[0].rows(), C, [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r) {
        const T* x = args.in[0].as<T>() + r * C;
        T* y = args.out[0].as<T>() + r * C;
        const A m = row_max(x, C);
        const A sum = row_exp_sum(x, C, m, [](int64_t, int, auto) {});
        const A log_sum = static_cast<A>(std::log(static_cast<double>(sum)));
        over_row<T>(C, [&](int64_t i, int part) __attribute__((always_inline)) {
          store_at(y, i, part, load_at(x, i, part) - m - log_sum);
        });
      }
    });
  });
}

PLM_KERNEL(log_softmax_grad) {
  const int64_t C = args.in[0].last();
  for_float("log_softmax_grad", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for_rows(args.in[0].rows(), C, [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r) {
        const T *y = args.in[0].as<T>() + r * C, *dy = args.in[1].as<T>() + r * C;
        T* dx = args.out[0].as<T>() + r * C;
        const auto s = sum_run(dy, C);
        over_row<T>(C, [&](int64_t i, int part) __attribute__((always_inline)) {
          store_at(dx, i, part, load_at(dy, i, part) - exp_nonpositive(load_at(y, i, part)) * s);
        });
      }
    });
  });
}

}  // namespace plmcore::PLM_ISA
