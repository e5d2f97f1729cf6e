#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(exp) {
  map1("exp", args, [](auto x) __attribute__((always_inline)) { return exp(x); });
}

}  // namespace plmcore::PLM_ISA
