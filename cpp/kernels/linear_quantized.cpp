// bfloat16 weights widen on their way into the product. int8 weights meet activations that are rounded here, a row at a time; the sums are
// whole numbers, kept in y's memory until a tile is done and its scales, bias and activation are applied. With few rows W is read where it
// lies.
#include "kernels/epilogue.h"
#include "kernels/few_rows.h"
#include "kernels/gemm.h"
#include "kernels/int8_gemm.h"

namespace plmcore::PLM_ISA {

// q = round(x Q / max |x|), and the scale max |x| / Q that undoes it. A row with NaN or infinity gets the scale NaN; one that is too small
// to scale counts as zeros.
static float round_row(const float* x, int64_t K, float most, int16_t* q) {
  vf top = splat(0.f), odd = splat(0.f);  // odd: NaN once there was a NaN or an infinity
  over_row<float>(K, [&](int64_t k, int part) __attribute__((always_inline)) {
    const vf v = load_at(x, k, part);
    top = max(top, abs(v));
    odd += v - v;
  });
  const float largest = reduce_max(top), inverse = most / largest, fault = reduce_add(odd);
  const bool usable = fault == 0 && largest > 0 && inverse <= __FLT_MAX__;
  if (!usable) {
    std::memset(q, 0, static_cast<size_t>(K) * sizeof(int16_t));
    return fault == 0 ? 0.f : fault;
  }
  typedef int16_t half __attribute__((vector_size(PLM_VECTOR_BYTES / 2)));
  over_row<float>(K, [&](int64_t k, int part) __attribute__((always_inline)) {
    const half h = __builtin_convertvector(round_to_int(load_at(x, k, part) * inverse), half);
    __builtin_memcpy(q + k, &h, part < 0 ? sizeof h : static_cast<size_t>(part) * sizeof(int16_t));
  });
  return largest / most;
}

static void int8_linear(const KernelArgs& args, int64_t M, int64_t N, int64_t K, float* out, const float* bias, FinishRow<float> finish) {
  const int64_t ld = activation_row(K);
  const float* scale = args.in[2].as<float>();
  int16_t* q = args.shared_as<int16_t>();
  float* unit = reinterpret_cast<float*>(args.shared + (static_cast<size_t>(M * ld) * 2 + 63) / 64 * 64);
  for_rows(M, K, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      unit[i] = round_row(args.in[0].as<float>() + i * K, K, static_cast<float>(activation_most(K)), q + i * ld);
      if (K < ld) q[i * ld + K] = 0;
    }
  });
  int32_t* sums = reinterpret_cast<int32_t*>(out);
  const auto epilogue = [&](int64_t i, int64_t j, int64_t m, int64_t n) {
    for (int64_t r = i; r < i + m; ++r) {
      float* y = out + r * N + j;
      int64_t c = 0;
      for (; c + kF <= n; c += kF) store(y + c, to_float(load(sums + r * N + j + c)) * (load(scale + j + c) * unit[r]));
      for (; c < n; ++c) {
        int32_t sum;
        __builtin_memcpy(&sum, y + c, 4);
        y[c] = static_cast<float>(sum) * (scale[j + c] * unit[r]);
      }
      finish(y, bias ? bias + j : nullptr, nullptr, n);
    }
  };
  const int8_t* w = args.in[1].as<int8_t>();
  if (M <= kInt8FewRows) few_rows(M, N, K, q, ld, w, sums, [&](int64_t b, int64_t e) { epilogue(0, b, M, e - b); });
  else int8_gemm(args, M, N, K, q, ld, w, sums, epilogue);
}

PLM_KERNEL(linear_quantized) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  const int64_t M = x.rows(), K = x.last(), N = w.size[0], activation = args.i("activation");
  if (M == 0 || N == 0) return;
  const float* bias = args.has(3) ? args.in[3].as<float>() : nullptr;
  float* out = y.as<float>();
  const FinishRow<float> finish = finish_of<float>(activation);
  if (w.dtype == DType::int8) return int8_linear(args, M, N, K, out, bias, finish);
  const auto epilogue = [&](int64_t i, int64_t j, int64_t m, int64_t n) {
    if (!bias && activation == 0) return;
    for (int64_t r = i; r < i + m; ++r) finish(out + r * N + j, bias ? bias + j : nullptr, nullptr, n);
  };
  if (M <= kGemmFewRows)
    return few_rows(M, N, K, x.as<float>(), K, w.as<bf16>(), out, [&](int64_t b, int64_t e) { epilogue(0, b, M, e - b); });
  gemm(args, args.shared, M, N, K, Operand<float>{x.as<float>(), K, true}, Operand<bf16>{w.as<bf16>(), K, true}, nullptr, out, N, epilogue);
}

}  // namespace plmcore::PLM_ISA
