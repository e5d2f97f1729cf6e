// The kernels of one instruction set in the order of ops.def. A forgotten kernel is a link error.
#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

#define PLM_OP(name) extern const KernelDef name##_kernel;
#define PLM_OP_VIEW(name)
#include "ops/ops.def"
#undef PLM_OP
#undef PLM_OP_VIEW

extern const KernelDef* const kernels[];
const KernelDef* const kernels[] = {
#define PLM_OP(name) &name##_kernel,
#define PLM_OP_VIEW(name) nullptr,
#include "ops/ops.def"
#undef PLM_OP
#undef PLM_OP_VIEW
};

}  // namespace plmcore::PLM_ISA
