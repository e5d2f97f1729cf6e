// A matrix takes three passes over the gradient (sums of rows and columns; the size of the update; the
// update) and two over param; the update is computed twice rather than kept. Rows are cut into row_chunks
// pieces, by their number alone.
#include "kernels/kernel.h"
#include "kernels/math.h"
#include "kernels/pieces.h"

namespace plmcore::PLM_ISA {

namespace {
struct Options {
  double lr, eps, decay, beta, floor, threshold;
  bool relative;

  // How long the step is, from the sums of the squares of param and update.
  double rate(Sums squares, int64_t n) const {
    const double rms_p = std::sqrt(squares.a / static_cast<double>(n)),
                 rms_u = std::sqrt(squares.b / static_cast<double>(n));
    const double size = rms_p > floor ? rms_p : floor;
    return lr * (relative ? size : 1) / (rms_u > threshold ? rms_u / threshold : 1);
  }
};

template <class T, class A = typename Lane<T>::Scalar>
void step_vector(const KernelArgs& args, const Options& o, A scale) {
  constexpr int W = Lane<T>::n;
  T* p = args.in[0].as<T>();
  const T* g = args.in[1].as<T>();
  A* v = args.in[3].as<A>();
  const int64_t n = args.in[0].numel;
  const Sums squares = sum_pieces(n, [&](int64_t b, int64_t e) __attribute__((always_inline)) {
    Squares<T> of_param, of_update;
    for (int64_t i = b; i < e; i += W) {
      const int k = e - i < W ? static_cast<int>(e - i) : W;
      const auto vg = load_first(g + i, k) * scale;
      const auto vv = load_first(v + i, k) * A(o.beta) + (vg * vg + A(o.eps)) * A(1 - o.beta);
      store_first(v + i, vv, k);
      of_param.add(load_first(p + i, k), k);
      of_update.add(vg / sqrt(vv), k);
    }
    return Sums{of_param.sum(), of_update.sum()};
  });
  const A rate = A(o.rate(squares, n)), keep = A(1 - o.lr * o.decay);
  for_chunks(n, kGrain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; i += W) {
      const int k = e - i < W ? static_cast<int>(e - i) : W;
      const auto update = load_first(g + i, k) * scale / sqrt(load_first(v + i, k));
      store_first(p + i, load_first(p + i, k) * keep - update * rate, k);
    }
  });
}

template <class T, class A = typename Lane<T>::Scalar>
void step_matrix(const KernelArgs& args, const Options& o, A scale) {
  constexpr int W = Lane<T>::n;
  T* p = args.in[0].as<T>();
  const T* g = args.in[1].as<T>();
  A *m = args.in[2].as<A>(), *v = args.in[3].as<A>();
  const int64_t C = args.in[0].last(), R = args.in[0].rows();
  const int64_t pieces = row_chunks(R);
  A *sums = args.shared_as<A>(), *factor = sums + pieces * C;

  parallel_for(pieces, [&](int64_t piece, int) {
    A* columns = sums + piece * C;
    for (int64_t c = 0; c < C; ++c) columns[c] = 0;
    for (int64_t r = chunk_begin(R, pieces, piece), e = chunk_begin(R, pieces, piece + 1); r < e; ++r) {
      Squares<T> row;
      for (int64_t c = 0; c < C; c += W) {
        const int k = C - c < W ? static_cast<int>(C - c) : W;
        const auto vg = load_first(g + r * C + c, k) * scale;
        store_first(columns + c, load_first(columns + c, k) + vg * vg, k);
        row.add(vg, k);
      }
      m[r] = A(o.beta) * m[r] + A((1 - o.beta) * (row.sum() / static_cast<double>(C) + o.eps));
    }
  });
  double mean = 0;
  for (int64_t r = 0; r < R; ++r) mean += static_cast<double>(m[r]);
  mean /= static_cast<double>(R);
  for (int64_t c = 0; c < C; ++c) {
    double sum = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) sum += static_cast<double>(sums[piece * C + c]);
    v[c] = A(o.beta) * v[c] + A((1 - o.beta) * (sum / static_cast<double>(R) + o.eps));
    factor[c] = A(1 / std::sqrt(static_cast<double>(v[c])));
  }
  const auto row_factor = [&](int64_t r) { return A(std::sqrt(mean / static_cast<double>(m[r]))) * scale; };

  Sums parts[kPieces], squares;
  parallel_for(pieces, [&](int64_t piece, int) {
    Squares<T> of_param, of_update;
    for (int64_t r = chunk_begin(R, pieces, piece), e = chunk_begin(R, pieces, piece + 1); r < e; ++r) {
      const A own = row_factor(r);
      for (int64_t c = 0; c < C; c += W) {
        const int k = C - c < W ? static_cast<int>(C - c) : W;
        of_param.add(load_first(p + r * C + c, k), k);
        of_update.add(load_first(g + r * C + c, k) * own * load_first(factor + c, k), k);
      }
    }
    parts[piece] = {of_param.sum(), of_update.sum()};
  });
  for (int64_t piece = 0; piece < pieces; ++piece) {
    squares.a += parts[piece].a;
    squares.b += parts[piece].b;
  }
  const A rate = A(o.rate(squares, R * C)), keep = A(1 - o.lr * o.decay);
  for_rows(R, C, [&](int64_t r, int64_t e) {
    for (; r < e; ++r) {
      const A own = row_factor(r) * rate;
      for (int64_t c = 0; c < C; c += W) {
        const int k = C - c < W ? static_cast<int>(C - c) : W;
        const int64_t i = r * C + c;
        store_first(p + i,
                    load_first(p + i, k) * keep - load_first(g + i, k) * own * load_first(factor + c, k), k);
      }
    }
  });
}
}  // namespace

static Workspace workspace(const KernelArgs& args) {
  const View& param = args.in[0];
  if (param.rank < 2) return {};
  return {.shared = static_cast<size_t>((row_chunks(param.rows()) + 1) * param.last()) *
                    (param.dtype == DType::float64 ? 8 : 4)};
}

PLM_KERNEL(adafactor_step, workspace) {
  if (args.in[0].numel == 0) return;
  const Options o{args.f("lr"),           args.f("eps"),
                  args.f("weight_decay"), 1 - std::pow(static_cast<double>(args.i("step")), -args.f("power")),
                  args.f("floor"),        args.f("threshold"),
                  args.i("relative") != 0};
  for_float("adafactor_step", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    const A scale = args.has(4) ? static_cast<A>(*args.in[4].as<float>()) : A(1);
    if (args.in[0].rank < 2) step_vector<T>(args, o, scale);
    else step_matrix<T>(args, o, scale);
  });
}

}  // namespace plmcore::PLM_ISA
