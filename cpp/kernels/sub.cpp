#include "kernels/arithmetic.h"
#include "kernels/wrap.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(sub) {
  arithmetic2("sub", args,
              [](auto a, auto b) __attribute__((always_inline)) { return unsigned_of(a) - unsigned_of(b); });
}

}  // namespace plmcore::PLM_ISA
