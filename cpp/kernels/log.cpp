#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(log) {
  map1("log", args, [](auto x) __attribute__((always_inline)) { return log(x); });
}

}  // namespace plmcore::PLM_ISA
