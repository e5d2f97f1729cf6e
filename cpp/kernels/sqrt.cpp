// dx = dy / (2 y)
#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(sqrt) {
  map1("sqrt", args, [](auto x) __attribute__((always_inline)) { return sqrt(x); });
}

PLM_KERNEL(sqrt_grad) {
  map2("sqrt_grad", args, [](auto y, auto dy) __attribute__((always_inline)) { return dy / (2 * y); });
}

}  // namespace plmcore::PLM_ISA
