#include "kernels/arithmetic.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(sub) {
  arithmetic2("sub", args, [](auto a, auto b) __attribute__((always_inline)) { return a - b; });
}

}  // namespace plmcore::PLM_ISA
