#pragma once

namespace plmcore {

const char* cpu_isa();  // the instruction set of the kernels in use: "v2", "v3", "v4"; PLMCORE_ISA picks another

}  // namespace plmcore
