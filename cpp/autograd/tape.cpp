#include "autograd/tape.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/device.h"
#include "core/recorder.h"
#include "plmcore/ops.h"
#include "plmcore/random.h"

namespace plmcore {

std::atomic<void (*)()> interrupt_hook{nullptr};

namespace {
std::atomic<uint64_t> g_sequence{0};
thread_local bool t_grad = true, t_rounds = false;
constexpr int64_t kLeastRounded = 4096;  // elements; what is smaller saves nothing worth a rounding
std::mutex g_leaf_mutex;  // two threads may collect into one leaf
std::mutex g_copy_mutex;  // or keep one tensor
// A forked child may find them taken by a thread that it does not have.
[[maybe_unused]] const int g_after_fork = pthread_atfork(nullptr, nullptr, [] {
  new (&g_leaf_mutex) std::mutex;
  new (&g_copy_mutex) std::mutex;
});

// The same memory without a place in the tape.
Tensor alias(const Tensor& t, bool with_data) {
  if (!t.defined()) return {};
  auto* impl = new TensorImpl;
  impl->spec = t.spec();
  impl->device = t.impl()->device;
  if (with_data) {
    impl->storage = t.impl()->storage;
    impl->offset = t.impl()->offset;
    impl->trace = t.impl()->trace;
  }
  return Tensor(impl);
}

// Where a computed tensor comes from, seen through views; no node for a leaf, a view of one, and what needs
// no gradient.
struct Origin {
  Node* node;
  int32_t index;
};
Origin origin_of(const Tensor& t) {
  Origin at = {t.impl()->grad_fn, t.impl()->out_index}, whole = at;
  bool all = true;  // elements of t so far
  while (at.node && at.node->op && at.node->op->extra.view) {
    all = all && at.node->op == &ops::reshape;
    const Edge& e = at.node->edges[0];
    at = {e.node.get(), e.out_index};
    if (all) whole = at;
  }
  return at.node ? whole : at;
}

// t as the tape keeps it: an alias, or where activations are rounded a copy in bfloat16, one for all who keep
// t; then the bit is set.
Tensor kept(const Tensor& t, bool exact, uint64_t& rounded, uint64_t bit) {
  if (!t_rounds || exact || !t.defined() || !t.has_data() || t.dtype() != DType::float32 ||
      t.numel() < kLeastRounded)
    return alias(t, true);
  const Origin from = origin_of(t);
  if (!from.node) return alias(t, true);
  const auto index = static_cast<size_t>(from.index);
  const std::lock_guard lock(g_copy_mutex);
  Tensors& copies = from.node->copies;
  if (copies.size() <= index) copies.resize(index + 1);
  if (!copies[index].defined()) {
    const NoGrad off;
    copies[index] = cast(t.detach(), DType::bfloat16);
  }
  Tensor copy = alias(copies[index], true);
  copy.impl()->spec.shape = t.shape();
  rounded |= bit;
  return copy;
}
Tensors restored(const Tensors& kept, uint64_t rounded) {
  Tensors all = kept;
  for (size_t i = 0; i < std::min<size_t>(all.size(), 64); ++i)
    if (rounded >> i & 1) all[i] = cast(all[i], DType::float32);
  return all;
}

Ref<Node> connect(const Inputs& in, Tensors& outputs) {
  Ref<Node> node(new Node);
  node->sequence = g_sequence.fetch_add(1, std::memory_order_relaxed) + 1;
  for (size_t i = 0; i < in.size(); ++i) {
    Edge& e = node->edges.emplace_back();
    const Tensor& t = in[i];
    if (!t.defined() || !t.requires_grad()) continue;
    if (t.is_leaf()) e.leaf = t;
    else {
      e.node = Ref<Node>(t.impl()->grad_fn);
      e.out_index = t.impl()->out_index;
    }
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k].defined() || !is_float(outputs[k].dtype())) continue;
    TensorImpl* impl = outputs[k].impl();
    impl->requires_grad = true;
    node->retain();
    impl->grad_fn = node.get();
    impl->out_index = static_cast<int32_t>(k);
  }
  return node;
}
}  // namespace

bool grad_enabled() { return t_grad; }
bool set_grad_enabled(bool on) { return std::exchange(t_grad, on); }
bool rounds_activations() { return t_rounds; }
bool set_rounds_activations(bool on) { return std::exchange(t_rounds, on); }
NoGrad::NoGrad(bool enabled) : before_(t_grad) { t_grad = enabled; }
NoGrad::~NoGrad() { t_grad = before_; }

void Node::release() const {
  if (!drop()) return;
  // Deleting a node drops its inputs' nodes; collect them in a list instead of recursing.
  static thread_local std::vector<const Node*>* queue = nullptr;
  if (queue) {
    queue->push_back(this);
    return;
  }
  std::vector<const Node*> list{this};
  queue = &list;
  while (!list.empty()) {
    const Node* n = list.back();
    list.pop_back();
    delete n;
  }
  queue = nullptr;
}

TensorImpl::~TensorImpl() {
  if (grad_fn) grad_fn->release();
  if (grad) grad->release();
  if (rows) rows->release();
}

namespace {
struct Tape final : Recorder {
  void record(const OpDef& op, const Inputs& in, const AttrList& attrs, Tensors& outputs) override;
};
}  // namespace
Recorder& tape() {
  static Tape* tape = new Tape;
  return *tape;
}

void Tape::record(const OpDef& op, const Inputs& in, const AttrList& attrs, Tensors& outputs) {
  Ref<Node> node = connect(in, outputs);
  node->op = &op;
  node->attrs = attrs;
  const uint64_t save_out = op.extra.reads_out ? op.extra.reads_out({op.name, node->attrs}) : op.save_out;
  const auto keep = [](const Tensor& t, size_t i, uint64_t save, uint64_t exact, uint64_t& rounded) {
    if (!in_mask(save, i)) return alias(t, false);
    return kept(t, i >= 64 || in_mask(exact, i), rounded, uint64_t{1} << (i & 63));
  };
  for (size_t i = 0; i < in.size(); ++i)
    node->in.push_back(keep(in[i], i, op.save_in, op.extra.exact_in, node->rounded_in));
  for (size_t k = 0; k < outputs.size(); ++k)
    node->out.push_back(keep(outputs[k], k, save_out, op.extra.exact_out, node->rounded_out));
}

void record(std::function<Tensors(const Tensors&)> backward, const Inputs& in, Tensors& outputs) {
  connect(in, outputs)->custom = std::move(backward);
}

// The copy is a step of the tape: its gradient is copied back.
Tensor Tensor::to(Device& device) const {
  Device& from = this->device();
  if (&device == &from) return *this;
  if (!device.is_cpu() && !from.is_cpu()) return to(cpu()).to(device);
  Tensor t = empty(shape(), dtype(), device);
  if (device.is_cpu()) from.copy_out(t.data(), data(), bytes());
  else device.copy_in(t.data(), data(), bytes());
  if (grad_enabled() && requires_grad()) {
    Tensors outputs{t};
    record([&from](const Tensors& dy) { return Tensors{dy[0].to(from)}; }, {*this}, outputs);
  }
  return t;
}

namespace {

#ifdef PLM_TEST_HOOKS
std::atomic<const OpDef*> g_negated{nullptr};

Tensor negative(const Tensor& t) {
  if (t.is_row_sparse()) return Tensor::row_sparse(t.rows(), negative(t.values()), t.shape()[0]);
  return mul(t, full({}, -1, t.dtype(), &t.device()));
}
#endif

Tensor accumulate(const Tensor& a, const Tensor& b) {
  if (!a.is_row_sparse() && !b.is_row_sparse()) return add(a, b);
  if (a.is_row_sparse() && b.is_row_sparse()) return merge_rows(a, b);
  return a.is_row_sparse() ? add_rows(b, a) : add_rows(a, b);
}
void add_into(Tensor& slot, const Tensor& g) { slot = slot.defined() ? accumulate(slot, g) : g; }

// One backward pass.
class Pass {
 public:
  Pass(const Tensors& outputs, const Tensors& seeds, bool retain) : retain_(retain) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor& y = outputs[i];
      check<GraphError>(y.requires_grad(), "backward: the tensor ", y,
                        " was not computed from anything with requires_grad=True");
      Tensor seed = i < seeds.size() ? seeds[i] : Tensor();
      if (!seed.defined()) {
        check(y.shape().known() ? y.numel() == 1 : false,
              "backward: the tensor must have one element, or pass the gradient to start from; it is ", y);
        seed = full(y.shape(), 1.0, y.dtype(), &y.device());
      }
      check(seed.shape().matches(y.shape()),
            "backward: the starting gradient must have the shape of the tensor ", y, ", got ", seed);
      if (y.is_leaf()) add_into(leaves_[y.impl()], seed);
      else {
        add_into(slot(y.impl()->grad_fn, y.impl()->out_index), seed);
        collect(y.impl()->grad_fn);
      }
      outputs_.push_back(y);
    }
    std::sort(order_.begin(), order_.end(),
              [](const Ref<Node>& a, const Ref<Node>& b) { return a->sequence > b->sequence; });
  }

  // Inner tensors whose gradient the caller wants; they are kept when the pass reaches their node.
  void want(const Tensor& t) {
    if (!t.is_leaf()) wanted_[{t.impl()->grad_fn, t.impl()->out_index}] = {};
  }
  Tensor result(const Tensor& t) {
    if (t.is_leaf()) {
      const auto it = leaves_.find(t.impl());
      return it == leaves_.end() ? Tensor() : it->second;
    }
    return wanted_[{t.impl()->grad_fn, t.impl()->out_index}];
  }

  // GraphError for a leaf that collected a gradient but is not among `listed`.
  void check_leaves(const Tensors& listed) const {
    for (auto& [impl, g] : leaves_)
      check<GraphError>(
          std::any_of(listed.begin(), listed.end(), [&](const Tensor& t) { return t.impl() == impl; }),
          "recompute: the body uses a trainable tensor ", Tensor(impl), " that was not passed in `params`");
  }

  void run() {
    NoGrad off;
    for (Ref<Node>& node : order_) {
      poll_interrupt();
      step(*node);
      node = {};
    }
  }

  void store_leaves() {
    std::lock_guard lock(g_leaf_mutex);
    for (auto& [impl, g] : leaves_) {
      Tensor leaf(impl);
      const Tensor before = leaf.grad();
      leaf.set_grad(before.defined() ? accumulate(before, g) : g);
    }
  }

 private:
  struct Key {
    const Node* node;
    int32_t index;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const {
      return std::hash<const void*>()(k.node) * 31 + static_cast<size_t>(k.index);
    }
  };

  Tensor& slot(const Node* n, int32_t index) {
    Tensors& s = pending_[n];
    if (s.size() <= static_cast<size_t>(index)) s.resize(index + 1);
    return s[index];
  }
  void collect(Node* root) {
    std::vector<Node*> stack{root};
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      if (!seen_.emplace(n, true).second) continue;
      order_.push_back(Ref<Node>(n));
      for (Edge& e : n->edges)
        if (e.node) stack.push_back(e.node.get());
    }
  }
  void step(Node& n) {
    auto it = pending_.find(&n);
    if (it == pending_.end()) return;
    Tensors dy = std::move(it->second);
    pending_.erase(it);
    bool any = false;
    for (size_t k = 0; k < dy.size(); ++k) {
      if (!dy[k].defined()) continue;
      any = true;
      if (auto w = wanted_.find({&n, static_cast<int32_t>(k)}); w != wanted_.end()) w->second = dy[k];
    }
    if (!any) return;
    check<GraphError>(
        !n.freed.load(), "backward: the graph of `", n.name(),
        "` was already used and freed; pass retain_graph=True to the first call to use it twice");

    Tensors dx;
    if (n.custom) dx = n.custom(dy);
    else {
      dy.resize(n.out.size());
      uint64_t wants = 0;
      for (size_t i = 0; i < n.edges.size(); ++i)
        if (n.edges[i].wanted()) wants |= uint64_t{1} << std::min<size_t>(i, 63);
      const bool as_is = n.rounded_in == 0 && n.rounded_out == 0;
      const Tensors in = as_is ? Tensors() : restored(n.in, n.rounded_in),
                    out = as_is ? Tensors() : restored(n.out, n.rounded_out);
      dx = n.op->backward(Grad{as_is ? n.in : in, as_is ? n.out : out, dy, {n.op->name, n.attrs}, wants});
#ifdef PLM_TEST_HOOKS
      if (n.op == g_negated.load())
        for (Tensor& d : dx)
          if (d.defined()) d = negative(d);
#endif
    }
    for (size_t i = 0; i < n.edges.size() && i < dx.size(); ++i) {
      Edge& e = n.edges[i];
      if (!dx[i].defined() || !e.wanted()) continue;
      if (e.leaf.defined()) {
        if (leaves_.find(e.leaf.impl()) == leaves_.end()) leaf_tensors_.push_back(e.leaf);
        add_into(leaves_[e.leaf.impl()], dx[i]);
      } else add_into(slot(e.node.get(), e.out_index), dx[i]);
    }
    if (!retain_) {
      n.freed.store(true);
      n.in.clear();
      n.out.clear();
      n.copies.clear();
      n.custom = nullptr;
    }
  }

  const bool retain_;
  std::vector<Ref<Node>> order_;
  std::unordered_map<const Node*, bool> seen_;
  std::unordered_map<const Node*, Tensors> pending_;
  std::unordered_map<TensorImpl*, Tensor> leaves_;
  std::vector<Tensor> leaf_tensors_;  // keeps the keys of leaves_ alive
  Tensors outputs_;
  std::unordered_map<Key, Tensor, Hash> wanted_;
};

}  // namespace

#ifdef PLM_TEST_HOOKS
void negate_backward(std::string_view op) {
  const OpDef* def = op.empty() ? nullptr : find_op(op);
  check<ValueError>(op.empty() || def, "there is no op '", op, "'");
  g_negated.store(def);
}
#endif

void Tensor::backward(const Tensor& seed, bool retain_graph) const {
  check<TraceError>(
      !TraceRecorder::current(),
      "backward() cannot run while tracing; use grad(loss, params), which returns the gradients");
  Pass pass({*this}, {seed}, retain_graph);
  pass.run();
  pass.store_leaves();
}

Tensors grad(const Tensors& outputs, const Tensors& inputs, const Tensors& seeds, bool retain_graph) {
  Pass pass(outputs, seeds, retain_graph);
  for (const Tensor& t : inputs) {
    check<GraphError>(t.requires_grad(), "grad: the input ", t, " does not have requires_grad=True");
    pass.want(t);
  }
  pass.run();
  Tensors result;
  for (const Tensor& t : inputs) result.push_back(pass.result(t));
  return result;
}

Tensors recompute(std::function<Tensors(const Tensors&)> body, const Tensors& inputs, const Tensors& params) {
  const RandomState start = random_state();
  Tensors outputs;
  {
    NoGrad off;
    for (const Tensor& t : body(inputs)) outputs.push_back(t.defined() ? t.detach() : t);
  }
  Tensors sources = inputs;
  for (const Tensor& p : params) sources.push_back(p);
  const bool any = std::any_of(sources.begin(), sources.end(),
                               [](const Tensor& t) { return t.defined() && t.requires_grad(); });
  if (!grad_enabled() || !any) return outputs;

  Tensors held;  // the inputs
  uint64_t rounded = 0;
  std::vector<bool> trained;
  for (const Tensor& t : inputs) {
    const size_t i = held.size();
    held.push_back(kept(t, i >= 64, rounded, uint64_t{1} << (i & 63)));
    trained.push_back(t.defined() && t.requires_grad());
  }
  auto backward = [body = std::move(body), held, rounded, trained, params, start](const Tensors& dy) {
    Tensors leaves = restored(held, rounded);
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i].defined()) leaves[i] = leaves[i].detach();
      if (trained[i]) leaves[i].set_requires_grad(true);
    }
    Tensors again, used, seeds;
    {
      const NoGrad on(true);
      const RandomReplay replay(start);
      again = body(leaves);
    }
    for (size_t k = 0; k < again.size() && k < dy.size(); ++k)
      if (dy[k].defined() && again[k].defined() && again[k].requires_grad()) {
        used.push_back(again[k]);
        seeds.push_back(dy[k]);
      }
    for (const Tensor& p : params) leaves.push_back(p);
    Tensors dx(leaves.size());
    if (used.empty()) return dx;
    Pass pass(used, seeds, false);
    for (const Tensor& t : leaves)
      if (t.defined() && t.requires_grad()) pass.want(t);
    pass.run();
    for (size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].defined() && leaves[i].requires_grad()) dx[i] = pass.result(leaves[i]);
    pass.check_leaves(leaves);
    return dx;
  };
  record(std::move(backward), Inputs(sources), outputs);
  return outputs;
}

}  // namespace plmcore
