// The tape: one Node per recorded op call. Nodes hold aliases of the tensors their backward rule reads (same
// memory, outside the tape), so there are no cycles: an output owns its node, a node never owns an output.
#pragma once

#include <atomic>
#include <functional>

#include "ops/op.h"

namespace plmcore {

struct Edge {
  Ref<Node> node;        // the step that made this input; null for a leaf or an input without gradient
  int32_t out_index = 0;
  Tensor leaf;           // a tensor that collects its gradient
  bool wanted() const { return static_cast<bool>(node) || leaf.defined(); }
};

struct Node : Counted {
  const OpDef* op = nullptr;
  // A step that is not an op (recomputation); takes the gradients of the outputs, returns those of the
  // inputs.
  std::function<Tensors(const Tensors& dy)> custom;
  AttrList attrs;
  Tensors in, out;
  uint64_t rounded_in = 0, rounded_out = 0;  // bits of those that are kept in bfloat16 and were float32
  Tensors copies;          // of the outputs in bfloat16, for all nodes that keep them
  SmallVector<Edge, 4> edges;
  uint64_t sequence = 0;   // grows with every node: a node's inputs come from smaller ones
  std::atomic<bool> freed{false};

  const char* name() const { return op ? op->name : "recompute"; }
  void release() const;    // iterative: a chain of a million steps must not overflow the stack
};

// Connects `outputs` to a new node over `inputs`. Dispatch does the same by tape().record()
// (core/recorder.h).
void record(std::function<Tensors(const Tensors&)> backward, const Inputs& in, Tensors& outputs);

// Runs `body` without recording and keeps only its inputs; the backward pass runs it again, recording, with
// the random numbers of the first run. `params` are the trainable tensors that `body` closes over.
Tensors recompute(std::function<Tensors(const Tensors&)> body, const Tensors& inputs, const Tensors& params);

// Whether float32 activations that backward rules will read are kept in bfloat16, half the memory; per
// thread. Results of the forward pass are the same bits. Parameters, small tensors and what an op declares as
// exact are kept as they are.
bool rounds_activations();
bool set_rounds_activations(bool on);  // returns what it was

// Called between steps of long native loops; throws to stop them. Set by the bindings (Ctrl-C).
extern std::atomic<void (*)()> interrupt_hook;
inline void poll_interrupt() {
  if (auto* hook = interrupt_hook.load(std::memory_order_relaxed)) hook();
}

#ifdef PLM_TEST_HOOKS
// The backward rule of the op with this name returns its negative from now on; "" for none. It shows that a
// gradient check notices a wrong rule.
void negate_backward(std::string_view op);
#endif

}  // namespace plmcore
