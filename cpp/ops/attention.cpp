// out = softmax(scale q k^T + bias) v over the keys that a query may see.   q [B, T, H, D]; k, v [B, S, H, D]
// With dropout the weights are multiplied by 0 or 1 / (1 - p) after softmax. Saved for backward: out, and the
// log-sum of each query's scores to base 2, [B, H, T], float32 (float64 for float64 q). The layouts and masks
// are in plmcore/ops.h.
#include "core/attention_inputs.h"
#include "ops/shape_rules.h"
#include "plmcore/ops.h"
#include "plmcore/random.h"

#include <cmath>

namespace plmcore {

using namespace attention_inputs;

// The sizes of a call. Ragged: T = S = the rows of all sequences.
namespace {
struct Sizes {
  bool ragged, packed_qkv, packed_kv;
  Dim B, T, S, H, D;
};
}  // namespace

static Sizes sizes_of(const char* op, const InSpecs& in) {
  Sizes n;
  n.ragged = in.has(kOffsets);
  n.packed_qkv = !in.has(kK);
  n.packed_kv = !n.packed_qkv && !in.has(kV);
  check(!n.packed_qkv || !in.has(kV), op, ": v is given without k");
  const int rows = n.ragged ? 1 : 2;  // axes before the heads: [N], or [B, T]
  const Shape& q = in[kQ].shape;
  check(q.rank() == rows + 2 + n.packed_qkv, op, ": ",
        n.packed_qkv ? (n.ragged ? "qkv must be [N, 3, H, D]" : "qkv must be [B, T, 3, H, D]")
                     : (n.ragged ? "q must be [N, H, D]" : "q must be [B, T, H, D]"),
        ", got ", q);
  n.H = q[q.rank() - 2];
  n.D = q.back();
  n.B = n.ragged ? in[kOffsets].shape[0] - 1 : q[0];
  n.T = n.S = q[rows - 1];
  check(!n.D.is(0), op, ": the heads must not be of width 0, got ", q);
  if (n.packed_qkv) {
    check(q[rows].is(3), op, ": the axis before the heads of qkv must be 3, got ", q);
    return n;
  }
  const Shape& k = in[kK].shape;
  check(k.rank() == rows + 2 + n.packed_kv, op, ": ",
        n.packed_kv ? (n.ragged ? "kv must be [N, 2, H, D]" : "kv must be [B, S, 2, H, D]")
                    : (n.ragged ? "k must be [N, H, D]" : "k must be [B, S, H, D]"),
        ", got ", k);
  check(!n.packed_kv || k[rows].is(2), op, ": the axis before the heads of kv must be 2, got ", k);
  n.S = k[rows - 1];
  check(require_equal(k[0], q[0]) && require_equal(k[k.rank() - 2], n.H) && require_equal(k.back(), n.D), op,
        ": q and k must agree in ", n.ragged ? "rows" : "batch", ", heads and head width, got ", q, " and ",
        k);
  check(n.packed_kv || in[kV].shape.matches(k), op, ": v must be ", k, " like k, got ",
        n.packed_kv ? k : in[kV].shape);
  return n;
}

static void check_per_sequence(const char* op, const InSpecs& in, Dim B) {
  for (const auto& [i, name] : {std::pair{kLengths, "lengths"}, {kPrefix, "prefix"}, {kStart, "start"}}) {
    if (!in.has(i)) continue;
    check<DTypeError>(is_index(in[i].dtype), op, ": ", name, " must be int64 or int32, got ", in[i]);
    check(in[i].shape.matches({B}), op, ": ", name, " must be [", B, "], one per sequence, got ",
          in[i].shape);
  }
}

static bool is_one_or(Dim d, Dim n) { return d.is(1) || require_equal(d, n); }
// What attention and its gradient are given: the sizes, when everything fits.
static Sizes check_inputs(const char* op, const InSpecs& in, const Attrs& attrs) {
  float_dtype(op, in, {kQ, kK, kV, kBias});
  if (in.has(kOffsets))
    check(in[kOffsets].shape.rank() == 1 && !in[kOffsets].shape[0].is(0) && is_index(in[kOffsets].dtype), op,
          ": offsets must be int64 or int32 [B + 1], got ", in[kOffsets]);
  const Sizes n = sizes_of(op, in);
  check_per_sequence(op, in, n.B);
  const bool causal = attrs.flag("causal"), weights = attrs.flag("weights");
  check<ValueError>(
      causal || (attrs.i("band") == 0 && attrs.i("stride") == 0 && !in.has(kPrefix) && !in.has(kStart)), op,
      ": band, stride, prefix and start need causal=True");
  check<ValueError>(attrs.i("band") >= 0 && attrs.i("stride") >= 0, op,
                    ": band and stride must not be negative, got ", attrs.i("band"), " and ",
                    attrs.i("stride"));
  check<ValueError>(!n.ragged || (!in.has(kLengths) && !in.has(kStart) && !weights), op,
                    ": lengths, start and weights need rows with a batch axis, offsets were given");
  const double p = attrs.f("dropout");
  check<ValueError>(p >= 0 && p < 1, op, ": dropout must be in [0, 1), got ", p);
  if (p > 0) require_random(op, in[kRandom]);
  attrs.f("scale");
  if (in.has(kMask)) {
    const Spec& m = in[kMask];
    check<DTypeError>(m.dtype == DType::boolean, op, ": mask must be bool, true where a query may look, got ",
                      m);
    check(m.shape.rank() == 4 && is_one_or(m.shape[0], n.B) && is_one_or(m.shape[1], n.H) &&
              (n.ragged || (is_one_or(m.shape[2], n.T) && require_equal(m.shape[3], n.S))),
          op, ": mask must be [", n.B, " or 1, ", n.H, " or 1, ", n.T, " or 1, ", n.S, "], got ", m.shape);
  }
  if (in.has(kBias)) {
    const Shape& s = in[kBias].shape;
    check(s.rank() == 4 && is_one_or(s[0], n.B) && is_one_or(s[1], n.H) &&
              (n.ragged || (require_equal(s[2], n.T) && require_equal(s[3], n.S))),
          op, ": bias must be [", n.B, " or 1, ", n.H, " or 1, ", n.T, ", ", n.S, "], got ", s);
  }
  return n;
}

// What the op gives, after check_inputs: out, the log-sums (largest scores, then logarithms of the sums
// relative to them), the weights when they are asked for.
static Specs outputs_of(const Sizes& n, DType dtype, bool weights) {
  Specs out = {{n.ragged ? Shape{n.T, n.H, n.D} : Shape{n.B, n.T, n.H, n.D}, dtype},
               {n.ragged ? Shape{2, n.H, n.T} : Shape{2, n.B, n.H, n.T}, sum_dtype(dtype)}};
  if (weights) out.push_back({{n.B, n.H, n.T, n.S}, dtype});
  return out;
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(kInputs);
  return outputs_of(check_inputs("attention", in, attrs), in[kQ].dtype, attrs.flag("weights"));
}

Tensors attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  check(q.defined() && q.rank() >= 3, "attention: q must be [B, T, H, D], got ", q);
  Tensor random;
  if (o.dropout > 0) {
    // Each row of the weights takes whole groups of random blocks: at most S / 8 + 16 of them.
    const Tensor& keys = k.defined() ? k : q;
    const Dim rows = o.offsets.defined() ? q.size(0) : q.size(0) * q.size(1),
              S = keys.size(o.offsets.defined() ? 0 : 1);
    random = next_random(rows * q.size(-2) * (S + 16));
  }
  const double scale = o.scale < 0 ? 1 / std::sqrt(static_cast<double>(q.size(-1).value())) : o.scale;
  Tensors out =
      dispatch(ops::attention, {q, k, v, o.lengths, o.mask, o.bias, o.offsets, o.prefix, o.start, random},
               {{"causal", o.causal},
                {"band", o.band},
                {"stride", o.stride},
                {"scale", scale},
                {"dropout", o.dropout},
                {"weights", o.weights}});
  if (o.weights) return {out[0], out[2]};
  return {out[0]};
}

static Tensors backward(const Grad& g) {
  const bool weights = g.out.size() > 2 && g.dy[2].defined(), bias = g.in[kBias].defined() && g.want(kBias);
  const Tensor none;
  AttrList attrs = g.attrs;
  attrs.push_back({"bias_grad", bias});
  const Tensors d = dispatch(ops::attention_grad,
                             {g.in[kQ], g.in[kK], g.in[kV], g.in[kLengths], g.in[kMask], g.in[kBias],
                              g.in[kOffsets], g.in[kPrefix], g.in[kStart], g.in[kRandom], g.out[0], g.out[1],
                              g.dy[0], weights ? g.out[2] : none, weights ? g.dy[2] : none},
                             attrs);
  Tensors dx(kInputs);
  size_t next = 0;
  for (const Input i : {kQ, kK, kV})
    if (g.in[i].defined()) dx[i] = d[next++];
  if (bias) dx[kBias] = d[next];
  return dx;
}

const OpDef ops::attention = {"attention",
                              infer,
                              backward,
                              saves(kQ, kK, kV, kLengths, kMask, kBias, kOffsets, kPrefix, kStart, kRandom),
                              saves(0, 1, 2),
                              {.exact_out = saves(1),
                               .host_in = saves(kRandom),
                               .meets = can_meet(DataError::offset, DataError::position, DataError::cover)}};

// The inputs of attention, out, lse, dout, weights, dweights -> dq, dk, dv (those that were given), dbias if
// asked for
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  constexpr const char* op = "attention_grad";
  in.expect(kDweights + 1);
  const Specs made = outputs_of(check_inputs(op, in, attrs), in[kQ].dtype, attrs.flag("weights"));
  require_spec(op, "out", in[kOut], made[0]);
  require_spec(op, "the log-sums", in[kLse], made[1]);
  if (in.has(kDout)) require_spec(op, "dout", in[kDout], made[0]);
  if (in.has(kDweights)) {
    check<ValueError>(made.size() > 2, op, ": a gradient of the weights needs weights=True");
    require_spec(op, "the weights", in[kWeights], made[2]);
    require_spec(op, "dweights", in[kDweights], made[2]);
  }
  Specs out;
  for (const Input i : {kQ, kK, kV})
    if (in.has(i)) out.push_back(in[i]);
  if (attrs.flag("bias_grad")) out.push_back(in[kBias]);
  return out;
}

const OpDef ops::attention_grad = {
    "attention_grad",
    infer_grad,
    no_grad,
    saves(),
    saves(),
    {.host_in = saves(kRandom), .meets = can_meet(DataError::offset, DataError::position, DataError::cover)}};

}  // namespace plmcore
