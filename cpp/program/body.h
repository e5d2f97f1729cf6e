// What a Program consists of.
#pragma once

#include "ops/op.h"
#include "plmcore/program.h"

namespace plmcore {

struct Value {
  Spec spec;
  std::string name;      // of an input or a constant
  Tensor constant;       // defined for constants
  int32_t last_use = -1; // the instruction after which its memory is free; -1 for outputs and constants
};

struct Instruction {
  const OpDef* op = nullptr;
  SmallVector<int32_t, 6> in;   // value numbers; 0: an optional input that was not given
  SmallVector<int32_t, 4> out;
  AttrList attrs;
};

struct Guard {
  Dim a, b;
};

struct Program::Body {
  std::vector<Value> values{1};  // number 0 is "none"
  std::vector<Instruction> instructions;
  std::vector<Guard> guards;
  std::vector<Named> inputs, outputs;
  std::vector<int32_t> input_values, output_values;
  int32_t random_in = 0, random_out = 0;  // (seed, offset) before and after; 0: the program draws no numbers

  bool writes = false;  // an instruction changes a constant or an input: a training step
  Device* device = nullptr;  // of the constants that kernels read; null where there are none

  void analyse();  // finds `last_use` of every value, and `writes`
};

}  // namespace plmcore
