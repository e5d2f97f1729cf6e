// Each row is one copy and a fill of zeros: traffic is one read and one write.
#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {
namespace {

// to[r][j] = from[r][j + shift(r)] where that column exists, else 0; row r is query i = r % T.
template <bool kBack>
void shift_rows(const View& from, const View& to) {
  const int64_t T = to.size[to.rank - 2], width = to.last(), columns = from.last();
  for_bytes(to.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    for_rows(to.rows(), width, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t moved = T - 1 - r % T, shift = kBack ? -moved : moved;
        const E* x = from.as<E>() + r * columns;
        E* y = to.as<E>() + r * width;
        const auto within = [&](int64_t j) { return j < 0 ? 0 : j > width ? width : j; };
        const int64_t first = within(-shift), last = within(columns - shift);
        if (first >= last) {
          for (int64_t j = 0; j < width; ++j) y[j] = 0;
          continue;
        }
        for (int64_t j = 0; j < first; ++j) y[j] = 0;
        std::memcpy(y + first, x + first + shift, static_cast<size_t>(last - first) * sizeof(E));
        for (int64_t j = last; j < width; ++j) y[j] = 0;
      }
    });
  });
}

}  // namespace

PLM_KERNEL(rel_shift) { shift_rows<false>(args.in[0], args.out[0]); }
PLM_KERNEL(rel_shift_grad) { shift_rows<true>(args.in[0], args.out[0]); }

}  // namespace plmcore::PLM_ISA
