// y = x * keep / (1 - p); keep is 0 with probability p, in steps of 2^-16, else 1.   x [...]; locked: x [B,
// T, C], one mask [B, 1, C]. The second input is the (seed, offset) of the mask. Saved for backward: the
// mask, one bit an element.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"
#include "plmcore/random.h"

namespace plmcore {

Tensor dropout(const Tensor& x, double p, bool locked) {
  check<ValueError>(p >= 0 && p <= 1, "dropout: p must be in [0, 1], got ", p);
  check<DTypeError>(is_float(x.dtype()), "dropout: needs a float dtype, got ", x);
  check(!locked || x.rank() == 3, "dropout: the locked form needs x [B, T, C], got ", x);
  if (p == 0) return x;
  const Tensor state = next_random(locked ? x.shape()[0] * x.shape()[2] : x.shape().numel());
  const bool packed = x.rank() > 0 && x.shape().back().known();
  return dispatch(ops::dropout, {x, state}, {{"p", p}, {"locked", locked}, {"packed", packed}})[0];
}

// Bytes for the bits: the shape of the mask with an eighth of the last axis, rounded up; the whole of it
// where that is a symbol, which cannot be divided.
static Spec bits_of(const char* op, const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  float_dtype(op, in, {0});
  const Shape& x = in[0].shape;
  const double p = attrs.f("p");
  check<ValueError>(p >= 0 && p <= 1, op, ": p must be in [0, 1], got ", p);
  check(!attrs.flag("locked") || x.rank() == 3, op, ": the locked form needs x [B, T, C], got ", in[0]);
  check(!attrs.flag("packed") || x.rank() >= 1, op, ": packed bits need an x with axes, got ", in[0]);
  Shape bits = attrs.flag("locked") ? Shape{x[0], x[2]} : x;
  if (attrs.flag("packed")) bits = bits.with_last((bits.back().value() + 7) / 8);
  return {bits, DType::uint8};
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  const Spec bits = bits_of("dropout", in, attrs);
  require_random("dropout", in[1]);
  return {in[0], bits};
}

static Tensors backward(const Grad& g) {
  return {dispatch(ops::dropout_grad, {g.dy[0], g.out[1]}, g.attrs)[0], {}};
}

// Locked: the mask as floats [B, C].
const OpDef ops::dropout = {"dropout", infer, backward, saves(), saves(1), {.host_in = saves(1)}};

// dy, bits -> dx
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  require_spec("dropout_grad", "the mask", in[1], bits_of("dropout_grad", in, attrs));
  return {in[0]};
}

const OpDef ops::dropout_grad = {"dropout_grad", infer_grad, no_grad, saves(), saves()};

}  // namespace plmcore
