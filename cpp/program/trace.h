// Tracer: records dispatched ops into a Program instead of running them.
#pragma once

#include <map>

#include "core/recorder.h"
#include "ops/op.h"
#include "plmcore/program.h"

namespace plmcore {

class Tracer final : public TraceRecorder {
 public:
  // Makes this thread's dispatch calls record into it until it is finished or destroyed. One at a time per
  // thread.
  Tracer();
  ~Tracer();
  void stop();  // ops run again; also after a failure, before it is destroyed
  Tracer(const Tracer&) = delete;

  Tensor input(std::string name, const Spec& spec, Device& device = cpu());
  // A weight that the program uses gets this name; false when it uses no such tensor.
  bool name_constant(const Tensor& t, std::string name);
  void record(const OpDef& op, const Inputs& in, const AttrList& attrs, Tensors& out) override;
  bool guard(Dim a, Dim b) override;
  Tensor& random() override;
  Tensor draw(Dim count) override;
  Program finish(const std::vector<std::string>& names, const Tensors& outputs);

 private:
  // Constants are known by their place in memory, so that a weight and a detached view of it are one value.
  struct Memory {
    const Storage* storage;
    size_t offset;
    Spec spec;
    bool operator<(const Memory& o) const;
  };
  static Memory memory_of(const Tensor& t);
  int32_t value_of(const Tensor& t);
  Tensor make(int32_t value, const Spec& spec, Device& device);

  Program program_;
  const int64_t serial_;  // a traced tensor's `trace` holds the number of its trace, then of its value
  std::map<Memory, int32_t> constants_;
  Tensor random_;
};

}  // namespace plmcore
