// x is [outer, size, inner]; y takes every step-th of the rows [start, stop) of the middle axis, from the end
// of the range when the step is negative. With step 1 a row of y is one run of memory. Traffic: the output,
// read and written once; the gradient writes all of dx.
#include "kernels/move.h"

namespace plmcore::PLM_ISA {

namespace {
struct Walk {
  int64_t outer, size, count, unit, step;  // unit: bytes of one row of the middle axis
  int64_t start;  // the first row of x that is taken
};
}  // namespace

static Walk walk_of(const KernelArgs& args, const View& x, const View& y) {
  const int axis = static_cast<int>(args.i("axis"));
  const int64_t sign = args.i("step") > 0 ? 1 : -1, count = y.size[axis];
  return {x.outer(axis),
          x.size[axis],
          count,
          x.inner(axis) * static_cast<int64_t>(size_of(x.dtype)),
          count > 1 ? args.i("step") : sign,  // a step that is not taken may be any number
          sign > 0 ? args.dim("start") : args.dim("stop") - 1};
}

// move(outer position, first, rows): y's rows [first, first + rows) of the middle axis.
template <class F>
PLM_INLINE void for_walk(const Walk& w, F move) {
  for_chunks(w.outer * w.count, rows_per_task(w.unit),
             [&](int64_t b, int64_t e) { in_blocks(b, e, w.count, move); });
}

PLM_KERNEL(slice) {
  const Walk w = walk_of(args, args.in[0], args.out[0]);
  if (args.out[0].numel == 0) return;
  const char* x = args.in[0].as<char>() + w.start * w.unit;
  char* y = args.out[0].as<char>();
  if (w.step == 1) return copy_rows(w.outer, w.count * w.unit, y, w.count * w.unit, x, w.size * w.unit);
  for_walk(w, [&](int64_t o, int64_t first, int64_t rows) {
    copy_some(rows, w.unit, y + (o * w.count + first) * w.unit, w.unit,
              x + (o * w.size + first * w.step) * w.unit, w.step * w.unit);
  });
}

PLM_KERNEL(slice_grad) {
  const View &dy = args.in[0], &dx = args.out[0];
  if (dx.numel == 0) return;
  const Walk w = walk_of(args, dx, dy);
  char* to = dx.as<char>();
  const int64_t row = w.size * w.unit;
  if (w.step == 1) {
    const int64_t before = w.start * w.unit, bytes = w.count * w.unit;
    zero_rows(w.outer, before, to, row);
    copy_rows(w.outer, bytes, to + before, row, dy.as<char>(), bytes);
    zero_rows(w.outer, row - before - bytes, to + before + bytes, row);
    return;
  }
  zero_rows(w.outer, row, to, row);
  if (w.count == 0) return;
  for_walk(w, [&](int64_t o, int64_t first, int64_t rows) {
    copy_some(rows, w.unit, to + (o * w.size + w.start + first * w.step) * w.unit, w.step * w.unit,
              dy.as<char>() + (o * w.count + first) * w.unit, w.unit);
  });
}

}  // namespace plmcore::PLM_ISA
