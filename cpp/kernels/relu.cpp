// dx = dy where y > 0
#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(relu) {
  map1("relu", args, [](auto x) __attribute__((always_inline)) { return relu(x); });
}

PLM_KERNEL(relu_grad) {
  map2("relu_grad", args, [](auto y, auto dy) __attribute__((always_inline)) { return y > 0 ? dy : dy * 0; });
}

}  // namespace plmcore::PLM_ISA
