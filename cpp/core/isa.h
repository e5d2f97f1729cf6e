#pragma once

namespace plmcore {

const char*
cpu_isa();  // the instruction set of the kernels in use: "v2", "v3", "v4"; PLMCORE_ISA picks another

// Whether products with int8 weights multiply bytes, as kernels of v4 do on processors with AVX512-VNNI; the
// others multiply pairs of int16, to the same sums. PLMCORE_VNNI=0 does without.
bool cpu_multiplies_bytes();

}  // namespace plmcore
