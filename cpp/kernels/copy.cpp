#include "kernels/move.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(copy) {
  const int64_t bytes = args.out[0].numel * static_cast<int64_t>(size_of(args.out[0].dtype));
  copy_rows(1, bytes, args.out[0].as<char>(), bytes, args.in[0].as<char>(), bytes);
}

}  // namespace plmcore::PLM_ISA
