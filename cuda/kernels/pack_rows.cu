// The rows of x where the mask is true, in order, and their numbers.   x [B, T, ...]; mask [B, T] -> [N,
// ...], [N]
#include "device/selection.cuh"

namespace plmcore::cuda {

namespace {
struct Masked {
  const uint8_t* mask;
  __device__ __forceinline__ bool operator()(int64_t r) const { return mask[r] != 0; }
};
}  // namespace

PLM_KERNEL(pack_rows, choose_workspace) {
  const View &mask = args.in[1], &index = args.out[1];
  if (const char* why = choose_rows(args, Masked{mask.as<uint8_t>()}, mask.numel, index)) return why;
  return take_chosen(args, ops::id_pack_rows, args.in[0], mask.numel, index, args.out[0]);
}

}  // namespace plmcore::cuda
