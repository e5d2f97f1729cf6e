// dx = dy (1 - y^2)
#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(tanh) {
  map1("tanh", args, [](auto x) __attribute__((always_inline)) { return tanh(x); });
}

PLM_KERNEL(tanh_grad) {
  map2("tanh_grad", args, [](auto y, auto dy) __attribute__((always_inline)) { return dy * (1 - y * y); });
}

}  // namespace plmcore::PLM_ISA
