// y[i] = weight[ids[i]].   weight [V, C]; ids int64 or int32 [...]; y [..., C]
// dweight[v] = sum of dy[i] over the positions i with ids[i] = v, in the order of i. sparse: only the rows
// that occur, as a row-sparse gradient; where the weight is itself computed, its gradient is dense.
#include <algorithm>
#include <vector>

#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor embedding(const Tensor& weight, const Tensor& ids, bool sparse) {
  return dispatch(ops::embedding, {weight, ids}, {{"sparse", sparse && weight.is_leaf()}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  attrs.flag("sparse");
  const Spec &weight = in[0], &ids = in[1];
  check<DTypeError>(is_float(weight.dtype), "embedding: weight needs a float dtype, got ", weight);
  check(weight.shape.rank() == 2, "embedding: weight must be [V, C], got ", weight);
  require_index("embedding", ids);
  Shape shape = ids.shape;
  shape.push_back(weight.shape[1]);
  return {{shape, weight.dtype}};
}

static Tensors backward(const Grad& g) {
  const Dim V = g.in[0].shape()[0];
  if (!g.attrs.flag("sparse"))
    return {dispatch(ops::embedding_grad, {g.dy[0], g.in[1]}, {{"rows", V}})[0], {}};
  const Tensors d = dispatch(ops::embedding_grad_rows, {g.dy[0], g.in[1]}, {{"rows", V}});
  return {Tensor::row_sparse(d[0], d[1], V), {}};
}

const OpDef ops::embedding = {"embedding", infer,   backward,
                              saves(1),    saves(), {.meets = can_meet(DataError::index)}};

// dy [..., C], ids [...] -> dweight [V, C]
static Dim check_grad(const char* op, const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  const Spec &dy = in[0], &ids = in[1];
  float_dtype(op, in, {0});
  require_index(op, ids);
  check(dy.shape.rank() >= 1 && dy.shape.drop_last().matches(ids.shape), op,
        ": dy must be [..., C] and ids [...], got ", dy, " and ", ids);
  return attrs.dim("rows");
}
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  const Dim V = check_grad("embedding_grad", in, attrs);
  return {{{V, in[0].shape.back()}, in[0].dtype}};
}

// Two buffers and counts to sort the positions by row, and a row of sums per worker for the half types.
const OpDef ops::embedding_grad = {"embedding_grad", infer_grad, no_grad,
                                   saves(),          saves(),    {.meets = can_meet(DataError::index)}};

// dy [..., C], ids [...] -> rows int64 [U], sorted and unique; values [U, C]
static Specs infer_rows(const InSpecs& in, const Attrs& attrs) {
  check_grad("embedding_grad_rows", in, attrs);
  const Dim U = Dim::fresh_symbol("U");
  return {{{U}, DType::int64}, {{U, in[0].shape.back()}, in[0].dtype}};
}

static SmallVector<int64_t, 2> count_rows(const Tensors& in, const Attrs& attrs) {
  const Tensor ids = in[1].to(cpu());
  const int64_t V = attrs.dim("rows").value(), n = ids.numel();
  std::vector<int64_t> sorted;             // a table of V marks is faster, but V may be any number
  std::vector<bool> seen;
  if (V / 64 > n + 1024) sorted.reserve(static_cast<size_t>(n));
  else seen.resize(static_cast<size_t>(V));
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = ids.dtype() == DType::int64 ? ids.as<int64_t>()[i] : ids.as<int32_t>()[i];
    if (id < 0 || id >= V) continue;  // the kernel says which
    if (seen.empty()) sorted.push_back(id);
    else {
      count += !seen[static_cast<size_t>(id)];
      seen[static_cast<size_t>(id)] = true;
    }
  }
  std::sort(sorted.begin(), sorted.end());
  return {count + std::unique(sorted.begin(), sorted.end()) - sorted.begin()};
}

const OpDef ops::embedding_grad_rows = {"embedding_grad_rows",
                                        infer_rows,
                                        no_grad,
                                        saves(),
                                        saves(),
                                        {.measure = count_rows, .meets = can_meet(DataError::index)}};

}  // namespace plmcore
