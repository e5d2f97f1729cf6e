#include "program/trace.h"

#include <algorithm>
#include <atomic>

#include "core/device.h"
#include "plmcore/ops.h"
#include "program/body.h"

namespace plmcore {

namespace {
thread_local Tracer* t_tracer = nullptr;
std::atomic<int64_t> g_traces{0};
}  // namespace

Tracer::Tracer() : serial_(++g_traces) {
  check<TraceError>(!t_tracer, "a trace is already running on this thread");
  t_tracer = this;
}
Tracer::~Tracer() { stop(); }
void Tracer::stop() {
  if (t_tracer == this) t_tracer = nullptr;
}
Tracer* Tracer::current() { return t_tracer; }

bool Tracer::Memory::operator<(const Memory& o) const {
  if (data != o.data) return std::less<>()(data, o.data);
  if (spec.dtype != o.spec.dtype) return spec.dtype < o.spec.dtype;
  return std::lexicographical_compare(spec.shape.begin(), spec.shape.end(), o.spec.shape.begin(), o.spec.shape.end(),
                                      [](Dim a, Dim b) { return a.rep() < b.rep(); });
}

Tensor Tracer::make(int32_t value, const Spec& spec, Device& device) {
  auto* impl = new TensorImpl;
  impl->spec = spec;
  impl->device = &device;
  impl->trace = serial_ << 32 | value;
  return Tensor(impl);
}

Tensor Tracer::input(std::string name, const Spec& spec) {
  Program::Body& b = program_.body();
  const auto value = static_cast<int32_t>(b.values.size());
  b.values.push_back({spec, name, {}, -1});
  b.input_values.push_back(value);
  b.inputs.push_back({std::move(name), spec});
  return make(value, spec, cpu());
}

bool Tracer::name_constant(const Tensor& t, std::string name) {
  const auto it = constants_.find({t.data(), t.spec()});
  if (it == constants_.end()) return false;
  program_.body().values[static_cast<size_t>(it->second)].name = std::move(name);
  return true;
}

int32_t Tracer::value_of(const Tensor& t) {
  if (!t.defined()) return 0;
  if (t.impl()->trace) {
    check<TraceError>(t.impl()->trace >> 32 == serial_, "a tensor ", t, " from another trace was used in this one");
    return static_cast<int32_t>(t.impl()->trace & 0xffffffff);
  }
  const auto [it, fresh] = constants_.try_emplace({t.data(), t.spec()}, 0);
  if (fresh) {
    auto& values = program_.body().values;
    it->second = static_cast<int32_t>(values.size());
    values.push_back({t.spec(), "constant." + std::to_string(constants_.size() - 1), t.detach(), -1});
  }
  return it->second;
}

Tensors Tracer::append(const OpDef& op, const Inputs& in, const AttrList& attrs, const Specs& specs) {
  Instruction step;
  step.op = &op;
  step.attrs = attrs;
  Device* device = nullptr;
  for (size_t i = 0; i < in.size(); ++i) {
    step.in.push_back(value_of(in[i]));
    if (!device && in[i].defined()) device = &in[i].device();
  }
  Tensors out;
  auto& values = program_.body().values;
  for (const Spec& s : specs) {
    const auto value = static_cast<int32_t>(values.size());
    values.push_back({s, {}, {}, -1});
    step.out.push_back(value);
    out.push_back(make(value, s, device ? *device : cpu()));
  }
  program_.body().instructions.push_back(std::move(step));
  return out;
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

Program Tracer::finish(const std::vector<std::string>& names, const Tensors& outputs) {
  Program::Body& b = program_.body();
  for (size_t k = 0; k < outputs.size(); ++k) {
    check<TraceError>(outputs[k].defined(), "output ", k, " of the traced function is none");
    const Tensor output = to_dense(outputs[k]);  // a row-sparse gradient leaves the program whole
    b.output_values.push_back(value_of(output));
    b.outputs.push_back({k < names.size() ? names[k] : "output." + std::to_string(k), output.spec()});
  }
  if (b.random_in) b.random_out = value_of(random_);
  b.find_last_uses();
  stop();
  return std::move(program_);
}

}  // namespace plmcore
