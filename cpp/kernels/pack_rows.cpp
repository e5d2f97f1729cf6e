#include "kernels/selection.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(pack_rows) {
  const View &x = args.in[0], &mask = args.in[1];
  write_index(args.out[1], mask.numel, [&](int64_t r) { return mask.as<uint8_t>()[r] != 0; });
  copy_chosen(x, args.out[1], args.out[0], x.inner(1) * static_cast<int64_t>(size_of(x.dtype)));
}

}  // namespace plmcore::PLM_ISA
