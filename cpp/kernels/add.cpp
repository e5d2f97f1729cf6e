#include "kernels/arithmetic.h"
#include "kernels/wrap.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(add) {
  arithmetic2("add", args,
              [](auto a, auto b) __attribute__((always_inline)) { return unsigned_of(a) + unsigned_of(b); });
}

}  // namespace plmcore::PLM_ISA
