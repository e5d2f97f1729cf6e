// y = activation(x W^T + bias) with a weight of fewer bits, for inference.   x float32 [..., K] -> float32
// [..., N]; bias float32 [N] or none
//   weight bfloat16 [N, K]: widened to float32.
//   weight int8 [N, K], scale float32 [N]: W[n, k] = weight[n, k] scale[n]. A row of x is rounded to whole
//   numbers q with |q| <= Q = min(2^(bits - 1) - 1, (2^31 - 1) / (128 K)) by q = round(x Q / max |x|), the
//   sum of q weight[n] over k is an exact int32, and y = sum * (scale[n] max |x| / Q).
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor linear_quantized(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias,
                        Activation activation, int bits) {
  return dispatch(ops::linear_quantized, {x, weight, scale, bias},
                  {{"activation", activation}, {"bits", bits}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(4);
  attrs.code("activation", kActivations);
  if (attrs.has("bits"))  // a program of before has none, which means 13
    check<ValueError>(attrs.i("bits") == 8 || attrs.i("bits") == 13,
                      "linear_quantized: bits must be 8 or 13, got ", attrs.i("bits"));
  const Spec &x = in[0], &w = in[1];
  check<DTypeError>(x.dtype == DType::float32, "linear_quantized: x must be float32, got ", x);
  check(w.shape.rank() == 2, "linear_quantized: weight must be [N, K], got ", w);
  require_scale("linear_quantized", in, 1, 2);
  check(x.shape.rank() >= 1 && require_equal(x.shape.back(), w.shape[1]),
        "linear_quantized: the last axis of x must be ", w.shape[1], " (weight is ", w.shape, "), got ",
        x.shape);
  if (in.has(3)) require_spec("linear_quantized", "bias", in[3], {{w.shape[0]}, DType::float32});
  return {{x.shape.with_last(w.shape[0]), DType::float32}};
}

const OpDef ops::linear_quantized = {"linear_quantized", infer, no_grad, saves(), saves()};

}  // namespace plmcore
