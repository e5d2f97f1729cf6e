// A step: sums = h W^T (three blocks of units); r, z = sigmoid(x + sums);  q = sum + bias;  n = tanh(x + r
// q);
//   h = n + z (h - n).
// Backward, from the last step to the first: dh = dy + z dh + dg W of the step behind, with dg the gradients
// of the three sums;  dn = dh (1 - z) (1 - n^2);  dq = dn r;  dr = dn q r (1 - r);  dz = dh (h - n) z (1 -
// z). The gradient of W is one product over all steps.
#include "kernels/recurrent.h"

namespace plmcore::PLM_ISA {

namespace {

enum { kX, kWeight, kBias, kH, kLengths };

template <class T>
struct Forward {
  using S = typename Lane<T>::Scalar;

  const KernelArgs& args;
  int64_t B, H;
  Parts parts;
  Schedule at;
  S *h, *after;  // [B, H]
  StepWeight<T> weight;

  Forward(const KernelArgs& a, char* base)
      : args(a),
        B(a.in[kX].size[0]),
        H(a.in[kX].size[2] / 3),
        parts{base},
        at(B, a.in[kX].size[1], parts),
        h(parts.take<S>(B * H)),
        after(parts.take<S>(B * H)),
        weight({a.in[kWeight].as<T>(), H, true}, H, H, 3, H * H, a.in[kX].size[1], parts) {}

  void run() {
    at.fill(ops::id_gru, args.in[kLengths], args.i("reverse") != 0);
    weight.pack();
    at.clear_padding(args.out[0].as<T>(), H);
    take_in_order<T>(at, args.in[kH], H, h);
    std::memcpy(args.out[1].data, args.in[kH].data, static_cast<size_t>(B * H) * sizeof(T));
    for (int64_t s = 0; s < at.longest; ++s) {
      S* gates = args.out[2].as<S>() + at.offset[s] * 4 * H;
      over_units(H, [&](int64_t u, int64_t n, int worker) {
        for (int64_t g = 0; g < 3; ++g)
          weight.multiply(args, worker, g, at.active[s], h, u, n, gates + (g == 2 ? 3 : g) * H + u, 4 * H);
        for (int64_t i = 0; i < at.active[s]; ++i) cells(s, i, u, n, gates + i * 4 * H + u);
      });
      S* t = h;
      h = after;
      after = t;
    }
  }

  // The n units from u on of one sequence.
  void cells(int64_t s, int64_t i, int64_t u, int64_t n, S* gates) {
    const int64_t row = at.row(i, s);
    const T *x = args.in[kX].as<T>() + row * 3 * H + u,
            *bias = args.has(kBias) ? args.in[kBias].as<T>() + u : nullptr;
    T *y = args.out[0].as<T>() + row * H + u,
      *last = at.ends(i, s) ? args.out[1].as<T>() + at.order[i] * H + u : nullptr;
    const S* before = h + i * H + u;
    S* to = after + i * H + u;
    over_row<T>(n, [&](int64_t j, int part) {
      const auto reset = sigmoid(load_at(gates, j, part) + load_at(x, j, part)),
                 keep = sigmoid(load_at(gates + H, j, part) + load_at(x + H, j, part));
      auto q = load_at(gates + 3 * H, j, part);
      if (bias) q += load_at(bias, j, part);
      const auto made = tanh(load_at(x + 2 * H, j, part) + reset * q),
                 v = made + keep * (load_at(before, j, part) - made);
      store_at(gates, j, part, reset);
      store_at(gates + H, j, part, keep);
      store_at(gates + 2 * H, j, part, made);
      store_at(gates + 3 * H, j, part, q);
      store_at(to, j, part, v);
      store_at(y, j, part, v);
      if (last) store_at(last, j, part, v);
    });
  }
};

enum { kGWeight, kGH, kGLengths, kGY, kGGates, kGDy, kGDh };

template <class T>
struct Backward {
  using S = typename Lane<T>::Scalar;

  const KernelArgs& args;
  int64_t B, T_, H;
  Parts parts;
  Schedule at;
  S *dh, *carry, *dg, *before, *sums;  // [B, H] twice, [rows, 3 H], [rows, H]; of the half types [3 H, H]
  StepWeight<T> weight;
  char* shared;

  Backward(const KernelArgs& a, char* base)
      : args(a),
        B(a.in[kGY].size[0]),
        T_(a.in[kGY].size[1]),
        H(a.in[kGY].size[2]),
        parts{base},
        at(B, T_, parts),
        dh(parts.take<S>(B * H)),
        carry(parts.take<S>(B * H)),
        dg(parts.take<S>(B * T_ * 3 * H)),
        before(parts.take<S>(B * T_ * H)),
        sums(parts.take<S>(std::is_same_v<T, S> ? 0 : 3 * H * H)),
        weight({a.in[kGWeight].as<T>(), H, false}, H, 3 * H, 1, 0, T_, parts),
        shared(parts.take<char>(static_cast<int64_t>(gemm_shared(H, B * T_)))) {}

  void run() {
    at.fill(ops::id_gru_grad, args.in[kGLengths], args.i("reverse") != 0);
    weight.pack();
    at.clear_padding(args.out[0].as<T>(), 3 * H);
    take_in_order<T>(at, args.in[kGDh], H, carry);
    take_previous<T>(at, args.in[kGH], args.in[kGY], H, before);
    for (int64_t s = at.longest; s-- > 0;)
      over_units(H, [&](int64_t u, int64_t n, int worker) {
        from_behind(s + 1, u, n, worker);
        for (int64_t i = 0; i < at.active[s]; ++i) cells(s, i, u, n);
      });
    over_units(H, [&](int64_t u, int64_t n, int worker) {
      from_behind(0, u, n, worker);
      for (int64_t i = 0; i < B; ++i)
        for (int64_t j = i * H + u; j < i * H + u + n; ++j) carry[j] += at.length[i] ? dh[j] : S(0);
      T* dbias = args.out[3].as<T>();
      for (int64_t j = u; j < u + n; ++j) {
        S sum = 0;
        for (int64_t r = 0; r < at.rows(); ++r) sum += dg[r * 3 * H + 2 * H + j];
        dbias[j] = from_float<T>(sum);
      }
    });
    give_in_order(at, carry, H, args.out[2].as<T>());
    weight_gradient(args, shared, 3 * H, H, at.rows(), dg, before, sums, args.out[1].as<T>());
  }

  // dh from the sums of step s, for the sequences that are at work there.
  void from_behind(int64_t s, int64_t u, int64_t n, int worker) {
    if (s < at.longest)
      weight.multiply(args, worker, 0, at.active[s], dg + at.offset[s] * 3 * H, u, n, dh + u, H);
  }

  void cells(int64_t s, int64_t i, int64_t u, int64_t n) {
    const int64_t row = at.row(i, s), place = at.offset[s] + i;
    const T* dy = args.has(kGDy) ? args.in[kGDy].as<T>() + row * H + u : nullptr;
    const S *gates = args.in[kGGates].as<S>() + place * 4 * H + u, *h = before + place * H + u,
            *behind = at.ends(i, s) ? nullptr : dh + i * H + u;
    S *kept = carry + i * H + u, *d = dg + place * 3 * H + u;
    T* dx = args.out[0].as<T>() + row * 3 * H + u;
    over_row<T>(n, [&](int64_t j, int part) {
      auto dy_h = load_at(kept, j, part);
      if (behind) dy_h += load_at(behind, j, part);
      if (dy) dy_h += load_at(dy, j, part);
      const auto reset = load_at(gates, j, part), keep = load_at(gates + H, j, part),
                 made = load_at(gates + 2 * H, j, part), q = load_at(gates + 3 * H, j, part);
      const auto dn = dy_h * (1 - keep) * (1 - made) * (1 + made), dr = dn * q * reset * (1 - reset),
                 dk = dy_h * (load_at(h, j, part) - made) * keep * (1 - keep);
      store_at(d, j, part, dr);
      store_at(d + H, j, part, dk);
      store_at(d + 2 * H, j, part, dn * reset);
      store_at(dx, j, part, dr);
      store_at(dx + H, j, part, dk);
      store_at(dx + 2 * H, j, part, dn);
      store_at(kept, j, part, dy_h * keep);
    });
  }
};

}  // namespace

PLM_KERNEL(gru, space_of<Forward>) { run_pass<Forward>(args); }
PLM_KERNEL(gru_grad, space_of<Backward>) { run_pass<Backward>(args); }

}  // namespace plmcore::PLM_ISA
