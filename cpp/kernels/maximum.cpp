#include "kernels/arithmetic.h"

namespace plmcore::PLM_ISA {

// The comparison picks b where b is NaN; a NaN in a is put back.
PLM_KERNEL(maximum) {
  arithmetic2("maximum", args, [](auto a, auto b) __attribute__((always_inline)) {
    const auto y = a > b ? a : b;
    return a != a ? a : y;
  });
}

}  // namespace plmcore::PLM_ISA
