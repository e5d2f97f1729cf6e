// dx = dy sign(x)
#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(abs) {
  map1("abs", args, [](auto x) __attribute__((always_inline)) { return abs(x); });
}

PLM_KERNEL(abs_grad) {
  map2("abs_grad", args,
       [](auto x, auto dy) __attribute__((always_inline)) { return x > 0 ? dy : (x < 0 ? -dy : x * 0); });
}

}  // namespace plmcore::PLM_ISA
