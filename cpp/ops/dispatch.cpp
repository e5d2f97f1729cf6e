#include <optional>

#include "core/device.h"
#include "core/recorder.h"
#include "ops/op.h"

namespace plmcore {

namespace {

// `any_layout`: with its storage, and without plain values where it has none yet.
View view_of(const Tensor& t, bool any_layout) {
  View v;
  if (!t.defined()) return v;
  TensorImpl* impl = t.impl();
  if (any_layout && impl->storage) {
    v.storage = impl->storage.get();
    v.data = std::atomic_ref(v.storage->data).load(std::memory_order_acquire);
    any_layout = v.data || (impl->offset == 0 && t.bytes() == v.storage->bytes);  // what is stored is whole
    if (v.data) v.data = static_cast<char*>(v.data) + impl->offset;
  }
  if (!any_layout || !impl->storage) v.data = t.data();
  v.dtype = t.dtype();
  v.rank = t.rank();
  v.numel = 1;
  for (int i = 0; i < v.rank; ++i) v.numel *= v.size[i] = t.shape()[i].value();
  return v;
}

bool is_empty(const Shape& shape) {
  for (Dim d : shape)
    if (d.is(0)) return true;
  return false;
}
// A tensor without elements may have other sizes of any product. Kernels multiply them, and walk rows that
// hold nothing.
bool is_vast(const Tensor& t) {
  if (!t.defined() || !is_empty(t.shape())) return false;
  int64_t product = 1;
  for (Dim d : t.shape())
    if (!d.is(0) && (__builtin_mul_overflow(product, d.value(), &product) || product > INT32_MAX))
      return true;
  return false;
}

// Where the inputs are that the kernel reads; `otherwise` where there are none.
Device& common_device(const OpDef& op, const Inputs& in, Device* otherwise) {
  Device* device = nullptr;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].defined()) continue;
    const TensorImpl* t = in[i].impl();
    check<DTypeError>(!t->rows, op.name, ": input ", i,
                      " is a row-sparse gradient; call to_dense() on it first");
    if (in_mask(op.extra.host_in, i)) continue;
    if (!device) device = t->device;
    else
      check<DeviceError>(device == t->device, op.name, ": inputs are on different devices, ", device->name(),
                         " and ", t->device->name(), "; move one with .to(\"", device->name(), "\")");
  }
  if (!device) device = otherwise;
  return device ? *device : cpu();
}

// A tensor of a trace has no values. Views of inputs for a kernel find that out themselves.
void need_values(const Inputs& in) {
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i].defined()) in[i].data();
}

// Sizes that only the data can tell (pack_rows): the op measures them, in the order in which the symbols
// appear.
void settle_sizes(const OpDef& op, const Inputs& in, const AttrList& attrs, Specs& out) {
  std::optional<SmallVector<int64_t, 2>> sizes;
  Bindings bound;
  size_t next = 0;
  for (Spec& s : out)
    for (int i = 0; i < s.shape.rank(); ++i) {
      const Dim d = s.shape[i];
      if (d.known()) continue;
      need_values(in);
      check<TraceError>(op.extra.measure, op.name, ": the size ", d, " has no number outside of a trace");
      if (!sizes) {
        Tensors inputs;
        for (size_t k = 0; k < in.size(); ++k) inputs.push_back(in[k]);
        sizes = op.extra.measure(inputs, {op.name, attrs});
      }
      if (next < sizes->size() && bound.bind(d, (*sizes)[next])) ++next;
      s.shape[i] = bound.evaluate(d);
    }
}

// For a vast tensor the kernel is not called: there is nothing to write, or it is an error.
bool has_vast(const OpDef& op, const Inputs& in, const Tensors& out) {
  const Tensor* vast = nullptr;
  bool writes = false;
  const auto look = [&](const Tensor& t, bool written) {
    if (is_vast(t)) vast = &t;
    writes |= written && t.defined() && !is_empty(t.shape());
  };
  for (size_t i = 0; i < in.size(); ++i) look(in[i], in_mask(op.extra.mutates, i));
  for (const Tensor& t : out) look(t, true);
  if (vast) check(!writes, op.name, ": the sizes of ", *vast, " are too large");
  return vast;
}

Tensor valueless(const Spec& spec, Device& device) {
  auto* impl = new TensorImpl;
  impl->spec = spec;
  impl->device = &device;
  return Tensor(impl);
}

Tensors views(const OpDef& op, const Inputs& in, const AttrList& attrs, const Specs& specs, Device& device) {
  Tensors out;
  const TensorImpl* from = in[0].impl();
  for (size_t k = 0; k < specs.size(); ++k) {
    TensorImpl* impl = out.emplace_back(valueless(specs[k], device)).impl();
    impl->storage = from->storage;
    impl->offset = from->offset;
    if (!is_empty(from->spec.shape))
      impl->offset +=
          static_cast<size_t>(op.extra.view(from->spec, {op.name, attrs}, k)) * size_of(from->spec.dtype);
  }
  return out;
}

// Copies of what a launcher reads, where it is on a device, in the place of the views of it.
Tensors host_inputs(const OpDef& op, const Inputs& in, SmallVector<View, 8>& views) {
  Tensors copies;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in_mask(op.extra.host_in, i) || !in[i].defined() || in[i].device().is_cpu()) continue;
    copies.push_back(in[i].to(cpu()));
    views[i] = view_of(copies.back(), false);
  }
  return copies;
}

// `recorded`: a gradient will be taken, so that weights are about to change and are read as they are.
Tensors execute(const OpDef& op, const Inputs& in, const AttrList& attrs, Specs& specs, Device& device,
                bool recorded) {
  const uint64_t any_layout = recorded ? 0 : device.any_layout(op_id(op));
  settle_sizes(op, in, attrs, specs);
  if (op.extra.view) {
    need_values(in);
    return views(op, in, attrs, specs, device);
  }
  Tensors out;
  for (const Spec& s : specs) out.push_back(Tensor::empty(s.shape, s.dtype, device));
  if (has_vast(op, in, out)) return out;
  SmallVector<View, 8> in_views;
  SmallVector<View, 4> out_views;
  for (size_t i = 0; i < in.size(); ++i) in_views.push_back(view_of(in[i], in_mask(any_layout, i)));
  const Tensors on_host = op.extra.host_in ? host_inputs(op, in, in_views) : Tensors();
  for (const Tensor& t : out) out_views.push_back(view_of(t, false));
  KernelArgs args;
  args.in = in_views.data();
  args.out = out_views.data();
  args.attrs = attrs.data();
  args.n_in = static_cast<int32_t>(in_views.size());
  args.n_out = static_cast<int32_t>(out_views.size());
  args.n_attrs = static_cast<int32_t>(attrs.size());
  device.compute(op_id(op), op.name, args);
  return out;
}

// A tracer is told of the call, and computes nothing.
Tensors traced(TraceRecorder& trace, const OpDef& op, const Inputs& in, const AttrList& attrs,
               const Specs& specs, Device& device) {
  Tensors out;
  for (const Spec& s : specs) out.push_back(valueless(s, device));
  trace.record(op, in, attrs, out);
  return out;
}

bool wants_gradient(const OpDef& op, const Inputs& in) {
  if (!op.backward || !grad_enabled()) return false;
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i].defined() && in[i].requires_grad()) return true;
  return false;
}

}  // namespace

const Attr* Attrs::find(const char* key) const {
  for (const Attr& a : *list_)
    if (a.key == key || std::strcmp(a.key, key) == 0) return &a;
  return nullptr;
}
const Attr& Attrs::at(const char* key, Attr::Kind kind) const {
  constexpr const char* names[] = {"int", "float", "dims"};
  const Attr* a = find(key);
  check<ValueError>(a, op_, ": the attribute '", key, "' is missing");
  check<ValueError>(a->kind == kind, op_, ": the attribute '", key, "' must be ", names[kind], ", got ",
                    names[a->kind]);
  return *a;
}
Dim Attrs::dim(const char* key) const {
  const Shape& list = dims(key);
  check<ValueError>(list.rank() == 1, op_, ": the attribute '", key, "' must be one size, got ", list);
  return list[0];
}
int64_t Attrs::code(const char* key, int64_t count) const {
  const int64_t n = i(key);
  check<ValueError>(n >= 0 && n < count, op_, ": the attribute '", key, "' must be from 0 to ", count - 1,
                    ", got ", n);
  return n;
}

// An op that writes an input must not be given one in read-only memory (a mapped file, a frozen array), nor
// read the memory that it writes through another input; and it spoils what was kept of that memory.
static void prepare_to_write(const OpDef& op, const Inputs& in) {
  const auto begin = [&](size_t i) { return static_cast<const char*>(in[i].data()); };
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in_mask(op.extra.mutates, i) || !in[i].defined() || !in[i].has_data()) continue;
    Storage& storage = *in[i].impl()->storage;
    check<ValueError>(!storage.read_only, op.name, ": input ", i,
                      " is in read-only memory; use copy() first");
    for (size_t k = 0; k < in.size(); ++k)
      if (k != i && in[k].defined() && in[k].has_data())
        check<ValueError>(begin(i) + in[i].bytes() <= begin(k) || begin(k) + in[k].bytes() <= begin(i),
                          op.name, ": input ", i, " is written and must not share memory with input ", k,
                          "; use copy() first");
    storage.device.forget_layouts(storage);
  }
}

Tensors dispatch(const OpDef& op, const Inputs& in, const AttrList& attrs, Device* device) {
  Device& where = common_device(op, in, device);
  Specs specs = op.infer(InSpecs(op.name, in), {op.name, attrs});
  if (op.extra.mutates) prepare_to_write(op, in);
  const bool recorded = wants_gradient(op, in);
  TraceRecorder* trace = TraceRecorder::current();
  Tensors out =
      trace ? traced(*trace, op, in, attrs, specs, where) : execute(op, in, attrs, specs, where, recorded);
  if (recorded) tape().record(op, in, attrs, out);
  return out;
}

}  // namespace plmcore
