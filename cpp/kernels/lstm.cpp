// A step: sums = h W^T (four blocks of units), then i, f, o = sigmoid, g = tanh of sums + x;
//   c = clip(f c + i g);  m = o tanh c;  h = m, or clip(m W_p^T) in a product of its own.
// Reads x and the packed weight at each step; writes y, the gates and the cells once.
#include "kernels/recurrent.h"

namespace plmcore::PLM_ISA {

namespace {

enum { kX, kWeight, kH, kC, kProjection, kLengths };

template <class T>
struct Forward {
  using S = typename Lane<T>::Scalar;

  const KernelArgs& args;
  int64_t B, T_, H, P;
  bool projects;
  S cell_clip, projection_clip;
  Parts parts;
  Schedule at;
  S *h, *after, *c0, *m;  // [B, P], [B, P], [B, H], [B, H], in the order of the schedule
  StepWeight<T> weight, projection;

  Forward(const KernelArgs& a, char* base)
      : args(a),
        B(a.in[kX].size[0]),
        T_(a.in[kX].size[1]),
        H(a.in[kC].size[1]),
        P(a.in[kH].size[1]),
        projects(a.has(kProjection)),
        cell_clip(static_cast<S>(a.f("cell_clip"))),
        projection_clip(static_cast<S>(a.f("projection_clip"))),
        parts{base},
        at(B, T_, parts),
        h(parts.take<S>(B * P)),
        after(parts.take<S>(B * P)),
        c0(parts.take<S>(B * H)),
        m(parts.take<S>(projects ? B * H : 0)),
        weight({a.in[kWeight].as<T>(), P, true}, H, P, 4, H * P, T_, parts),
        projection({projects ? a.in[kProjection].as<T>() : nullptr, H, true}, projects ? P : 0, H, 1, 0, T_,
                   parts) {}

  void run() {
    at.fill(ops::id_lstm, args.in[kLengths], args.i("reverse") != 0);
    weight.pack();
    if (projects) projection.pack();
    at.clear_padding(args.out[0].as<T>(), P);
    take_in_order<T>(at, args.in[kH], P, h);
    take_in_order<T>(at, args.in[kC], H, c0);
    std::memcpy(args.out[1].data, args.in[kH].data, static_cast<size_t>(B * P) * sizeof(T));
    std::memcpy(args.out[2].data, args.in[kC].data, static_cast<size_t>(B * H) * sizeof(T));
    for (int64_t s = 0; s < at.longest; ++s) {
      S* gates = args.out[3].as<S>() + at.offset[s] * 4 * H;
      over_units(H, [&](int64_t u, int64_t n, int worker) {
        for (int64_t g = 0; g < 4; ++g)
          weight.multiply(args, worker, g, at.active[s], h, u, n, gates + g * H + u, 4 * H);
        for (int64_t i = 0; i < at.active[s]; ++i) cells(s, i, u, n, gates + i * 4 * H + u);
      });
      if (projects)
        over_units(P, [&](int64_t u, int64_t n, int worker) {
          projection.multiply(args, worker, 0, at.active[s], m, u, n, after + u, P);
          for (int64_t i = 0; i < at.active[s]; ++i)
            over_row<T>(n, [&](int64_t j, int part) {
              emit(s, i, u + j, part, clipped(load_at(after + i * P + u, j, part), projection_clip));
            });
        });
      S* t = h;
      h = after;
      after = t;
    }
  }

  // The n units from u on of one sequence.
  void cells(int64_t s, int64_t i, int64_t u, int64_t n, S* gates) {
    const T* x = args.in[kX].as<T>() + at.row(i, s) * 4 * H + u;
    S* c = args.out[4].as<S>() + (at.offset[s] + i) * H + u;
    const S* before = s ? args.out[4].as<S>() + (at.offset[s - 1] + i) * H + u : c0 + i * H + u;
    T* last = at.ends(i, s) ? args.out[2].as<T>() + at.order[i] * H + u : nullptr;
    over_row<T>(n, [&](int64_t j, int part) {
      const auto sum = [&](int64_t g) __attribute__((always_inline)) {
        return load_at(gates + g * H, j, part) + load_at(x + g * H, j, part);
      };
      const auto in = sigmoid(sum(0)), forget = sigmoid(sum(1)), made = tanh(sum(2)), out = sigmoid(sum(3));
      const auto cell = clipped(forget * load_at(before, j, part) + in * made, cell_clip);
      const auto shown = out * tanh(cell);
      store_at(gates, j, part, in);
      store_at(gates + H, j, part, forget);
      store_at(gates + 2 * H, j, part, made);
      store_at(gates + 3 * H, j, part, out);
      store_at(c, j, part, cell);
      if (last) store_at(last, j, part, cell);
      if (projects) store_at(m + i * H + u, j, part, shown);
      else emit(s, i, u + j, part, shown);
    });
  }

  template <class V>
  void emit(int64_t s, int64_t i, int64_t at_unit, int part, V v) {
    store_at(after + i * P, at_unit, part, v);
    store_at(args.out[0].as<T>() + at.row(i, s) * P, at_unit, part, v);
    if (at.ends(i, s)) store_at(args.out[1].as<T>() + at.order[i] * P, at_unit, part, v);
  }
};

}  // namespace

PLM_KERNEL(lstm, space_of<Forward>) { run_pass<Forward>(args); }

}  // namespace plmcore::PLM_ISA
