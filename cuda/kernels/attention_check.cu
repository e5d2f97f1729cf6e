// The lengths, prefixes, starts and offsets of attention's sequences: checked, and made into the table that
// the other kernels read. One block; traffic: these numbers once.
#include "device/attention_kernels.cuh"
#include "device/fault.cuh"

namespace plmcore::cuda {

namespace {

enum Checked { kOffsetsAt, kMaskCover, kBiasCover, kLengthsAt, kPrefixAt, kStartAt, kChecked };
struct Checks {
  const void* at[kChecked];
  bool wide[kChecked];     // int64
  Fault fault[kChecked];   // as it is reported; error none: the input is not there
  Fault* word;
  Sequence* table;
  int B, T, S;
  __device__ int64_t index(int which, int b) const {
    return wide[which] ? static_cast<const int64_t*>(at[which])[b]
                       : static_cast<const int32_t*>(at[which])[b];
  }
};
constexpr int kCheckThreads = 256;

// One block. With an error in offsets no sequence has any rows; another bad number counts as 0. The first
// error is noted in the order in which the CPU looks for them.
__global__ void __launch_bounds__(kCheckThreads) attention_check(const __grid_constant__ Checks k) {
  PLM_SHARED(unsigned long long, first_bad, [1]);
  PLM_SHARED(int, longest, [1]);
  const int t = static_cast<int>(threadIdx.x);
  const bool ragged = k.at[kOffsetsAt];
  if (t == 0) {
    first_bad[0] = kNoPosition;
    longest[0] = 0;
  }
  __syncthreads();
  const auto bad = [&](int which, int b) {
    atomicMin(&first_bad[0], static_cast<unsigned long long>(which) << 32 | static_cast<unsigned>(b));
  };
  if (ragged)
    for (int b = t; b <= k.B; b += kCheckThreads) {
      const int64_t at = k.index(kOffsetsAt, b), before = b ? k.index(kOffsetsAt, b - 1) : 0;
      if (at < before || at > k.T || (b == 0 && at != 0) || (b == k.B && at != k.T)) bad(kOffsetsAt, b);
      else if (before >= 0) atomicMax(&longest[0], static_cast<int>(at - before));
    }
  __syncthreads();
  if (t == 0 && ragged && first_bad[0] == kNoPosition)
    for (int which = kMaskCover; which <= kBiasCover; ++which) {
      const Fault& f = k.fault[which];
      if (f.error == DataError::none || first_bad[0] != kNoPosition) continue;
      const bool rows = f.size[2] >= longest[0] || (which == kMaskCover && f.size[2] == 1);
      if (!rows || f.size[3] < longest[0]) bad(which, 0);
    }
  __syncthreads();
  const bool broken = ragged && first_bad[0] != kNoPosition;
  __syncthreads();
  for (int b = t; b < k.B; b += kCheckThreads) {
    const auto position = [&](int which, int64_t missing) {
      if (!k.at[which]) return static_cast<int>(missing);
      const int64_t n = k.index(which, b);
      if (n >= 0 && n <= k.S) return static_cast<int>(n);
      if (!broken) bad(which, b);
      return 0;
    };
    Sequence s{static_cast<int64_t>(b) * k.T, static_cast<int64_t>(b) * k.S, k.T, k.S, 0, 0, 0};
    if (ragged) {
      const int64_t from = broken ? 0 : k.index(kOffsetsAt, b), to = broken ? 0 : k.index(kOffsetsAt, b + 1);
      s = {from, from, static_cast<int>(to - from), static_cast<int>(to - from), 0, 0, 0};
    }
    s.keys = position(kLengthsAt, s.S);
    s.prefix = position(kPrefixAt, 0);
    s.first = position(kStartAt, s.S - s.T);
    k.table[b] = s;
  }
  __syncthreads();
  if (t != 0 || first_bad[0] == kNoPosition || k.word->error != DataError::none) return;
  const int which = static_cast<int>(first_bad[0] >> 32), b = static_cast<int>(first_bad[0]);
  Fault f = k.fault[which];
  const DataError error = f.error;
  const bool cover = which == kMaskCover || which == kBiasCover;
  f.at = b;
  f.value = cover ? longest[0] : k.index(which, b);
  f.error = DataError::none;
  *k.word = f;
  __threadfence_system();
  k.word->error = error;
}

}  // namespace

const char* attention_sequences(const KernelArgs& args, const AttentionCall& c) {
  if (!c.table) return nullptr;
  const Gpu& gpu = gpu_of(args);
  Checks k{};
  k.word = gpu.fault;
  k.table = const_cast<Sequence*>(c.table);
  k.B = c.B;
  k.T = c.T;
  k.S = c.S;
  constexpr Input kInput[kChecked] = {kOffsets, kMask, kBias, kLengths, kPrefix, kStart};
  constexpr DataError kError[kChecked] = {DataError::offset,   DataError::cover,    DataError::cover,
                                          DataError::position, DataError::position, DataError::position};
  for (int which = 0; which < kChecked; ++which) {
    const View& v = args.in[kInput[which]];
    if (!v) continue;
    k.at[which] = v.data;
    k.wide[which] = v.dtype == DType::int64;
    Fault& f = k.fault[which];
    f.op = ops::id_attention;
    f.input = kInput[which];
    f.rank = v.rank;
    for (int a = 0; a < v.rank; ++a) f.size[a] = v.size[a];
    f.limit = which == kOffsetsAt ? c.T : c.S;
    f.error = kError[which];
  }
  return problem(launch<attention_check>(dim3(1), dim3(kCheckThreads), 0, gpu.stream, k));
}

}  // namespace plmcore::cuda
