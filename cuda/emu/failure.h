// What the emulator says when device code does something that a GPU would leave undefined.
#pragma once

#include <string>

namespace plmcore::emu {

// Thrown where the fault is seen. Inside a kernel it unwinds the one CUDA thread that saw it, up to the foot
// of its own stack; the launch ends there, and the next call that waits for the device returns
// cudaErrorLaunchFailure, whose text (cudaGetErrorString) is this one. Only a fault inside a `noexcept`
// function cannot be unwound and ends the process.
struct Failure {
  std::string text;
};

[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...);

}  // namespace plmcore::emu
