// dx = dy s (1 + x (1 - s)),  s = sigmoid(x)
#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(silu) {
  map1("silu", args, [](auto x) __attribute__((always_inline)) { return silu(x); });
}

PLM_KERNEL(silu_grad) {
  map2("silu_grad", args, [](auto x, auto dy) __attribute__((always_inline)) { return dy * silu_slope(x); });
}

}  // namespace plmcore::PLM_ISA
