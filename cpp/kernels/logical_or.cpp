#include "kernels/arithmetic.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(logical_or) {
  broadcast2_scalar<uint8_t, uint8_t>(
      args, [](uint8_t a, uint8_t b) __attribute__((always_inline)) { return static_cast<uint8_t>(a | b); });
}

}  // namespace plmcore::PLM_ISA
