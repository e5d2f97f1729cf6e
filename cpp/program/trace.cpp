#include "program/trace.h"

#include <algorithm>
#include <atomic>

#include "core/device.h"
#include "plmcore/ops.h"
#include "plmcore/random.h"
#include "program/body.h"

namespace plmcore {

namespace {
std::atomic<int64_t> g_traces{0};
}  // namespace

Tracer::Tracer() : serial_(++g_traces) {
  check<TraceError>(!current_, "a trace is already running on this thread");
  current_ = this;
}
Tracer::~Tracer() { stop(); }
void Tracer::stop() {
  if (current_ == this) current_ = nullptr;
}

bool Tracer::Memory::operator<(const Memory& o) const {
  if (storage != o.storage) return std::less<>()(storage, o.storage);
  if (offset != o.offset) return offset < o.offset;
  if (spec.dtype != o.spec.dtype) return spec.dtype < o.spec.dtype;
  return std::lexicographical_compare(spec.shape.begin(), spec.shape.end(), o.spec.shape.begin(),
                                      o.spec.shape.end(), [](Dim a, Dim b) { return a.rep() < b.rep(); });
}

Tracer::Memory Tracer::memory_of(const Tensor& t) {
  if (!t.has_data()) t.data();  // says why there is none
  return {t.impl()->storage.get(), t.impl()->offset, t.spec()};
}

Tensor Tracer::make(int32_t value, const Spec& spec, Device& device) {
  auto* impl = new TensorImpl;
  impl->spec = spec;
  impl->device = &device;
  impl->trace = serial_ << 32 | value;
  return Tensor(impl);
}

Tensor Tracer::input(std::string name, const Spec& spec, Device& device) {
  Program::Body& b = program_.body();
  const auto value = static_cast<int32_t>(b.values.size());
  b.values.push_back({spec, name, {}, -1});
  b.input_values.push_back(value);
  b.inputs.push_back({std::move(name), spec});
  return make(value, spec, device);
}

bool Tracer::name_constant(const Tensor& t, std::string name) {
  const auto it = constants_.find(memory_of(t));
  if (it == constants_.end()) return false;
  program_.body().values[static_cast<size_t>(it->second)].name = std::move(name);
  return true;
}

int32_t Tracer::value_of(const Tensor& t) {
  if (!t.defined()) return 0;
  if (t.impl()->trace) {
    check<TraceError>(t.impl()->trace >> 32 == serial_, "a tensor ", t,
                      " from another trace was used in this one");
    return static_cast<int32_t>(t.impl()->trace & 0xffffffff);
  }
  const auto [it, fresh] = constants_.try_emplace(memory_of(t), 0);
  if (fresh) {
    auto& values = program_.body().values;
    it->second = static_cast<int32_t>(values.size());
    values.push_back({t.spec(), "constant." + std::to_string(constants_.size() - 1), t.detach(), -1});
  }
  return it->second;
}

void Tracer::record(const OpDef& op, const Inputs& in, const AttrList& attrs, Tensors& out) {
  Instruction step;
  step.op = &op;
  step.attrs = attrs;
  for (size_t i = 0; i < in.size(); ++i) step.in.push_back(value_of(in[i]));
  auto& values = program_.body().values;
  for (const Tensor& t : out) {
    const auto value = static_cast<int32_t>(values.size());
    values.push_back({t.spec(), {}, {}, -1});
    step.out.push_back(value);
    t.impl()->trace = serial_ << 32 | value;
  }
  program_.body().instructions.push_back(std::move(step));
}

bool Tracer::guard(Dim a, Dim b) {
  for (const Guard& g : program_.body().guards)
    if (same(g.a, a) && same(g.b, b)) return true;
  program_.body().guards.push_back({a, b});
  return true;
}

Tensor& Tracer::random() {
  if (!random_.defined()) {
    Program::Body& b = program_.body();
    const auto value = static_cast<int32_t>(b.values.size());
    b.values.push_back({{{2}, DType::int64}, "random", {}, -1});
    b.random_in = value;
    random_ = make(value, b.values.back().spec, cpu());
  }
  return random_;
}

Tensor Tracer::draw(Dim count) {
  const Tensor now = random();
  random_ = rng_advance(now, count);
  return now;
}

Program Tracer::finish(const std::vector<std::string>& names, const Tensors& outputs) {
  Program::Body& b = program_.body();
  for (size_t k = 0; k < outputs.size(); ++k) {
    check<TraceError>(outputs[k].defined(), "output ", k, " of the traced function is none");
    const Tensor output = to_dense(outputs[k]);  // a row-sparse gradient leaves the program whole
    b.output_values.push_back(value_of(output));
    b.outputs.push_back({k < names.size() ? names[k] : "output." + std::to_string(k), output.spec()});
  }
  if (b.random_in) b.random_out = value_of(random_);
  b.analyse();
  stop();
  return std::move(program_);
}

}  // namespace plmcore
