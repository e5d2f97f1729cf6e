// y = op(a) op(b) over the last two axes; leading axes broadcast.   a [..., M, K], b [..., K, N] -> [..., M,
// N] By cuBLASLt, in strided batches: leading axes that are one run in a, b and y are one call
// (device/axes.h), further ones a call for each of their positions.
#include "device/axes.h"
#include "device/kernel.h"
#include "runtime/matmul.h"

namespace plmcore::cuda {

namespace {

// The products, as elements of broadcast views: [...] of a, b and y without their last two axes.
View products_of(const View& x) {
  View leading = x;
  leading.rank = x.rank - 2;
  return leading;
}

// A call for each position of the axes from `axis` outwards.
const char* multiply_from(const Plan<3>& plan, int axis, Product p, cudaStream_t stream) {
  if (axis < 1) return multiply(p, stream);
  const auto move = [&](auto* from, int k) {
    return from + plan.stride[k][axis] * static_cast<int64_t>(size_of(p.dtype));
  };
  for (int64_t i = 0; i < plan.size[axis]; ++i) {
    if (const char* why = multiply_from(plan, axis - 1, p, stream)) return why;
    p.a = move(static_cast<const char*>(p.a), 0);
    p.b = move(static_cast<const char*>(p.b), 1);
    p.out = move(static_cast<char*>(p.out), 2);
  }
  return nullptr;
}

}  // namespace

PLM_KERNEL(matmul) {
  const View &a = args.in[0], &b = args.in[1], &y = args.out[0];
  const bool ta = args.i("transpose_a") != 0, tb = args.i("transpose_b") != 0;
  if (y.numel == 0) return nullptr;
  Product p{.transpose_a = ta,
            .transpose_b = tb,
            .M = y.size[y.rank - 2],
            .N = y.last(),
            .K = a.size[a.rank - (ta ? 2 : 1)],
            .dtype = y.dtype,
            .a = a.data,
            .b = b.data,
            .out = y.data};
  const View leading[2] = {products_of(a), products_of(b)};
  Plan<3> plan = broadcast_plan<3>(products_of(y), leading);
  const int64_t size[3] = {p.M * p.K, p.K * p.N, p.M * p.N};
  for (int k = 0; k < 3; ++k)
    for (int axis = 0; axis < plan.rank; ++axis) plan.stride[k][axis] *= size[k];
  if (plan.rank > 0) {
    p.batch = plan.size[0];
    p.stride_a = plan.stride[0][0];
    p.stride_b = plan.stride[1][0];
    p.stride_out = plan.stride[2][0];
  }
  if (p.batch >> 31) return "2^31 products and more are not on this device yet";
  return multiply_from(plan, plan.rank - 1, p, stream_of(args));
}

}  // namespace plmcore::cuda
