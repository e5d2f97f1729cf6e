// Each tensor is cut into at most 64 pieces by its size alone; the pieces' sums are added in order. One read
// of the list.
#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

namespace {
constexpr int64_t kPieces = 64;

PLM_INLINE void add_squares(vd& low, vd& high, vf x) {
  typedef float half __attribute__((vector_size(PLM_VECTOR_BYTES / 2)));
  half part[2];
  __builtin_memcpy(part, &x, sizeof x);
  const vd a = __builtin_convertvector(part[0], vd), b = __builtin_convertvector(part[1], vd);
  low = low + a * a;
  high = high + b * b;
}
PLM_INLINE void add_squares(vd& low, vd&, vd x) { low = low + x * x; }

template <class T>
PLM_INLINE double sum_squares(const T* x, int64_t n) {
  constexpr int W = Lane<T>::n;
  vd s0{}, s1{}, s2{}, s3{};
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    add_squares(s0, s1, load(x + i));
    add_squares(s2, s3, load(x + i + W));
  }
  for (; i < n; i += W)
    add_squares(s0, s1, n - i >= W ? load(x + i) : load_part(x + i, static_cast<int>(n - i)));
  return reduce_add((s0 + s1) + (s2 + s3));
}
}  // namespace

PLM_KERNEL(global_norm) {
  double total = 0;
  for (int k = 0; k < args.n_in; ++k) {
    const View& x = args.in[k];
    int64_t pieces = x.numel < kGrain ? 1 : x.numel / kGrain;
    if (pieces > kPieces) pieces = kPieces;
    double sums[kPieces];
    for_float("global_norm", x.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      const T* data = x.as<T>();
      parallel_for(pieces, [&](int64_t i, int) {
        const int64_t b = chunk_begin(x.numel, pieces, i), e = chunk_begin(x.numel, pieces, i + 1);
        sums[i] = sum_squares(data + b, e - b);
      });
    });
    for (int64_t i = 0; i < pieces; ++i) total += sums[i];
  }
  *args.out[0].as<float>() = static_cast<float>(std::sqrt(total));
}

}  // namespace plmcore::PLM_ISA
