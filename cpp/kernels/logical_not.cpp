#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(logical_not) {
  const uint8_t* a = args.in[0].as<uint8_t>();
  uint8_t* y = args.out[0].as<uint8_t>();
  for_chunks(args.out[0].numel, kGrain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) y[i] = a[i] ^ 1;
  });
}

}  // namespace plmcore::PLM_ISA
