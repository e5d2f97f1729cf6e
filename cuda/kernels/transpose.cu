// Writes go in the order of y. Where the last axis stays last, both sides move in packs.
#include "device/move.cuh"

namespace plmcore::cuda {

PLM_KERNEL(transpose) {
  const View &x = args.in[0], &y = args.out[0];
  const Attr* order = args.find("order");
  int64_t stride[Shape::kMaxRank], run = 1;
  for (int a = x.rank - 1; a >= 0; --a) {
    stride[a] = run;
    run *= x.size[a];
  }
  Plan<2> plan;
  run = 1;
  for (int a = y.rank - 1; a >= 0; --a) {
    plan.add(y.size[a], {stride[order->dims[a].rep()], run});
    run *= y.size[a];
  }
  return move(args, x, 0, y, 0, plan);
}

}  // namespace plmcore::cuda
