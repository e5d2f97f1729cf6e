// dx = -dy y^3 / 2
#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(rsqrt) {
  map1("rsqrt", args, [](auto x) __attribute__((always_inline)) { return 1 / sqrt(x); });
}

PLM_KERNEL(rsqrt_grad) {
  map2("rsqrt_grad", args, [](auto y, auto dy) __attribute__((always_inline)) {
    using S = std::remove_reference_t<decltype(y[0])>;
    return dy * (y * y) * (y * S(-0.5));
  });
}

}  // namespace plmcore::PLM_ISA
