#include <optional>

#include "autograd/tape.h"
#include "core/device.h"
#include "ops/kept_weight.h"
#include "ops/op.h"
#include "plmcore/threads.h"
#include "program/trace.h"

namespace plmcore {

namespace {

View view_of(const Tensor& t) {
  View v;
  if (!t.defined()) return v;
  v.data = t.data();
  v.dtype = t.dtype();
  v.rank = t.rank();
  v.numel = 1;
  for (int i = 0; i < v.rank; ++i) v.numel *= v.size[i] = t.shape()[i].value();
  return v;
}

Device& common_device(const OpDef& op, const Inputs& in, Device* device) {
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].defined()) continue;
    const TensorImpl* t = in[i].impl();
    check<DTypeError>(!t->rows, op.name, ": input ", i, " is a row-sparse gradient; call to_dense() on it first");
    if (!device) device = t->device;
    else
      check<DeviceError>(device == t->device, op.name, ": inputs are on different devices, ", device->name(), " and ", t->device->name());
  }
  return device ? *device : cpu();
}

// Sizes that only the data can tell (pack_rows): the op measures them, in the order in which the symbols appear.
void settle_sizes(const OpDef& op, const Inputs& in, const Attrs& attrs, Specs& out) {
  std::optional<SmallVector<int64_t, 2>> sizes;
  Bindings bound;
  size_t next = 0;
  for (Spec& s : out)
    for (int i = 0; i < s.shape.rank(); ++i) {
      const Dim d = s.shape[i];
      if (d.known()) continue;
      check<TraceError>(op.extra.measure, op.name, ": the size ", d, " has no number outside of a trace");
      if (!sizes) {
        Tensors inputs;
        for (size_t k = 0; k < in.size(); ++k) inputs.push_back(in[k]);
        sizes = op.extra.measure(inputs, attrs);
      }
      if (next < sizes->size() && bound.bind(d, (*sizes)[next])) ++next;
      s.shape[i] = bound.evaluate(d);
    }
}

Tensors execute(const OpDef& op, const Inputs& in, const Attrs& attrs, Specs& specs, Device& device) {
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i].defined()) in[i].data();  // a traced tensor has none: says so
  settle_sizes(op, in, attrs, specs);
  Tensors out;
  if (op.extra.view) {
    const TensorImpl* from = in[0].impl();
    for (size_t k = 0; k < specs.size(); ++k) {
      auto* impl = new TensorImpl;
      out.push_back(Tensor(impl));
      impl->spec = specs[k];
      impl->device = &device;
      impl->storage = from->storage;
      impl->offset = from->offset + static_cast<size_t>(op.extra.view(from->spec, attrs, k)) * size_of(from->spec.dtype);
    }
    return out;
  }
  SmallVector<View, 8> in_views;
  SmallVector<View, 4> out_views;
  for (size_t i = 0; i < in.size(); ++i) in_views.push_back(view_of(in[i]));
  for (const Spec& s : specs) {
    out.push_back(Tensor::empty(s.shape, s.dtype, device));
    out_views.push_back(view_of(out.back()));
  }
  KernelArgs args;
  args.in = in_views.data();
  args.out = out_views.data();
  args.attrs = attrs.data();
  args.n_in = static_cast<int32_t>(in_views.size());
  args.n_out = static_cast<int32_t>(out_views.size());
  args.n_attrs = static_cast<int32_t>(attrs.size());
  if (!op.extra.workspace) {
    device.run(op_id(op), op.name, args);
    return out;
  }
  const Workspace need = op.extra.workspace(args.in, args.out, attrs);
  const auto aligned = [](size_t n) { return (n + 63) / 64 * 64; };
  const int workers = device.workers();
  args.private_bytes = aligned(need.per_worker);
  const size_t bytes = aligned(need.shared) + args.private_bytes * static_cast<size_t>(workers);
  const Ref<Storage> space(bytes ? new Storage(device, bytes) : nullptr);
  args.shared = space ? static_cast<char*>(space->data) : nullptr;
  args.private_ = args.shared + aligned(need.shared);
  const WorkerLimit limit(workers);
  device.run(op_id(op), op.name, args);
  return out;
}

}  // namespace

const Attr& Attrs::at(const char* key) const {
  for (const Attr& a : *this)
    if (a.key == key || std::strcmp(a.key, key) == 0) return a;
  fail<ValueError>("the attribute '", key, "' is missing");
}

// An op that writes an input must not be given one in read-only memory (a mapped file, a frozen array), and spoils what was kept of it.
static void prepare_to_write(const OpDef& op, const Inputs& in) {
  for (size_t i = 0; i < in.size(); ++i)
    if (op.extra.mutates >> i & 1 && in[i].defined() && in[i].has_data()) {
      Storage& storage = *in[i].impl()->storage;
      check<ValueError>(!storage.read_only, op.name, ": input ", i, " is in read-only memory; use copy() first");
      forget_packed(storage);
    }
}

Tensors dispatch(const OpDef& op, const Inputs& in, const Attrs& attrs, Device* device) {
  Device& where = common_device(op, in, device);
  if (op.extra.mutates) prepare_to_write(op, in);
  Specs specs = op.infer(InSpecs(op.name, in), attrs);
  Tracer* tracer = Tracer::current();
  Tensors out = tracer ? tracer->append(op, in, attrs, specs) : execute(op, in, attrs, specs, where);
  if (op.backward && grad_enabled())
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i].defined() && in[i].requires_grad()) {
        record(op, in, attrs, out);
        break;
      }
  return out;
}

}  // namespace plmcore
