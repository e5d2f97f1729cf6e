// y[b, j] = x[b, beams[b, j]].   x [B, K, ...]; beams int [B, n] -> [B, n, ...]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor gather_beams(const Tensor& x, const Tensor& beams) {
  return dispatch(ops::gather_beams, {x, beams})[0];
}

static Specs infer(const InSpecs& in, const Attrs&) {
  in.expect(2);
  const Spec &x = in[0], &beams = in[1];
  require_index("gather_beams", beams);
  check(x.shape.rank() >= 2 && beams.shape.rank() == 2 && require_equal(x.shape[0], beams.shape[0]),
        "gather_beams: x must be [B, K, ...] and beams [B, n], got ", x, " and ", beams);
  Shape shape = x.shape;
  shape[1] = beams.shape[1];
  return {{shape, x.dtype}};
}

static Tensors backward(const Grad& g) {
  return {dispatch(ops::gather_beams_grad, {g.dy[0], g.in[1]}, {{"beams", g.in[0].shape()[1]}})[0], {}};
}

const OpDef ops::gather_beams = {"gather_beams", infer,   backward,
                                 saves(1),       saves(), {.meets = can_meet(DataError::index)}};

// dy, beams -> dx; a beam that was taken several times collects them all
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  const Spec &dy = in[0], &beams = in[1];
  float_dtype("gather_beams_grad", in, {0});
  require_index("gather_beams_grad", beams);
  check(dy.shape.rank() >= 2 && beams.shape.matches({dy.shape[0], dy.shape[1]}),
        "gather_beams_grad: dy must be [B, n, ...] and beams [B, n], got ", dy, " and ", beams);
  Shape shape = dy.shape;
  shape[1] = attrs.dim("beams");
  return {{shape, in[0].dtype}};
}

const OpDef ops::gather_beams_grad = {
    "gather_beams_grad", infer_grad, no_grad, saves(), saves(), {.meets = can_meet(DataError::index)}};

}  // namespace plmcore
