// Pieces of given sizes along an axis, the reverse of concat. Along the first axis (split_rows) they share
// x's memory. The gradient is one concat.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

// One call has up to 8 pieces; more are split in groups first.
Tensors split(const Tensor& x, const Dims& sizes, int axis) {
  const int at = normal_axis("split", axis, x.rank());
  const OpDef& op = at == 0 ? ops::split_rows : ops::split;
  constexpr size_t most = Shape::kMaxRank;
  if (sizes.size() <= most) {
    Shape list;
    for (Dim d : sizes) list.push_back(d);
    return dispatch(op, {x}, {{"sizes", list}, {"axis", at}});
  }
  const size_t groups = (sizes.size() + most - 1) / most,
               per_group = groups <= most ? most : (sizes.size() + most - 1) / most;
  Dims totals;
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (k % per_group == 0) totals.push_back(0);
    totals.back() = totals.back() + sizes[k];
  }
  Tensors pieces;
  size_t k = 0;
  for (const Tensor& group : split(x, totals, at)) {
    Dims own;
    for (; own.size() < per_group && k < sizes.size(); ++k) own.push_back(sizes[k]);
    for (Tensor& t : split(group, own, at)) pieces.push_back(std::move(t));
  }
  return pieces;
}

static Specs infer_pieces(const char* op, const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const Shape& sizes = attrs.dims("sizes");
  const int axis = stored_axis(op, attrs, in[0].shape.rank());
  Specs out;
  Dim total = 0;
  for (Dim d : sizes) {
    Spec piece = in[0];
    piece.shape[axis] = d;
    out.push_back(piece);
    total = total + d;
  }
  check(require_equal(total, in[0].shape[axis]), op, ": sizes ", sizes, " must add up to axis ", axis, " of ",
        in[0]);
  return out;
}
static Specs infer(const InSpecs& in, const Attrs& attrs) { return infer_pieces("split", in, attrs); }
static Specs infer_rows(const InSpecs& in, const Attrs& attrs) {
  check<ValueError>(attrs.i("axis") == 0, "split_rows: the axis must be 0, got ", attrs.i("axis"));
  return infer_pieces("split_rows", in, attrs);
}

static Tensors backward(const Grad& g) {
  Tensors pieces;
  for (size_t k = 0; k < g.out.size(); ++k)
    pieces.push_back(g.dy[k].defined() ? g.dy[k]
                                       : full(g.out[k].shape(), 0, g.out[k].dtype(), &g.out[k].device()));
  return {concat(pieces, static_cast<int>(g.attrs.i("axis")))};
}

static int64_t offset(const Spec& x, const Attrs& attrs, size_t output) {
  int64_t row = 1, start = 0;
  for (int a = 1; a < x.shape.rank(); ++a) row *= x.shape[a].value();
  for (size_t k = 0; k < output; ++k) start += attrs.dims("sizes")[static_cast<int>(k)].value();
  return start * row;
}

const OpDef ops::split = {"split", infer, backward, saves(), saves()};
const OpDef ops::split_rows = {"split_rows", infer_rows, backward, saves(), saves(), {.view = offset}};

}  // namespace plmcore
