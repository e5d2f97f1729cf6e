// Index tensors: a check before any use, and sums of rows that share an index.
#pragma once

#include "core/fault.h"
#include "kernels/move.h"
#include "kernels/wrap.h"

namespace plmcore::PLM_ISA {

// The workspace of kernels that add up rows of output 0: a float copy of it for the half types.
static inline Workspace float_sums(const KernelArgs& args) {
  const View& y = args.out[0];
  return {.shared = size_of(y.dtype) == 2 ? static_cast<size_t>(y.numel) * sizeof(float) : 0};
}

// IndexError for the first of `index` outside [0, n): its value, and its position in the index tensor.
template <class I>
void check_indices(ops::Id op, const View& index, int64_t n) {
  const I* p = index.as<I>();
  bool bad = false;
  for (int64_t i = 0; i < index.numel; ++i)
    bad |= static_cast<uint64_t>(static_cast<int64_t>(p[i])) >= static_cast<uint64_t>(n);
  if (!bad) return;
  Fault fault = fault_in(op, index);
  fault.error = DataError::index;
  while (static_cast<uint64_t>(static_cast<int64_t>(p[fault.at])) < static_cast<uint64_t>(n)) ++fault.at;
  fault.value = p[fault.at];
  fault.limit = n;
  raise(fault);
}

template <class T> struct SumOf {
  using type = T;
};  // half types are added in float
template <> struct SumOf<bf16> {
  using type = float;
};
template <> struct SumOf<f16> {
  using type = float;
};

// f(Type<T>) for the types that rows can be added in.
template <class F>
PLM_INLINE void for_addable(const char* op, DType t, F f) {
  switch (t) {
    case DType::int64: return f(Type<int64_t>{});
    case DType::int32: return f(Type<int32_t>{});
    default: return for_float(op, t, f);
  }
}

// sum[o, index[j], i] += rows[o, j, i] for o < outer, j < m, i < inner; sum has n rows. A task owns columns,
// and walks j in order: the sums do not depend on the threads.
template <class T, class A, class I>
void add_rows(A* sum, const T* rows, const I* index, int64_t outer, int64_t n, int64_t m, int64_t inner) {
  constexpr int64_t kColumns = 128;
  const int64_t parts = (inner + kColumns - 1) / kColumns;
  auto task = [&](int64_t t, int) {
    const int64_t o = t / parts, begin = t % parts * kColumns,
                  end = begin + kColumns < inner ? begin + kColumns : inner;
    for (int64_t j = 0; j < m; ++j) {
      A* to = sum + (o * n + index[j]) * inner;
      const T* from = rows + (o * m + j) * inner;
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (std::is_same_v<T, A>) to[i] = static_cast<A>(unsigned_of(to[i]) + unsigned_of(from[i]));
        else to[i] += to_float(from[i]);
      }
    }
  };
  if (outer * m * inner <= kGrain)
    for (int64_t t = 0; t < outer * parts; ++t) task(t, 0);
  else parallel_for(outer * parts, task);
}

// Where rows are added: the output itself, or for the half types a float copy in the workspace, rounded at
// the end.
template <class T, class F>
PLM_INLINE void with_sums(const KernelArgs& args, const View* start, F f) {
  using A = typename SumOf<T>::type;
  const View& y = args.out[0];
  const int64_t bytes = y.numel * static_cast<int64_t>(sizeof(T));
  if constexpr (std::is_same_v<T, A>) {
    if (start) copy_rows(1, bytes, y.as<char>(), bytes, start->as<char>(), bytes);
    else zero_rows(1, bytes, y.as<char>(), bytes);
    f(y.as<A>());
  } else {
    A* sum = args.shared_as<A>();
    for_chunks(y.numel, kGrain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) sum[i] = start ? to_float(start->as<T>()[i]) : A(0);
    });
    f(sum);
    for_chunks(y.numel, kGrain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) y.as<T>()[i] = from_float<T>(sum[i]);
    });
  }
}

}  // namespace plmcore::PLM_ISA
