// Tracer: records dispatched ops into a Program instead of running them.
#pragma once

#include <map>

#include "ops/op.h"
#include "plmcore/program.h"

namespace plmcore {

class Tracer {
 public:
  // Makes this thread's dispatch calls record into it until it is finished or destroyed. One at a time per thread.
  Tracer();
  ~Tracer();
  void stop();                                              // ops run again; also after a failure, before it is destroyed
  Tracer(const Tracer&) = delete;
  static Tracer* current();

  Tensor input(std::string name, const Spec& spec);
  // A weight that the program uses gets this name; false when it uses no such tensor.
  bool name_constant(const Tensor& t, std::string name);
  Tensors append(const OpDef& op, const Inputs& in, const AttrList& attrs, const Specs& out);
  bool guard(Dim a, Dim b);                                 // adds `a == b`, to hold when the program runs
  Tensor& random();                                       // the (seed, offset) value of the next random op
  Program finish(const std::vector<std::string>& names, const Tensors& outputs);

 private:
  // Constants are known by their memory, so that a weight and a detached view of it are one value.
  struct Memory {
    const void* data;
    Spec spec;
    bool operator<(const Memory& o) const;
  };
  int32_t value_of(const Tensor& t);
  Tensor make(int32_t value, const Spec& spec, Device& device);

  Program program_;
  const int64_t serial_;      // a traced tensor's `trace` holds the number of its trace, then of its value
  std::map<Memory, int32_t> constants_;
  Tensor random_;
};

}  // namespace plmcore
