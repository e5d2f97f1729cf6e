// x is [outer, size, inner]; y takes every step-th of the rows [start, stop) of the middle axis, from the end
// of the range when the step is negative. The gradient clears dx and writes the rows that were taken.
#include <utility>

#include "device/move.cuh"

namespace plmcore::cuda {

namespace {
struct Walk {
  Plan<2> plan;  // x, then y
  int64_t start;  // the first element of x that is taken
};
Walk walk_of(const KernelArgs& args, const View& x, const View& y) {
  const int axis = static_cast<int>(args.i("axis"));
  const int64_t sign = args.i("step") > 0 ? 1 : -1, count = y.size[axis], inner = x.inner(axis),
                step = count > 1 ? args.i("step") : sign;  // a step that is not taken may be any number
  Walk walk;
  walk.plan.add(inner, {1, 1});
  walk.plan.add(count, {step * inner, inner});
  walk.plan.add(x.outer(axis), {x.size[axis] * inner, count * inner});
  walk.start = (sign > 0 ? args.dim("start") : args.dim("stop") - 1) * inner;
  return walk;
}
}  // namespace

PLM_KERNEL(slice) {
  const View &x = args.in[0], &y = args.out[0];
  const Walk walk = walk_of(args, x, y);
  return move(args, x, walk.start, y, 0, walk.plan);
}

PLM_KERNEL(slice_grad) {
  const View &dy = args.in[0], &dx = args.out[0];
  if (dx.numel == 0) return nullptr;
  if (const char* why = problem(
          cudaMemsetAsync(dx.data, 0, static_cast<size_t>(dx.numel) * size_of(dx.dtype), stream_of(args))))
    return why;
  const Walk walk = walk_of(args, dx, dy);
  Plan<2> back = walk.plan;
  for (int a = 0; a < back.rank; ++a) std::swap(back.stride[0][a], back.stride[1][a]);
  return move(args, dy, 0, dx, walk.start, back);
}

}  // namespace plmcore::cuda
