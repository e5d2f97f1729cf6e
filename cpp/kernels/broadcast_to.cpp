#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(broadcast_to) {
  const View& out = args.out[0];
  if (out.numel == 0) return;
  const Broadcast<1> bc(out, args.in);
  for_bytes(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* x = args.in[0].as<T>();
    T* y = out.as<T>();
    const bool repeats = bc.stride[0][0] == 0;
    over_segments(bc, [&](const int64_t* at, int64_t to, int64_t n) {
      if (!repeats) std::memcpy(y + to, x + at[0], static_cast<size_t>(n) * sizeof(T));
      else
        for (int64_t i = 0; i < n; ++i) y[to + i] = x[at[0]];
    });
  });
}

}  // namespace plmcore::PLM_ISA
