// v[b, k, t] = scores[b, k] + log softmax(logits[b K + k])[t]: the n largest of each b in descending order;
// of equals the smaller k, then the smaller t, comes first; NaN comes last.   logits [B K, V]; scores [B, K]
// -> scores, beams, tokens [B, n] By tiles of a row (device/best.cuh): a block finds the best of its tile,
// and its maximum and sum of exponentials, in one read of the logits. Then a warp for each b makes scores of
// the candidates and merges the K lists.
#include "device/best.cuh"
#include "device/log_sum.cuh"

namespace plmcore::cuda {

namespace {

struct LargerNumber {
  template <class A> __device__ static bool better(A a, A b) { return a > b || (b != b && a == a); }
};

// part [rows][tiles]
template <class T>
struct TileSums {
  ExpSum<Acc<T>>* part;

  template <class Row, class Held>
  __device__ __forceinline__ void operator()(const Row& row, const Held& v, int64_t r, int64_t tile,
                                             int64_t tiles) const {
    using A = Acc<T>;
    A most = -static_cast<A>(INFINITY), sum = 0;
    row.each([&](int n, int column) { row.inside(column, [&](int j) { most = std::fmax(most, v[n][j]); }); });
    const A top = finite_max(block_reduce<Max>(most));
    row.each([&](int n, int column) { row.inside(column, [&](int j) { sum += std::exp(v[n][j] - top); }); });
    sum = block_reduce<Sum>(sum);
    if (threadIdx.x == 0) part[r * tiles + tile] = {top, sum};
  }
};

// A list's candidates: logits and tokens of the best m, by logit.
template <class T>
struct Merge {
  using A = Acc<T>;
  const T* logits;
  const A* scores;
  const ExpSum<A>* part;
  const T* best;
  int64_t* token;
  A* value;       // [B K][m]
  int64_t* next;  // [B K], of each list the first that is not taken
  int64_t K, V, m, n, tiles;
  A* out;
  int64_t *beams, *tokens;

  // A lane's list: values from logits, in the order of values.
  __device__ __forceinline__ void make_list(int64_t r) const {
    A top = -static_cast<A>(INFINITY), sum = 0;
    for (int64_t t = 0; t < tiles; ++t) top = std::fmax(top, part[r * tiles + t].top);
    for (int64_t t = 0; t < tiles; ++t)
      sum += part[r * tiles + t].sum * std::exp(part[r * tiles + t].top - top);
    const A log_sum = std::log(sum), score = scores[r];
    // Where no value depends on the logit, equals go by token.
    const bool same =
        !(std::fabs(log_sum) < static_cast<A>(INFINITY)) || !(std::fabs(score) < static_cast<A>(INFINITY));
    for (int64_t j = 0; j < m; ++j) {
      const int64_t t = same ? j : token[r * m + j];
      const A v = widen(same ? logits[r * V + j] : best[r * m + j]) - top - log_sum + score;
      int64_t at = j;  // rounding may have made equals of what was sorted
      for (; at > 0 && value[r * m + at - 1] == v && token[r * m + at - 1] > t; --at) {
        value[r * m + at] = value[r * m + at - 1];
        token[r * m + at] = token[r * m + at - 1];
      }
      value[r * m + at] = v;
      token[r * m + at] = t;
    }
    next[r] = 0;
  }
};

// grid (B), block 32: lane l has the lists l, l + 32, ...
template <class T>
__global__ void __launch_bounds__(32) merge_beams(Merge<T> in) {
  using A = Acc<T>;
  const int64_t b = blockIdx.x;
  for (int64_t k = threadIdx.x; k < in.K; k += 32) in.make_list(b * in.K + k);
  for (int64_t j = 0; j < in.n; ++j) {
    Best<LargerNumber, A> best;  // a place is beam * V + token
    for (int64_t k = threadIdx.x; k < in.K; k += 32) {
      const int64_t r = b * in.K + k, head = in.next[r];
      if (head < in.m) best.take(in.value[r * in.m + head], k * in.V + in.token[r * in.m + head]);
    }
    best.take_from_warp();
    const int64_t beam = best.at / in.V;
    if (static_cast<int>(beam % 32) == static_cast<int>(threadIdx.x)) ++in.next[b * in.K + beam];
    if (threadIdx.x > 0) continue;
    in.out[b * in.n + j] = best.value;
    in.beams[b * in.n + j] = beam;
    in.tokens[b * in.n + j] = best.at - beam * in.V;
  }
}

// The parts of the workspace: sums of the tiles, candidates, what best_of_rows needs.
struct Space {
  size_t part, best, token, value, next, tiles, bytes;

  explicit Space(const KernelArgs& args) {
    const int64_t rows = args.in[0].size[0], V = args.in[0].size[1], n = args.out[0].size[1],
                  m = n < V ? n : V;
    const size_t lists = static_cast<size_t>(rows * m), at_most = 8;
    size_t used = 0;
    const auto take = [&](size_t n_bytes) {
      const size_t at = used;
      used += (n_bytes + 63) / 64 * 64;
      return at;
    };
    part = take(static_cast<size_t>(rows * best_tiles(V)) * 2 * at_most);
    best = take(lists * at_most);
    token = take(lists * at_most);
    value = take(lists * at_most);
    next = take(static_cast<size_t>(rows) * at_most);
    tiles = take(best_bytes(rows, V, m, size_of(args.in[0].dtype)));
    bytes = used;
  }
};

Workspace workspace(const KernelArgs& args) { return {.shared = Space(args).bytes}; }

}  // namespace

PLM_KERNEL(beam_step, workspace) {
  const View &logits = args.in[0], &scores = args.in[1];
  const int64_t B = scores.size[0], K = scores.size[1], V = logits.size[1], n = args.out[0].size[1],
                m = n < V ? n : V;
  if (n > K * V) return "n must be at most the candidates (K * V)";
  if (n == 0 || B == 0) return nullptr;
  const Space space(args);
  return for_float(logits.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    const auto at = [&](size_t offset) { return args.shared + offset; };
    auto* part = reinterpret_cast<ExpSum<A>*>(at(space.part));
    auto* best = reinterpret_cast<T*>(at(space.best));
    auto* token = reinterpret_cast<int64_t*>(at(space.token));
    if (const char* why = best_of_rows<LargerNumber>(args, logits.as<T>(), B * K, V, m, best, token,
                                                     at(space.tiles), TileSums<T>{part}))
      return why;
    const Merge<T> merge{logits.as<T>(),
                         scores.as<A>(),
                         part,
                         best,
                         token,
                         reinterpret_cast<A*>(at(space.value)),
                         reinterpret_cast<int64_t*>(at(space.next)),
                         K,
                         V,
                         m,
                         n,
                         best_tiles(V),
                         args.out[0].as<A>(),
                         args.out[1].as<int64_t>(),
                         args.out[2].as<int64_t>()};
    return problem(
        launch<merge_beams<T>>(dim3(static_cast<unsigned>(B)), dim3(32), 0, stream_of(args), merge));
  });
}

}  // namespace plmcore::cuda
