// The number of each op: its place in ops.def. Tables of kernels are in this order.
#pragma once

namespace plmcore::ops {

enum Id : int {
#define PLM_OP(name) id_##name,
#define PLM_OP_VIEW(name) PLM_OP(name)
#include "ops/ops.def"
#undef PLM_OP
#undef PLM_OP_VIEW
  kCount
};

inline constexpr const char* kNames[] = {
#define PLM_OP(name) #name,
#define PLM_OP_VIEW(name) PLM_OP(name)
#include "ops/ops.def"
#undef PLM_OP
#undef PLM_OP_VIEW
};

}  // namespace plmcore::ops
