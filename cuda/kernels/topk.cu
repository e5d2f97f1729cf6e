// The k largest elements of the last axis in descending order, and their positions; NaN counts as the
// largest, the first of equals comes first.   x [rows, n] -> [rows, k] twice.   By tiles (device/best.cuh):
// one read of x.
#include "device/best.cuh"

namespace plmcore::cuda {

static Workspace workspace(const KernelArgs& args) {
  const View& x = args.in[0];
  return {.shared = best_bytes(x.rows(), x.last(), args.out[0].last(), size_of(x.dtype))};
}

PLM_KERNEL(topk, workspace) {
  const View &x = args.in[0], &y = args.out[0];
  if (y.last() > x.last()) return "k must be at most the last axis of x";
  return for_float(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return best_of_rows<Larger>(args, x.as<T>(), x.rows(), x.last(), y.last(), y.as<T>(),
                                args.out[1].as<int64_t>(), args.shared, NothingElse{});
  });
}

}  // namespace plmcore::cuda
