// How many bytes the system could still give to this process.
#pragma once

#include <cstddef>
#include <string>

namespace plmcore {

// The least of what the machine has left and what each control group above this process, itself included,
// still allows. `root` stands in for "/" in tests.
size_t available_memory(const std::string& root = "");

}  // namespace plmcore
