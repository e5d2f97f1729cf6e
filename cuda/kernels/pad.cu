// y is filled, then x goes to its place in it.
#include "device/bits.h"
#include "device/elementwise.cuh"
#include "device/move.cuh"

namespace plmcore::cuda {

namespace {
template <class T>
struct Padding {
  T value;
  __device__ __forceinline__ T operator()() const { return value; }
};
}  // namespace

PLM_KERNEL(pad) {
  const View &x = args.in[0], &y = args.out[0];
  const uint64_t bits = element_bits(args.f("value"), y.dtype);
  const char* why = for_bytes(y.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return elementwise_equal<T>(args, y, args.in, Padding<T>{static_cast<T>(bits)});
  });
  if (why) return why;
  Plan<2> plan;
  int64_t from = 1, to = 1, start = 0;
  for (int a = x.rank - 1; a >= 0; --a) {
    plan.add(x.size[a], {from, to});
    start += args.dim("before", a) * to;
    from *= x.size[a];
    to *= y.size[a];
  }
  return move(args, x, 0, y, start, plan);
}

}  // namespace plmcore::cuda
