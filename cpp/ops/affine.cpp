// y = x * scale + shift with two numbers. On integers both must be whole.
#include <cmath>

#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor affine(const Tensor& x, double scale, double shift) {
  return dispatch(ops::affine, {x}, {{"scale", scale}, {"shift", shift}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const double scale = attrs.f("scale"), shift = attrs.f("shift");
  check<DTypeError>(in[0].dtype != DType::boolean, "affine: not defined on bool; cast first");
  check<DTypeError>(is_float(in[0].dtype) || (std::trunc(scale) == scale && std::trunc(shift) == shift),
                    "affine: scale and shift must be whole numbers for ", in[0], ", got ", scale, " and ",
                    shift);
  if (!is_float(in[0].dtype)) {  // computed in int64, then cut to the dtype
    require_element("affine", "scale", scale, DType::int64);
    require_element("affine", "shift", shift, DType::int64);
  }
  return {in[0]};
}

static Tensors backward(const Grad& g) { return {affine(g.dy[0], g.attrs.f("scale"), 0)}; }

const OpDef ops::affine = {"affine", infer, backward, saves(), saves()};

}  // namespace plmcore
