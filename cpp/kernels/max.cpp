#include "kernels/extremum.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(max) {
  extremum<Larger>("max", args.in[0], static_cast<int>(args.i("axis")), args.out[0].data,
                   args.out[1].as<int64_t>());
}

}  // namespace plmcore::PLM_ISA
