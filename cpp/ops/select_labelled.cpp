// The rows of x and the labels where the label is not ignore_index, in order, and their numbers b * T + t.
// x [B, T, ...]; labels int [B, T] -> x [N, ...], labels [N], index int64 [N]. N is known when the op runs;
// at most B * T.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensors select_labelled(const Tensor& x, const Tensor& labels, int64_t ignore_index) {
  return dispatch(ops::select_labelled, {x, labels}, {{"ignore_index", ignore_index}});
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  attrs.i("ignore_index");
  const Spec &x = in[0], &labels = in[1];
  check<DTypeError>(is_index(labels.dtype), "select_labelled: labels must be int64 or int32, got ", labels);
  check(x.shape.rank() >= 2 && labels.shape.matches({x.shape[0], x.shape[1]}),
        "select_labelled: x must be [B, T, ...] and labels [B, T], got ", x, " and ", labels);
  Shape rows = {Dim::fresh_symbol("N")};
  for (int i = 2; i < x.shape.rank(); ++i) rows.push_back(x.shape[i]);
  return {{rows, x.dtype}, {{rows[0]}, labels.dtype}, {{rows[0]}, DType::int64}};
}

static SmallVector<int64_t, 2> count(const Tensors& in, const Attrs& attrs) {
  const Tensor labels = in[1].to(cpu());
  const int64_t ignore = attrs.i("ignore_index");
  int64_t n = 0;
  for (int64_t i = 0, end = labels.numel(); i < end; ++i)
    n += (labels.dtype() == DType::int64 ? labels.as<int64_t>()[i] : labels.as<int32_t>()[i]) != ignore;
  return {n};
}

static Tensors backward(const Grad& g) {
  return {unpack_rows(g.dy[0], g.out[2], g.in[0].shape()[0], g.in[0].shape()[1]), {}};
}

const OpDef ops::select_labelled = {"select_labelled", infer,    backward,
                                    saves(),           saves(2), {.measure = count}};

}  // namespace plmcore
