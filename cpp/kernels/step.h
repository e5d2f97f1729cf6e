// The loops of the optimiser steps. A rule is a struct of constants with `operator()(p, g, a, b)`: it takes a
// vector of the parameters, of the scaled gradient and of up to two moments, and changes all but the
// gradient. Traffic for two moments is 16 bytes read and 12 written per float parameter, one pass; there is
// nothing else to save.
//
// Every element goes through the same machine code, whether it stands in the middle of a tensor, at its end
// or in a row without gradient, so that a row-sparse step gives the bits of the dense one.
#pragma once

#include "kernels/kernel.h"
#include "kernels/math.h"
#include "kernels/row_sparse.h"

namespace plmcore::PLM_ISA {

// A row without gradient reads zeros: bytes of one row of param, when input `rows` is given.
static inline Workspace zero_row(const KernelArgs& args, int rows) {
  if (!args.has(rows)) return {};
  return {.shared = static_cast<size_t>(args.in[0].inner(0)) * size_of(args.in[0].dtype)};
}

// n is a multiple of the vector width. A moment that the rule does not use may be null.
template <class T, class Rule, class A = typename Lane<T>::Scalar>
[[gnu::noinline]] static void step_vectors(const Rule& rule_, A scale, int64_t n, T* p, const T* g, A* a,
                                           A* b) {
  constexpr int W = Lane<T>::n;
  const Rule rule = rule_;  // in registers: the stores below may alias the caller's
  for (int64_t i = 0; i < n; i += W) {
    auto vp = load(p + i), va = vp, vb = vp;
    if constexpr (Rule::kMoments > 0) va = load(a + i);
    if constexpr (Rule::kMoments > 1) vb = load(b + i);
    rule(vp, load(g + i) * scale, va, vb);
    store(p + i, vp);
    if constexpr (Rule::kMoments > 0) store(a + i, va);
    if constexpr (Rule::kMoments > 1) store(b + i, vb);
  }
}

template <class T, class Rule, class A = typename Lane<T>::Scalar>
PLM_INLINE void step_range(const Rule& rule, A scale, int64_t n, T* p, const T* g, A* a, A* b) {
  constexpr int W = Lane<T>::n;
  const int64_t whole = n / W * W, rest = n - whole;
  if (whole) step_vectors(rule, scale, whole, p, g, a, b);
  if (!rest) return;
  T tp[W] = {}, tg[W] = {};
  A ta[W] = {}, tb[W] = {};
  for (int64_t i = 0; i < rest; ++i) {
    tp[i] = p[whole + i];
    tg[i] = g[whole + i];
    if constexpr (Rule::kMoments > 0) ta[i] = a[whole + i];
    if constexpr (Rule::kMoments > 1) tb[i] = b[whole + i];
  }
  step_vectors(rule, scale, W, tp, tg, ta, tb);
  for (int64_t i = 0; i < rest; ++i) {
    p[whole + i] = tp[i];
    if constexpr (Rule::kMoments > 0) a[whole + i] = ta[i];
    if constexpr (Rule::kMoments > 1) b[whole + i] = tb[i];
  }
}

// Runs a rule over the inputs param, grad, moments..., scale, rows. `only_given`: rows without gradient stay
// as they are.
template <class T, class Rule>
PLM_INLINE void run_step(ops::Id op, const KernelArgs& args, const Rule& rule, bool only_given) {
  using A = typename Lane<T>::Scalar;
  constexpr int kScale = Rule::kScaleInput, kRows = kScale + 1;
  T* p = args.in[0].as<T>();
  const T* g = args.in[1].as<T>();
  A *a = Rule::kMoments > 0 ? args.in[2].as<A>() : nullptr,
    *b = Rule::kMoments > 1 ? args.in[3].as<A>() : nullptr;
  const A scale = args.has(kScale) ? static_cast<A>(*args.in[kScale].as<float>()) : A(1);
  const auto at = [](A* moment, int64_t i) { return moment ? moment + i : nullptr; };

  if (!args.has(kRows)) {
    for_chunks(args.in[0].numel, kGrain, [&](int64_t i, int64_t e) {
      step_range(rule, scale, e - i, p + i, g + i, at(a, i), at(b, i));
    });
    return;
  }
  const int64_t V = args.in[0].size[0], C = args.in[0].inner(0), n = args.in[kRows].numel;
  const int64_t* rows = args.in[kRows].as<int64_t>();
  check_rows(op, args.in[kRows], V);
  const auto step_row = [&](int64_t r, const T* from) {
    step_range(rule, scale, C, p + r * C, from, at(a, r * C), at(b, r * C));
  };
  if (only_given) {
    for_rows(n, C, [&](int64_t k, int64_t e) {
      for (; k < e; ++k) step_row(rows[k], g + k * C);
    });
    return;
  }
  T* zeros = args.shared_as<T>();
  for (int64_t c = 0; c < C; ++c) zeros[c] = T{};
  for_rows(V, C, [&](int64_t r, int64_t e) {
    for (int64_t k = first_row(rows, n, r); r < e; ++r) {
      const bool given = k < n && rows[k] == r;
      step_row(r, given ? g + k * C : zeros);
      k += given;
    }
  });
}

}  // namespace plmcore::PLM_ISA
