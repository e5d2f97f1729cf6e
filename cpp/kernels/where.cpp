#include "kernels/select.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(where) {
  for_bytes(args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    select<T>(args.out[0], args.in, args.in[1].as<T>(), args.in[2].as<T>());
  });
}

}  // namespace plmcore::PLM_ISA
