// Who is told of op calls: the tape (cpp/autograd) and a tracer (cpp/program). What is below them knows them
// by this interface alone.
#pragma once

#include "plmcore/tensor.h"

namespace plmcore {

struct OpDef;
class Inputs;
class AttrList;

class Recorder {
 public:
  // A call and its outputs. The tape hears of it after the kernel has run; a tracer in place of the kernel,
  // so that the outputs have no values.
  virtual void record(const OpDef& op, const Inputs& in, const AttrList& attrs, Tensors& out) = 0;

 protected:
  ~Recorder() = default;
};

Recorder& tape();  // told of calls that a gradient will be taken of

class TraceRecorder : public Recorder {
 public:
  static TraceRecorder* current() { return current_; }  // this thread's; null: ops are computed
  virtual bool guard(Dim a, Dim b) = 0;                 // adds `a == b`, to hold when the program runs
  virtual Tensor& random() = 0;                         // the (seed, offset) value of the next random op
  virtual Tensor draw(Dim count) = 0;                   // that value, and moves it on by `count` numbers

 protected:
  ~TraceRecorder() = default;
  static inline thread_local TraceRecorder* current_ = nullptr;
};

}  // namespace plmcore
