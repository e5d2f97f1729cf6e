// The host's side of attention: the call that its kernels get, and who launches what.
#pragma once

#include "device/attention_call.cuh"

namespace plmcore::cuda {

// Fills the table of a call and notes errors in lengths and offsets, where there are any
// (attention_check.cu).
const char* attention_sequences(const KernelArgs& args, const AttentionCall& c);
// Tensor cores, for half types and heads of up to kWidestHead columns (attention_mma.cu,
// attention_grad_mma.cu).
inline constexpr int kWidestHead = 256;
const char* attention_by_mma(const AttentionCall& c, cudaStream_t stream);
const char* attention_grad_by_mma(const AttentionCall& c, cudaStream_t stream);  // without dbias
// A few queries over many keys, without dropout or weights (attention_decode.cu). The rows must be c.vectors
// too.
bool suits_decoding(const AttentionCall& c);
int64_t decoding_bytes(const AttentionCall& c);
const char* attention_by_decoding(const AttentionCall& c, void* space, cudaStream_t stream);
inline bool suits_mma(const AttentionCall& c) { return size_of(c.dtype) == 2 && c.D <= kWidestHead; }

inline Plane plane_of(const View& v) {
  if (!v) return {};
  const int64_t plane = v.size[2] * v.size[3];
  return {v.data, v.size[0] == 1 ? 0 : v.size[1] * plane, v.size[1] == 1 ? 0 : plane,
          v.size[2] == 1 ? 0 : v.size[3]};
}

inline int64_t batch_of(const KernelArgs& args) {
  return args.has(kOffsets) ? args.in[kOffsets].numel - 1 : args.in[kQ].size[0];
}
inline int64_t round_to_line(int64_t bytes) { return (bytes + 255) / 256 * 256; }
// Of the table of sequences, at the start of the workspace.
inline int64_t table_bytes(const KernelArgs& args) {
  return round_to_line(batch_of(args) * static_cast<int64_t>(sizeof(Sequence)));
}

// k and v of one tensor lie behind q, or behind each other, in each row.
struct HeadsOf {
  char *q, *k, *v;
};
inline HeadsOf heads_of(const AttentionCall& c, const View* of, bool packed_qkv, bool packed_kv) {
  const int64_t step = static_cast<int64_t>(c.H) * c.D * static_cast<int64_t>(size_of(c.dtype));
  char* q = of[0].as<char>();
  char* k = packed_qkv ? q + step : of[1].as<char>();
  return {q, k, packed_qkv || packed_kv ? k + step : of[2].as<char>()};
}

// Outputs and workspaces are to be filled in.
inline AttentionCall attention_call(const KernelArgs& args) {
  const View &q = args.in[kQ], *in = args.in;
  AttentionCall c{};
  c.dtype = q.dtype;
  c.ragged = args.has(kOffsets);
  const bool packed_qkv = !args.has(kK), packed_kv = !packed_qkv && !args.has(kV);
  const auto small = [](int64_t n) { return static_cast<int>(n < (1 << 30) ? n : 1 << 30); };
  c.H = small(q.size[q.rank - 2]);
  c.D = small(q.size[q.rank - 1]);
  c.B = small(batch_of(args));
  c.T = small(q.size[c.ragged ? 0 : 1]);
  c.S = c.ragged || packed_qkv ? c.T : small(in[kK].size[1]);
  const int64_t row = static_cast<int64_t>(c.H) * c.D;
  c.q_stride = (packed_qkv ? 3 : 1) * row;
  c.k_stride = packed_qkv ? c.q_stride : (packed_kv ? 2 : 1) * row;
  c.rows = static_cast<int64_t>(c.H) * c.T * (c.ragged ? 1 : c.B);
  const HeadsOf heads = heads_of(c, in, packed_qkv, packed_kv);
  c.q = heads.q;
  c.k = heads.k;
  c.v = heads.v;
  if (c.ragged || args.has(kLengths) || args.has(kPrefix) || args.has(kStart))
    c.table = reinterpret_cast<const Sequence*>(args.shared);
  c.causal = args.i("causal") != 0;
  c.band = small(args.i("band"));
  c.stride = small(args.i("stride"));
  c.mask = plane_of(in[kMask]);
  c.bias = plane_of(in[kBias]);
  c.scale = args.f("scale");
  if (const double p = args.f("dropout"); p > 0) {
    c.draw = draw_of(in[kRandom]);
    c.threshold = static_cast<uint32_t>(p * 65536 + 0.5);
    c.keep = 1 / (1 - p);
    c.groups = (c.S + 127) / 128;
  }
  return c;
}

// Whether rows of all of these can be read `elements` at a time.
template <class... P>
bool rows_of_whole(const AttentionCall& c, int elements, const P*... p) {
  const auto bytes = static_cast<uintptr_t>(elements) * size_of(c.dtype);
  return c.D % elements == 0 && ((reinterpret_cast<uintptr_t>(p) % bytes == 0) && ...);
}

inline const char* too_large(const AttentionCall& c) {
  constexpr int kMost = 1 << 30;
  const bool sizes = c.B < kMost && c.T < kMost && c.S < kMost && c.H < 65536 && c.D < kMost;
  if (sizes && tile_blocks(c, c.T) < INT32_MAX && tile_blocks(c, c.S) < INT32_MAX && c.S / kTile < 65536)
    return nullptr;
  return "attention of so many rows is not on this device yet";
}

}  // namespace plmcore::cuda
