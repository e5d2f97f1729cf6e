// The rows of x and the labels that are not ignore_index, in order, and their numbers.
// x [B, T, ...]; labels [B, T] -> [N, ...], [N], [N]
#include "device/selection.cuh"

namespace plmcore::cuda {

namespace {
template <class I>
struct Labelled {
  const I* labels;
  int64_t ignore;
  __device__ __forceinline__ bool operator()(int64_t r) const { return labels[r] != ignore; }
};
}  // namespace

PLM_KERNEL(select_labelled, choose_workspace) {
  const View &labels = args.in[1], &index = args.out[2];
  return for_index(labels.dtype, [&](auto type) {
    using I = typename decltype(type)::type;
    const Labelled<I> test{labels.as<I>(), args.i("ignore_index")};
    if (const char* why = choose_rows(args, test, labels.numel, index)) return why;
    constexpr ops::Id op = ops::id_select_labelled;
    if (const char* why = take_chosen(args, op, args.in[0], labels.numel, index, args.out[0])) return why;
    return take_chosen(args, op, labels, labels.numel, index, args.out[1]);
  });
}

}  // namespace plmcore::cuda
