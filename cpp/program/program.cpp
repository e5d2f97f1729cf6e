#include "plmcore/program.h"

#include <map>
#include <optional>
#include <tuple>

#include "autograd/tape.h"
#include "core/device.h"
#include "cpu/weight_layouts.h"
#include "plmcore/random.h"
#include "program/body.h"

namespace plmcore {

Program::Program() : body_(std::make_unique<Body>()) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

const std::vector<Program::Named>& Program::inputs() const { return body_->inputs; }
const std::vector<Program::Named>& Program::outputs() const { return body_->outputs; }
size_t Program::size() const { return body_->instructions.size(); }

void Program::Body::analyse() {
  device = nullptr;
  for (size_t k = 0; k < instructions.size(); ++k) {
    const Instruction& step = instructions[k];
    writes |= step.op->extra.mutates != 0;
    for (size_t i = 0; i < step.in.size(); ++i) {
      Value& value = values[step.in[i]];
      value.last_use = static_cast<int32_t>(k);
      if (!device && value.constant.defined() && !in_mask(step.op->extra.host_in, i))
        device = &value.constant.device();
    }
    for (int32_t v : instructions[k].out) values[v].last_use = static_cast<int32_t>(k);
  }
  for (Value& v : values)
    if (v.constant.defined()) v.last_use = -1;
  for (int32_t v : output_values) values[v].last_use = -1;
  if (random_out) values[random_out].last_use = -1;
}

namespace {

AttrList settle(const AttrList& attrs, const Bindings& bound) {
  AttrList result = attrs;
  for (Attr& a : result)
    for (int i = 0; i < a.dims.rank(); ++i) a.dims[i] = bound.evaluate(a.dims[i]);
  return result;
}

// Constants on another device; programs that share one go on sharing it.
class Moved {
 public:
  void move(const Program& program, Device& device) {
    Program::Body& b = program.body();
    for (Value& value : b.values)
      if (value.constant.defined()) value.constant = moved(value.constant, device);
    b.analyse();
  }

 private:
  Tensor moved(const Tensor& t, Device& device) {
    Tensor& to = done_[{t.impl()->storage.get(), t.impl()->offset, t.bytes()}];
    if (!to.defined()) to = t.to(device);
    if (to.dtype() == t.dtype() && to.shape().matches(t.shape())) return to;
    return t.to(device);  // the same memory, looked at in another way
  }
  std::map<std::tuple<const Storage*, size_t, size_t>, Tensor> done_;
};

void bind_inputs(const Program::Body& b, const Tensors& inputs, Bindings& bound) {
  check<ValueError>(inputs.size() == b.inputs.size(), "the program takes ", b.inputs.size(), " inputs, got ",
                    inputs.size());
  // Lone symbols first, so that an expression over them can be compared in any order.
  for (const bool symbols : {true, false})
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& [name, spec] = b.inputs[i];
      const Tensor& t = inputs[i];
      check<ValueError>(t.defined(), "the program's input '", name, "' is missing");
      check<DTypeError>(t.dtype() == spec.dtype, "the program's input '", name, "' must be ", spec, ", got ",
                        t);
      check(t.rank() == spec.shape.rank(), "the program's input '", name, "' must be ", spec, ", got ", t);
      for (int k = 0; k < t.rank(); ++k)
        if (spec.shape[k].is_symbol() == symbols)
          if (!bound.bind(spec.shape[k], t.shape()[k].value()))
            fail<ShapeError>("the program's input '", name, "' must be ", spec, ", got ", t, ": ",
                             spec.shape[k], " is ", bound.evaluate(spec.shape[k]), " elsewhere but ",
                             t.shape()[k], " here");
    }
  for (const Guard& g : b.guards)
    check(bound.evaluate(g.a) == bound.evaluate(g.b), "the program needs ", g.a, " == ", g.b, ", got ",
          bound.evaluate(g.a), " and ", bound.evaluate(g.b));
}

}  // namespace

Tensors Program::run(const Tensors& inputs) const {
  const Body& b = *body_;
  const NoGrad off;
  std::optional<PackingScope> packing;
  if (b.writes) packing.emplace(Packing::found);  // a copy would be out of date after the step
  Bindings bound;
  bind_inputs(b, inputs, bound);

  std::vector<Tensor> values(b.values.size());
  for (size_t v = 0; v < values.size(); ++v) values[v] = b.values[v].constant;
  for (size_t i = 0; i < inputs.size(); ++i) values[b.input_values[i]] = inputs[i];
  // Where ops run whose place no input tells.
  Device* device = b.device;
  if (!device && !inputs.empty()) device = &inputs[0].device();
  if (b.random_in) {
    const RandomState now = random_state();
    const int64_t pair[2] = {now.seed, now.offset};
    values[b.random_in] = Tensor::empty({2}, DType::int64);
    cpu().copy_in(values[b.random_in].data(), pair, sizeof pair);
  }

  for (size_t k = 0; k < b.instructions.size(); ++k) {
    poll_interrupt();
    const Instruction& step = b.instructions[k];
    Tensors in;
    for (int32_t v : step.in) in.push_back(values[v]);
    Tensors out = dispatch(*step.op, Inputs(in), settle(step.attrs, bound), device);
    check<TraceError>(out.size() == step.out.size(), step.op->name, ": has ", out.size(),
                      " outputs, the trace had ", step.out.size());
    for (size_t o = 0; o < step.out.size(); ++o) {
      const Spec& spec = b.values[step.out[o]].spec;
      check<TraceError>(out[o].dtype() == spec.dtype && out[o].rank() == spec.shape.rank(), step.op->name,
                        ": output ", o, " came out as ", out[o], ", the trace had ", spec);
      // A size that only the data tells gets its number here.
      const Shape& want = spec.shape;
      for (int i = 0; i < want.rank(); ++i)
        check<TraceError>(bound.bind(want[i], out[o].shape()[i].value()), step.op->name, ": axis ", i,
                          " came out as ", out[o].shape()[i], ", the trace had ", want[i]);
      values[step.out[o]] = out[o];
    }
    in.clear();
    for (int32_t v : step.in)
      if (b.values[v].last_use == static_cast<int32_t>(k)) values[v] = {};
    for (int32_t v : step.out)
      if (b.values[v].last_use == static_cast<int32_t>(k)) values[v] = {};
  }

  if (b.random_out) {
    int64_t pair[2];
    cpu().copy_out(pair, values[b.random_out].data(), sizeof pair);
    set_random_state({pair[0], pair[1], {}});
  }
  Tensors outputs;
  for (int32_t v : b.output_values) outputs.push_back(values[v]);
  return outputs;
}

void Program::to(Device& device) { Moved().move(*this, device); }
Device& Program::device() const { return body_->device ? *body_->device : cpu(); }
void Model::to(Device& device) {
  Moved moved;
  for (const auto& [name, program] : programs_) moved.move(program, device);
}

std::string Program::str() const {
  const Body& b = *body_;
  std::string text;
  auto value = [&](int32_t v) {
    if (v == 0) return std::string("none");
    return b.values[v].name.empty() ? "%" + std::to_string(v) : b.values[v].name;
  };
  for (const auto& [name, spec] : b.inputs) {
    text += "input " + name + " ";
    append(text, spec);
    text += "\n";
  }
  for (const Guard& g : b.guards) text += "guard " + g.a.str() + " == " + g.b.str() + "\n";
  for (const Instruction& step : b.instructions) {
    for (size_t o = 0; o < step.out.size(); ++o) {
      text += (o ? ", " : "") + value(step.out[o]) + " ";
      append(text, b.values[step.out[o]].spec);
    }
    text += std::string(step.out.empty() ? "" : " = ") + step.op->name + "(";
    for (size_t i = 0; i < step.in.size(); ++i) text += (i ? ", " : "") + value(step.in[i]);
    for (const Attr& a : step.attrs) {
      text += std::string(", ") + a.key + "=";
      if (a.kind == Attr::kInt) append(text, a.i);
      else if (a.kind == Attr::kFloat) append(text, a.f);
      else append(text, a.dims);
    }
    text += ")\n";
  }
  for (size_t k = 0; k < b.outputs.size(); ++k)
    text += "output " + b.outputs[k].name + " = " + value(b.output_values[k]) + "\n";
  return text;
}

}  // namespace plmcore
