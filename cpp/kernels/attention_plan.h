// How attention is cut into blocks, from sizes alone, so that results have the same bits for any number of
// threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plmcore::attention_plan {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Every tile is padded to these, the widest that an instruction set uses.
constexpr int64_t kRowPad = 12, kColumnPad = 32;

// Few queries: keys are read once in the order of memory, all heads of a key together.
constexpr int64_t kDecodeQueries = 1, kDecodeKeys = 64;  // keys of a task
constexpr bool decodes(int64_t T, bool ragged, bool weights, double dropout) {
  return T <= kDecodeQueries && !ragged && !weights && dropout <= 0;
}

// Forward: a task is one head and up to kTaskQueries queries; it visits the keys in blocks, packed for the
// products.
constexpr int64_t kTaskQueries = 528, kQueryBlock = 24;
constexpr int64_t kKeyBlock = 256, kSingleBlock = 512;  // up to kSingleBlock keys are one block: no rescaling
constexpr int64_t task_queries(int64_t heads, int64_t T) {  // 24 tasks if each can have 96 queries
  const int64_t wanted = least(most(heads * T / 24, 96), kTaskQueries);
  return round_up(most(ceil_div(T, ceil_div(most(T, 1), wanted)), 1), kQueryBlock);
}
// Backward: a task is one head (all heads that share a bias with a gradient) and a group of key blocks. With
// several groups, each leaves its part of the gradient of q, and the parts are added in order.
constexpr int64_t kGradQueries = 96, kGradKeys = 96;
constexpr int64_t grad_blocks(int64_t S) { return ceil_div(S, kGradKeys); }
constexpr int64_t grad_block_keys(int64_t S) {
  return round_up(most(ceil_div(S, most(grad_blocks(S), 1)), 1), kColumnPad);
}
constexpr int64_t key_groups(int64_t tasks, int64_t S) {
  return most(least(least(ceil_div(24, most(tasks, 1)), 8), grad_blocks(S) / 2), 1);
}

// Keys of a block. Weights are normalised in one piece: they need all keys in one.
constexpr int64_t forward_columns(int64_t S, bool ragged, bool weights) {
  if (ragged) return round_up(least(most(S, 1), kSingleBlock), kColumnPad);
  return weights || S <= kSingleBlock ? round_up(most(S, 1), kColumnPad) : kKeyBlock;
}

// Elements of a worker's buffers, in the order in which the kernels lay them out. Ragged sequences are of any
// length up to the T rows of all of them.
struct ForwardSpace {
  int64_t width, queries, columns, ld, q, kt, v, scores, out, stats, staging;
  constexpr ForwardSpace(int64_t heads, int64_t T, int64_t S, int64_t D, bool ragged, bool weights)
      : width(round_up(D, kColumnPad)),
        queries(ragged ? round_up(least(most(T, 1), kTaskQueries), kQueryBlock) : task_queries(heads, T)),
        columns(forward_columns(S, ragged, weights)),
        ld(columns + 16),
        q(kQueryBlock * width),
        kt(columns * width),
        v(columns * width),
        scores(kQueryBlock * ld),
        out(queries * width),
        stats(3 * queries),
        staging(kColumnPad * width) {}
  constexpr int64_t total() const { return q + kt + v + scores + out + stats + staging; }
};
struct DecodeSpace {
  int64_t chunks, rows, parts, stats, scores, q;  // parts and stats are shared
  constexpr DecodeSpace(int64_t B, int64_t T, int64_t S, int64_t H, int64_t D)
      : chunks(most(ceil_div(S, kDecodeKeys), 1)),
        rows(round_up(T * H, kRowPad)),
        parts(B * chunks * rows * D),
        stats(B * chunks * rows * 2),
        scores(rows * kDecodeKeys),
        q(rows * D) {}
};
struct BackwardSpace {
  int64_t width, ld, rows, q, keys, scores, stats, staging;
  constexpr BackwardSpace(int64_t T, int64_t D)
      : width(round_up(D, kColumnPad)),
        ld(kGradKeys + 16),
        rows(round_up(T, kRowPad)),
        q(rows * width),
        keys((kGradKeys + kRowPad) * width),
        scores(kGradQueries * ld),
        stats(round_up(3 * rows, 16)),
        staging(kColumnPad * width) {}
  // q, dout, dq; k^T, v^T, k, dk, dv; p, ds
  constexpr int64_t total() const { return 3 * q + 5 * keys + 2 * scores + stats + staging; }
};

}  // namespace plmcore::attention_plan
