// y = op(a) op(b) over the last two axes; leading axes broadcast.   a [..., M, K], b [..., K, N] -> [..., M,
// N] A flag says that an operand's last two axes are stored the other way round.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  return dispatch(ops::matmul, {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}})[0];
}

static Shape leading(const Shape& s) { return Shape({s.begin(), static_cast<size_t>(s.rank() - 2)}); }

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  const DType dtype = float_dtype("matmul", in, {0, 1});
  const Shape &a = in[0].shape, &b = in[1].shape;
  check(a.rank() >= 2 && b.rank() >= 2, "matmul: both inputs need at least two axes, got ", a, " and ", b);
  const bool ta = attrs.flag("transpose_a"), tb = attrs.flag("transpose_b");
  const Dim M = a[a.rank() - (ta ? 1 : 2)], K = a[a.rank() - (ta ? 2 : 1)], K2 = b[b.rank() - (tb ? 1 : 2)],
            N = b[b.rank() - (tb ? 2 : 1)];
  check(require_equal(K, K2), "matmul: the summed axes must agree, got ", K, " and ", K2, " from ", a,
        ta ? " (transposed)" : "", " and ", b, tb ? " (transposed)" : "");
  Shape out = broadcast_shapes("matmul", leading(a), leading(b));
  out.push_back(M);
  out.push_back(N);
  return {{out, dtype}};
}

static Tensors backward(const Grad& g) {
  const Tensor &a = g.in[0], &b = g.in[1], &dy = g.dy[0];
  const bool ta = g.attrs.flag("transpose_a"), tb = g.attrs.flag("transpose_b");
  Tensors dx(2);
  if (g.want(0)) dx[0] = unbroadcast(ta ? matmul(b, dy, tb, true) : matmul(dy, b, false, !tb), a);
  if (g.want(1)) dx[1] = unbroadcast(tb ? matmul(dy, a, true, ta) : matmul(a, dy, !ta, false), b);
  return dx;
}

const OpDef ops::matmul = {"matmul", infer, backward, saves(0, 1), saves()};

}  // namespace plmcore
