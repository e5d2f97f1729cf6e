// What attention's arguments mean to its kernels: where the rows of a sequence lie in the padded, packed and
// ragged layouts.
#pragma once

#include "core/attention_inputs.h"
#include "core/fault.h"
#include "kernels/attention_plan.h"
#include "kernels/kernel.h"
#include "plmcore/error.h"

namespace plmcore::PLM_ISA {

using namespace attention_inputs;
using namespace attention_plan;

PLM_INLINE int64_t index_at(const View& v, int64_t i) {
  return v.dtype == DType::int64 ? v.as<int64_t>()[i] : v.as<int32_t>()[i];
}

// One sequence: rows [q_row, q_row + T) of q and [k_row, k_row + S) of k and v.
struct Sequence {
  int64_t q_row, k_row, T, S;
};

struct AttentionLayout {
  const View* in;
  bool ragged, packed_qkv, packed_kv;
  int64_t B, T, S, H, D;     // ragged: T = S = the rows of all sequences
  int64_t longest_q, longest_k;
  int64_t q_stride, k_stride;  // between rows, in elements

  explicit AttentionLayout(const KernelArgs& args) : in(args.in) {
    const View& q = in[kQ];
    ragged = static_cast<bool>(in[kOffsets]);
    packed_qkv = !in[kK];
    packed_kv = !packed_qkv && !in[kV];
    H = q.size[q.rank - 2];
    D = q.size[q.rank - 1];
    B = ragged ? in[kOffsets].numel - 1 : q.size[0];
    T = ragged ? q.size[0] : q.size[1];
    S = ragged || packed_qkv ? T : in[kK].size[1];
    q_stride = (packed_qkv ? 3 : 1) * H * D;
    k_stride = packed_qkv ? q_stride : (packed_kv ? 2 : 1) * H * D;
    longest_q = T;
    longest_k = S;
    if (ragged) check_offsets();
    for (const Input i : {kLengths, kPrefix, kStart}) check_positions(i);
  }
  bool has(int i) const { return static_cast<bool>(in[i]); }

  Sequence sequence(int64_t b) const {
    if (!ragged) return {b * T, b * S, T, S};
    const int64_t first = index_at(in[kOffsets], b), n = index_at(in[kOffsets], b + 1) - first;
    return {first, first, n, n};
  }
  int64_t rows() const { return ragged ? H * T : B * H * T; }
  // The log-sums of one head lie together: [B, H, T], ragged [H, N].
  int64_t lse_row(int64_t b, int64_t h, const Sequence& s) const {
    return ragged ? h * T + s.q_row : (b * H + h) * T;
  }

  // k and v of one tensor lie behind q, or behind each other, in each row.
  template <class E> E* k_of(E* q, E* k) const { return packed_qkv ? q + H * D : k; }
  template <class E> E* v_of(E* q, E* k, E* v) const {
    if (packed_qkv) return q + 2 * H * D;
    return packed_kv ? k + H * D : v;
  }

 private:
  void check_offsets() {
    const View& offsets = in[kOffsets];
    int64_t before = 0;
    longest_q = 0;
    for (int64_t b = 0; b <= B; ++b) {
      const int64_t at = index_at(offsets, b);
      if (!(at >= before && at <= T && (b > 0 || at == 0) && (b < B || at == T)))
        refuse(DataError::offset, kOffsets, at, T, b);
      if (at - before > longest_q) longest_q = at - before;
      before = at;
    }
    longest_k = longest_q;
    for (const Input i : {kMask, kBias}) {
      if (!has(i)) continue;
      const int64_t rows = in[i].size[2], columns = in[i].size[3];
      if (!((rows >= longest_q || (i == kMask && rows == 1)) && columns >= longest_k))
        refuse(DataError::cover, i, longest_q);
    }
  }
  void check_positions(Input i) const {
    if (!has(i)) return;
    for (int64_t b = 0; b < B; ++b) {
      const int64_t n = index_at(in[i], b);
      if (n < 0 || n > S) refuse(DataError::position, i, n, S, b);
    }
  }
  [[noreturn]] void refuse(DataError error, Input i, int64_t value, int64_t limit = 0, int64_t at = 0) const {
    Fault fault = fault_in(ops::id_attention, in[i], i);
    fault.error = error;
    fault.value = value;
    fault.limit = limit;
    fault.at = at;
    raise(fault);
  }
};

}  // namespace plmcore::PLM_ISA
