// Adafactor (Shazeer and Stern 2018), without momentum.
//   g = scale * grad;  s = g^2 + eps;  beta = 1 - step^-power
//   a matrix [..., C] keeps the means of s over its rows and columns:
//     m = beta m + (1 - beta) mean_C(s) [...];  v = beta v + (1 - beta) mean_...(s) [C]
//     u = g / sqrt(m / mean(m) * v)
//   a vector or number keeps v = beta v + (1 - beta) s and has no m;  u = g / sqrt(v)
//   p = p (1 - lr * weight_decay) - lr * size * u / max(1, rms(u) / threshold)
// where size = max(floor, rms(p)) if `relative`, else 1. In place over param, m, v.
#include "ops/shape_rules.h"
#include "ops/step_rules.h"

namespace plmcore {

void adafactor_step(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                    const StepOptions& options, const Tensor& scale) {
  step(optimisers::adafactor, param, grad, {m, v}, options, scale);
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  const char* op = "adafactor_step";
  require_dense(op, in, 5);
  const DType state = sum_dtype(float_dtype(op, in, {0, 1}));
  const Spec &param = in[0], &grad = in[1];
  check(grad.shape.matches(param.shape), op, ": the gradient must have the shape of param ", param.shape,
        ", got ", grad.shape);
  const bool matrix = param.shape.rank() >= 2;
  check(in.has(3) && in.has(2) == matrix, op, ": a matrix has m and v, a vector v alone; param is ", param);
  const Spec columns{matrix ? Shape{param.shape.back()} : param.shape, state};
  check(in[3].shape.matches(columns.shape) && in[3].dtype == state, op, ": v must be ", columns,
        " for a param ", param, ", got ", in[3]);
  if (matrix) {
    const Spec rows{param.shape.drop_last(), state};
    check(in[2].shape.matches(rows.shape) && in[2].dtype == state, op, ": m must be ", rows, " for a param ",
          param, ", got ", in[2]);
  }
  if (in.has(4))
    check(in[4].shape.rank() == 0 && in[4].dtype == DType::float32, op, ": scale must be float32[], got ",
          in[4]);
  for (const char* key : {"lr", "eps", "weight_decay", "power", "floor"})
    check<ValueError>(attrs.f(key) >= 0, op, ": ", key, " must not be negative, got ", attrs.f(key));
  check<ValueError>(attrs.f("threshold") > 0, op, ": threshold must be positive, got ", attrs.f("threshold"));
  check<ValueError>(attrs.i("step") >= 1, op, ": step counts from 1, got ", attrs.i("step"));
  attrs.flag("relative");
  return {};
}

const OpDef ops::adafactor_step = {"adafactor_step", infer,   no_grad,
                                   saves(),          saves(), {.mutates = saves(0, 2, 3)}};

static std::optional<Shape> factors(char moment, const Shape& param, const AttrList&) {
  if (param.rank() < 2) return moment == 'v' ? std::optional(param) : std::nullopt;
  return moment == 'm' ? param.drop_last() : Shape{param.back()};
}
const Optimiser optimisers::adafactor = {"adafactor",
                                         ops::adafactor_step,
                                         {{"lr", 1e-2},
                                          {"eps", 1e-30},
                                          {"weight_decay", 0.0},
                                          {"power", 0.8},
                                          {"floor", 1e-3},
                                          {"threshold", 1.0},
                                          {"relative", true},
                                          {"step", 1}},
                                         "mv",
                                         factors};

}  // namespace plmcore
