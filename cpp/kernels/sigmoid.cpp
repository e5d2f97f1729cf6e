// dx = dy y (1 - y)
#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(sigmoid) {
  map1("sigmoid", args, [](auto x) __attribute__((always_inline)) { return sigmoid(x); });
}

PLM_KERNEL(sigmoid_grad) {
  map2("sigmoid_grad", args, [](auto y, auto dy) __attribute__((always_inline)) { return dy * y * (1 - y); });
}

}  // namespace plmcore::PLM_ISA
