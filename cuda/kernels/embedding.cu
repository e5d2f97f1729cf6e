// y[i] = weight[ids[i]].   weight [V, C]; ids [n]; y [n, C].   Traffic: one read of the rows that occur, one
// write of y. Backward: the positions sorted by row, then sums over pieces of fixed length
// (device/sorted_sums.cuh). Dense: one write of zeros and one of the rows that occur. As rows: the rows that
// occur, sorted, and their sums.
#include "device/indexed.cuh"
#include "device/sorted_sums.cuh"

namespace plmcore::cuda {

PLM_KERNEL(embedding) {
  const View &weight = args.in[0], &ids = args.in[1];
  return take<IndexOf::position>(args, ops::id_embedding, weight, ids, args.out[0],
                                 {1, weight.size[0], ids.numel, weight.size[1]});
}

static Workspace workspace(const KernelArgs& args) {
  return add_sorted_workspace(args.in[1].numel, args.in[0].last(), args.in[0].dtype);
}

PLM_KERNEL(embedding_grad, workspace) {
  const View& dw = args.out[0];
  return for_float(dw.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return add_sorted<T>(args, ops::id_embedding, nullptr, args.in[1], args.in[0], dw, dw.size[1]);
  });
}

namespace {
// The runs of the sorted positions: where they begin, and their rows.
struct RunStarts {
  SortedRows sorted;
  int64_t *first, *rows;
  int64_t most;

  __device__ __forceinline__ bool chosen(int64_t k) const {
    return sorted.row(k) < sorted.rows && sorted.begins(k);
  }
  __device__ __forceinline__ void put(int64_t u, int64_t k) const {
    if (u >= most) return;
    first[u] = k;
    rows[u] = sorted.row(k);
  }
};
}  // namespace

// The sort, the parts of the sums, the counts of the runs and where they begin.
static Workspace workspace_rows(const KernelArgs& args) {
  const int64_t n = args.in[1].numel;
  return {.shared = (workspace(args).shared + 63) / 64 * 64 + pick_bytes(n) +
                    static_cast<size_t>(n) * sizeof(int64_t)};
}

// dy, ids -> rows [U], values [U, C]
PLM_KERNEL(embedding_grad_rows, workspace_rows) {
  const View &dy = args.in[0], &ids = args.in[1], &values = args.out[1];
  const int64_t U = args.out[0].numel, C = values.size[1], n = ids.numel;
  if (n == 0) return nullptr;
  auto* counts = reinterpret_cast<int64_t*>(args.shared + (workspace(args).shared + 63) / 64 * 64);
  int64_t* first = counts + pick_tiles(n);
  return for_index(ids.dtype, [&](auto index_type) {
    using I = typename decltype(index_type)::type;
    SortedRows sorted{nullptr, n, args.dim("rows")};
    if (const char* why = sort_positions<I>(args, ids, sorted.rows, args.shared, &sorted.keys)) return why;
    if (const char* why = pick(args, RunStarts{sorted, first, args.out[0].as<int64_t>(), U}, n, counts))
      return why;
    const char* why = for_float(dy.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      return sum_sorted(args, sorted, dy.as<T>(), C, RunRows<T>{values.as<T>(), first, U, C},
                        aligned(dy.as<T>(), values.as<T>()), args.shared + (sort_bytes(n) + 63) / 64 * 64);
    });
    return why ? why : report_faults<I>(args, ops::id_embedding, DataError::index, ids, sorted.rows);
  });
}

}  // namespace plmcore::cuda
