// The class plm.Tensor: what it is made from, its fields, gradients, how it prints and pickles.
#include "bindings/tensor.h"

#include "core/device.h"
#include "cpu/weight_layouts.h"

namespace plmcore::bindings {

namespace {

void init(Tensor* self, nb::handle data, nb::handle dtype, nb::handle device, bool requires_grad) {
  Tensor t;
  if (nb::isinstance<Tensor>(data)) {
    t = nb::cast<const Tensor&>(data).detach();
    if (!dtype.is_none()) t = t.to(to_dtype(dtype));
  } else {
    t = copy_array(data, dtype);
  }
  if (!device.is_none()) t = t.to(to_device(device));
  if (requires_grad) t.set_requires_grad(true);
  new (self) Tensor(std::move(t));
}

void assign(const Tensor& target, const Tensor& source) {
  check(target.shape().matches(source.shape()), "assign: the values must have the shape ", target.shape(),
        ", got ", source.shape());
  check<ValueError>(!target.impl()->storage || !target.impl()->storage->read_only,
                    "assign: the target is in read-only memory");
  const Tensor from = source.detach().to(target.dtype()).to(target.device());
  if (target.has_data()) target.device().forget_layouts(*target.impl()->storage);
  target.device().copy_within(target.data(), from.data(), target.bytes());
}

std::string repr(const Tensor& t) {
  std::string text = "Tensor(";
  if (t.is_row_sparse()) {
    append(text, "row-sparse, rows=");
    append(text, t.rows().spec());
  } else if (t.has_data()) {
    nb::object a = to_numpy(t.detach());
    text += nb::cast<std::string>(numpy().array2string(a, "separator"_a = ", ", "prefix"_a = "Tensor(",
                                                       "threshold"_a = 200, "edgeitems"_a = 3,
                                                       "precision"_a = 5));
  } else {
    text += "traced";
  }
  text += ", ";
  append(text, t.spec());
  if (!t.device().is_cpu()) text += std::string(", device=") + t.device().name();
  if (t.requires_grad()) text += ", requires_grad=True";
  return text + ")";
}

// f"{loss:.3f}": a tensor with one element formats as its number.
nb::object format(const Tensor& t, nb::str spec) {
  if (nb::len(spec) == 0) return nb::cast(repr(t));
  return nb::steal(PyObject_Format(item(t).ptr(), spec.ptr()));
}

bool truth(const Tensor& t) {
  check<ValueError>(!t.shape().known() || t.numel() == 1, "the truth value of ", t,
                    " is ambiguous: it must have one element");
  return t.item() != 0;
}

// pickle and copy.deepcopy: native functions cannot be pickled, so a Python one makes the copy.
nb::object reduce(nb::handle self) {
  const Tensor& t = nb::cast<const Tensor&>(self);
  nb::object state = nb::hasattr(self, "__dict__") ? nb::object(self.attr("__dict__")) : nb::none();
  return nb::make_tuple(
      nb::module_::import_("plmcore.runtime.making").attr("rebuild"),
      nb::make_tuple(self.type(), to_numpy(t), t.device().name(), t.is_leaf() && t.requires_grad()), state);
}

}  // namespace

Device& to_device(nb::handle h) {
  if (h.is_none()) return cpu();
  check<ValueError>(nb::isinstance<nb::str>(h), "a device must be named by a text, got ",
                    nb::cast<std::string>(nb::repr(h)));
  return device_from_name(nb::cast<std::string_view>(h));
}

Device& to_place(nb::handle device, const Tensor& like) {
  if (!like.defined()) return to_device(device);
  check<ValueError>(device.is_none(), "a new tensor has its place by device= or by like=, not by both");
  return like.device();
}

Tensor to_tensor(nb::handle h) {
  if (nb::isinstance<Tensor>(h)) return nb::cast<const Tensor&>(h);
  return copy_array(h, nb::none());
}
Tensors to_tensors(nb::handle h) {
  Tensors list;
  for (nb::handle item : h) {
    if (item.is_none()) list.push_back({});
    else list.push_back(to_tensor(item));
  }
  return list;
}
nb::object from_tensor(const Tensor& t) { return t.defined() ? nb::cast(t) : nb::none(); }
nb::tuple from_tensors(const Tensors& list) {
  nb::object t = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t i = 0; i < list.size(); ++i)
    PyTuple_SET_ITEM(t.ptr(), static_cast<Py_ssize_t>(i), from_tensor(list[i]).release().ptr());
  return nb::borrow<nb::tuple>(t);
}

void bind_tensor(nb::module_& m) {
  TensorClass c(m, "Tensor", nb::is_weak_referenceable(),
                "A contiguous array on one device, with automatic gradients.");
  c.def("__init__", &init, "data"_a, "dtype"_a = nb::none(), "device"_a = nb::none(),
        "requires_grad"_a = false,
        "From a number, nested lists or a NumPy array, which is copied; Python's floats become float32. From "
        "a tensor: the same memory, outside the graph.")
      .def_prop_ro(
          "shape", [](const Tensor& t) { return t.shape(); }, "The sizes as a tuple.")
      .def_prop_ro(
          "ndim", [](const Tensor& t) { return t.rank(); }, "The number of axes.")
      .def_prop_ro(
          "size", [](const Tensor& t) { return t.shape().numel(); }, "The number of elements.")
      .def_prop_ro(
          "dtype", [](const Tensor& t) { return name_of(t.dtype()); },
          "The name of the dtype: \"float32\", \"int64\", ...")
      .def_prop_ro(
          "device", [](const Tensor& t) { return t.device().name(); },
          "The name of the device: \"cpu\", \"cuda\", \"cuda:1\".")
      .def_prop_ro("nbytes", &Tensor::bytes, "The size of the data in bytes.")
      .def_prop_rw(
          "requires_grad", &Tensor::requires_grad, [](const Tensor& t, bool on) { t.set_requires_grad(on); },
          "Whether backward() computes a gradient for this tensor.")
      .def(
          "requires_grad_",
          [](nb::handle self, bool on) {
            nb::cast<const Tensor&>(self).set_requires_grad(on);
            return nb::borrow(self);
          },
          "on"_a = true, "Sets requires_grad; returns the tensor.")
      .def_prop_rw(
          "grad", [](const Tensor& t) { return from_tensor(t.grad()); },
          [](const Tensor& t, nb::handle g) { t.set_grad(g.is_none() ? Tensor() : to_tensor(g)); },
          nb::for_setter(nb::arg("value").none()),
          "The gradient that backward() collected; None when there is none.")
      .def(
          "zero_grad", [](const Tensor& t) { t.set_grad({}); }, "Forgets the gradient.")
      .def_prop_ro("is_leaf", &Tensor::is_leaf, "Whether no recorded op made this tensor.")
      .def_prop_ro("is_row_sparse", &Tensor::is_row_sparse,
                   "Whether this is a gradient that holds some rows only.")
      .def_prop_ro(
          "rows", [](const Tensor& t) { return from_tensor(t.rows()); },
          "Of a row-sparse gradient: the numbers of its rows, int64 [n].")
      .def_prop_ro("values", &Tensor::values, "Of a row-sparse gradient: its rows, [n, ...].")
      .def_static("row_sparse", &Tensor::row_sparse, "rows"_a, "values"_a, "V"_a,
                  "A gradient of [V, ...] that is zero but in these rows. rows int64 [n], increasing; values "
                  "[n, ...].")
      .def(
          "backward",
          [](const Tensor& t, Optional gradient, bool retain_graph) {
            const ReleaseGil nogil;
            t.backward(gradient, retain_graph);
          },
          "gradient"_a = nb::none(), "retain_graph"_a = false,
          "Adds the gradients of this tensor to the .grad of every leaf it was computed from.")
      .def("detach", &Tensor::detach, "The same memory outside the graph.")
      .def("__bool__", &truth)
      .def("__float__", &Tensor::item)
      .def("__int__", [](const Tensor& t) { return nb::steal(PyNumber_Long(item(t).ptr())); })
      .def("__index__",
           [](const Tensor& t) {
             check<DTypeError>(!is_float(t.dtype()), "only an integer tensor can be an index, got ", t);
             return nb::steal(PyNumber_Index(item(t).ptr()));
           })
      .def("__format__", &format)
      .def("__repr__", &repr)
      .def("__reduce__", &reduce);
  m.def(
      "keep_layouts",
      [](const Tensor& weight) {
        if (weight.has_data()) weight.device().keep_layouts(*weight.impl()->storage);
      },
      "weight"_a,
      "Lets the device keep this weight in the layouts of its products between calls without gradients, "
      "until its values change.");
  nb::enum_<Packing>(m, "Packing").value("usual", Packing::usual).value("found", Packing::found);
  m.def("set_packing", &set_packing, "packing"_a,
        "Whether products of this thread make packed copies of weights (usual), or take those that are there "
        "and make none (found). -> what was set before");
  m.def("assign", &assign, "target"_a, "source"_a,
        "Copies the values of `source`, in any float dtype, into the memory of `target`.");
  bind_operators(c);
  bind_index(c);
  bind_methods(c);
  bind_array(m, c);
  bind_dlpack(m, c);
  nb::implicitly_convertible<ArrayLike, Tensor>();
}

}  // namespace plmcore::bindings
