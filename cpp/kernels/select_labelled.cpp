#include "kernels/selection.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(select_labelled) {
  const View &x = args.in[0], &labels = args.in[1], &index = args.out[2];
  const int64_t ignore = args.i("ignore_index");
  for_index("select_labelled", labels.dtype, [&](auto type) {
    using I = typename decltype(type)::type;
    write_index(index, labels.numel, [&](int64_t r) { return labels.as<I>()[r] != ignore; });
  });
  copy_chosen(x, index, args.out[0], x.inner(1) * static_cast<int64_t>(size_of(x.dtype)));
  copy_chosen(labels, index, args.out[1], static_cast<int64_t>(size_of(labels.dtype)));
}

}  // namespace plmcore::PLM_ISA
