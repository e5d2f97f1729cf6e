#include "vectors/kernels.h"

#include <cstring>

#include "core/isa.h"
#include "plmcore/error.h"

namespace plmcore {

#define PLM_DECLARE(isa)                                                                                \
  namespace isa {                                                                                       \
  void word2vec(const vectors::Word2VecModel&, vectors::Word2VecThread&, int64_t until, void* scratch); \
  double glove(const vectors::GloveModel&, const vectors::Record*, int64_t n);                          \
  }
PLM_DECLARE(isa_v4)
PLM_DECLARE(isa_v3)
PLM_DECLARE(isa_v3w)
PLM_DECLARE(isa_v2)
PLM_DECLARE(isa_base)
#undef PLM_DECLARE

namespace vectors {
namespace {

struct Isa {
  const char* name;
  Kernels kernels;
};

const Isa kTable[] = {
#ifdef PLM_HAS_v4
    {"v4", {isa_v4::word2vec, isa_v4::glove}},
#endif
#ifdef PLM_HAS_v3
    {"v3", {isa_v3::word2vec, isa_v3::glove}},
#endif
#ifdef PLM_HAS_v3w
    {"v3w", {isa_v3w::word2vec, isa_v3w::glove}},
#endif
#ifdef PLM_HAS_v2
    {"v2", {isa_v2::word2vec, isa_v2::glove}},
#endif
#ifdef PLM_HAS_base
    {"base", {isa_base::word2vec, isa_base::glove}},
#endif
};

}  // namespace

const Kernels& kernels() {
  for (const Isa& isa : kTable)
    if (std::strcmp(isa.name, cpu_isa()) == 0) return isa.kernels;
  fail<DeviceError>("this build has no trainers of vectors for the instruction set ", cpu_isa());
}

}  // namespace vectors
}  // namespace plmcore
