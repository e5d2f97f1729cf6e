#include "kernels/extremum.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(argmax) {
  extremum<Larger>("argmax", args.in[0], static_cast<int>(args.i("axis")), nullptr,
                   args.out[0].as<int64_t>());
}

}  // namespace plmcore::PLM_ISA
