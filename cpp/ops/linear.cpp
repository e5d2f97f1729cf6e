// y = activation(x W^T + bias).   x [..., K]; weight [N, K]; bias [N] or none -> [..., N]
// With gradients on and an activation whose slope needs it, the sum before the activation is a second output.
//   dz = dy * activation'(z);  dx = dz W;  dweight = dz^T x;  dbias = sum of dz over the rows
#include <algorithm>

#include "core/device.h"
#include "kernels/gemm_space.h"
#include "ops/kept_weight.h"
#include "ops/shape_rules.h"
#include "ops/stored_weight.h"
#include "plmcore/ops.h"
#include "program/trace.h"

namespace plmcore {

static bool needs_sum(Activation a) { return a == Activation::gelu || a == Activation::gelu_tanh || a == Activation::silu; }

static constexpr int64_t kRowsWorthPacking = 64;

// Rows of x where the product may read the weight in another layout than [N, K], else 0: then `infer` has the last word.
static int64_t rows_of_any_layout(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (Tracer::current() || !x.has_data() || !x.device().is_cpu() || x.dtype() != DType::float32 || weight.dtype() != DType::float32)
    return 0;
  if (x.rank() < 1 || weight.rank() != 2 || x.numel() == 0 || x.shape().back() != weight.shape()[1]) return 0;
  if (bias.defined() && (bias.dtype() != DType::float32 || !bias.shape().matches({weight.shape()[0]}))) return 0;
  return x.numel() / x.shape().back().value();
}

// Our own products lose an eighth over [K, N], and keep no packed copies of parts: after so many the better layout pays. A BLAS loses
// nothing.
constexpr int kStoredReads = 4;
static bool wants_layout(const StoredWeight& w) { return w.parts.empty() || (own_products() && w.reads > kStoredReads); }
static Tensor linear_as_stored(const Tensor& x, const StoredWeight& weight, const Tensor& bias, Activation activation) {
  Tensors columns;
  Dim from = 0;
  const Tensor rows = reshape(x, {x.numel() / x.shape().back().value(), x.shape().back()});
  for (const Tensor& part : weight.parts) {
    const Dim n = part.shape()[weight.transposed ? 1 : 0];
    const Tensor b = bias.defined() ? narrow(bias, from, n) : bias;
    if (weight.transposed) {
      const Tensor y = matmul(rows, part);
      columns.push_back(activate(b.defined() ? add(y, b) : y, activation));
    } else {
      columns.push_back(linear(rows, part, b, activation));
    }
    from = from + n;
  }
  const Tensor y = columns.size() == 1 ? columns[0] : concat(columns, 1);
  return reshape(y, x.shape().with_last(from));
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  const bool grads = grad_enabled() && (x.requires_grad() || weight.requires_grad() || (bias.defined() && bias.requires_grad()));
  const int64_t rows = grads ? 0 : rows_of_any_layout(x, weight, bias);
  if (rows > kGemmFewRows && rows <= kGemmRows)  // a single row would read it across, and with many a better layout pays
    if (const StoredWeight stored = stored_weight(weight); !wants_layout(stored)) return linear_as_stored(x, stored, bias, activation);
  if (rows >= kRowsWorthPacking)
    if (const Tensor packed = kept_packed(weight, rows <= kGemmRows); packed.defined())
      return linear_packed(x, packed, bias, weight.shape()[0], activation);
  return dispatch(ops::linear, {x, weight, bias}, {{"activation", activation}, {"keep_sum", grads && needs_sum(activation)}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(3);
  attrs.code("activation", kActivations);
  const DType dtype = float_dtype("linear", in, {0, 1, 2});
  const Spec &x = in[0], &w = in[1];
  check(w.shape.rank() == 2, "linear: weight must be [N, K], got ", w);
  check(x.shape.rank() >= 1 && require_equal(x.shape.back(), w.shape[1]), "linear: the last axis of x must be ", w.shape[1], " (weight is ",
        w.shape, "), got ", x.shape);
  if (in.has(2))
    check(in[2].shape.matches({w.shape[0]}), "linear: bias must be [", w.shape[0], "] (weight is ", w.shape, "), got ", in[2].shape);
  const Spec y = {x.shape.with_last(w.shape[0]), dtype};
  if (attrs.flag("keep_sum")) return {y, y};
  return {y};
}

// The activation's slope comes from the sum where it was kept, from y otherwise; without one neither is read.
static Tensors backward(const Grad& g) {
  const auto activation = static_cast<Activation>(g.attrs.i("activation"));
  const Tensor none;
  const Tensor& at = needs_sum(activation) ? g.out[1] : activation == Activation::none ? none : g.out[0];
  const int64_t want = (g.want(0) ? 1 : 0) | (g.want(1) ? 2 : 0) | (g.want(2) ? 4 : 0);
  const Tensors grads = dispatch(ops::linear_grad, {g.in[0], g.in[1], g.dy[0], at}, {{"activation", activation}, {"want", want}});
  Tensors dx(3);
  size_t next = 0;
  for (size_t i = 0; i < 3; ++i)
    if (g.want(i)) dx[i] = grads[next++];
  return dx;
}

static uint64_t reads_out(const Attrs& attrs) {
  const auto activation = static_cast<Activation>(attrs.i("activation"));
  return activation == Activation::none ? saves() : needs_sum(activation) ? saves(1) : saves(0);
}

const OpDef ops::linear = {"linear", infer, backward, saves(0, 1), saves(0, 1), {.reads_out = reads_out}};

// x, weight, dy, sum or y -> those of dx, dweight, dbias that `want` names
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  in.expect(4);
  const DType dtype = float_dtype("linear_grad", in, {0, 1, 2, 3});
  const Spec &x = in[0], &w = in[1];
  check(w.shape.rank() == 2, "linear_grad: weight must be [N, K], got ", w);
  check(x.shape.rank() >= 1 && require_equal(x.shape.back(), w.shape[1]), "linear_grad: the last axis of x must be ", w.shape[1],
        " (weight is ", w.shape, "), got ", x.shape);
  const Shape y = x.shape.with_last(w.shape[0]);
  require_shape("linear_grad", "dy", in[2], y);
  if (attrs.code("activation", kActivations)) require_shape("linear_grad", "the sum or y", in[3], y);
  const int64_t want = attrs.code("want", 8);
  Specs out;
  if (want & 1) out.push_back(x);
  if (want & 2) out.push_back(w);
  if (want & 4) out.push_back({{w.shape[0]}, dtype});
  return out;
}

const OpDef ops::linear_grad = {"linear_grad", infer_grad, no_grad, saves(), saves()};

}  // namespace plmcore
