// x [B, K, ...], beams [B, n]:  y[b, j] = x[b, beams[b, j]].
#include "device/indexed.cuh"

namespace plmcore::cuda {

PLM_KERNEL(gather_beams) {
  const View &x = args.in[0], &y = args.out[0];
  return take<IndexOf::run>(args, ops::id_gather_beams, x, args.in[1], y,
                            {x.size[0], x.size[1], y.size[1], x.inner(1)});
}
PLM_KERNEL(gather_beams_grad, float_sums) {
  const View &dy = args.in[0], &dx = args.out[0];
  return add<IndexOf::run>(args, ops::id_gather_beams_grad, nullptr, args.in[1], dy,
                           {dx.size[0], dx.size[1], dy.size[1], dx.inner(1)});
}

}  // namespace plmcore::cuda
