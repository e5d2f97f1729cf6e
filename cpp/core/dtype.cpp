#include "plmcore/dtype.h"

#include "plmcore/error.h"

namespace plmcore {

static constexpr const char* kNames[kDTypes] = {"float64", "float32", "bfloat16", "float16", "int64",
                                                "int32",   "int8",    "uint8",    "bool"};

const char* name_of(DType t) { return kNames[static_cast<int>(t)]; }

DType dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypes; ++i)
    if (name == kNames[i]) return static_cast<DType>(i);
  std::string known;
  for (const char* n : kNames) known += std::string(known.empty() ? "" : ", ") + n;
  fail<DTypeError>("dtype must be one of ", known, ", got '", name, "'");
}

}  // namespace plmcore
