#include "kernels/arithmetic.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(not_equal) {
  compare2(args, [](auto a, auto b) __attribute__((always_inline)) { return a != b; });
}

}  // namespace plmcore::PLM_ISA
