#pragma once

namespace plmcore {

const char* cpu_isa();  // the instruction set of the kernels in use: "v2", "v3", "v4"; PLMCORE_ISA picks another

// Whether products of int8 weights take int8 activations, as kernels of v4 do on processors with AVX512-VNNI; others take int16.
// PLMCORE_VNNI=0 does without.
bool cpu_multiplies_bytes();

}  // namespace plmcore
