#include "ops/step_rules.h"

#include "ops/shape_rules.h"

namespace plmcore {

Specs infer_step(const char* op, const InSpecs& in, const Attrs& attrs, size_t moments, bool optional) {
  const size_t scale = 2 + moments, rows = 3 + moments;
  in.expect(rows + 1);
  const DType dtype = float_dtype(op, in, {0, 1});
  const Spec &param = in[0], &grad = in[1];
  if (in.has(rows)) {
    check<DTypeError>(in[rows].dtype == DType::int64, op, ": rows must be int64, got ", in[rows]);
    check(param.shape.rank() >= 1 && in[rows].shape.rank() == 1, op,
          ": a row-sparse gradient needs a param with axes and rows [n], got ", param, " and ", in[rows]);
    Shape want = param.shape;
    want[0] = in[rows].shape[0];
    check(grad.shape.matches(want), op, ": the values of a row-sparse gradient must be ", want, ", got ",
          grad.shape);
  } else {
    check(grad.shape.matches(param.shape), op, ": the gradient must have the shape of param ", param.shape,
          ", got ", grad.shape);
  }
  const DType state = sum_dtype(dtype);
  for (size_t k = 2; k < scale; ++k) {
    if (optional && !in.has(k)) continue;
    check(in.has(k), op, ": the moments are missing");
    check(in[k].shape.matches(param.shape) && in[k].dtype == state, op, ": the moments must be ",
          Spec{param.shape, state}, " for a param ", param, ", got ", in[k]);
  }
  if (in.has(scale))
    check(in[scale].shape.rank() == 0 && in[scale].dtype == DType::float32, op,
          ": scale must be float32[], got ", in[scale]);
  check<ValueError>(attrs.f("lr") >= 0, op, ": lr must not be negative, got ", attrs.f("lr"));
  check<ValueError>(attrs.f("weight_decay") >= 0, op, ": weight_decay must not be negative, got ",
                    attrs.f("weight_decay"));
  if (attrs.has("lazy")) attrs.flag("lazy");  // no need of it without rows
  return {};
}

Specs infer_adam(const char* op, const InSpecs& in, const Attrs& attrs, int64_t first) {
  for (const char* key : {"beta1", "beta2"})
    check<ValueError>(attrs.f(key) >= 0 && attrs.f(key) < 1, op, ": ", key, " must be in [0, 1), got ",
                      attrs.f(key));
  require_eps(op, attrs);
  check<ValueError>(attrs.i("step") >= first, op, ": step counts from ", first, ", got ", attrs.i("step"));
  return infer_step(op, in, attrs, 2);
}

void require_dense(const char* op, const InSpecs& in, size_t rows) {
  check(!in.has(rows), op, ": needs the gradient of the whole param, got rows of it");
}

AttrList adam_options(double lr, double eps, double weight_decay, const Attr& own) {
  return {
      {"lr", lr}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", eps}, {"weight_decay", weight_decay}, {"step", 1},
      own};
}

}  // namespace plmcore
