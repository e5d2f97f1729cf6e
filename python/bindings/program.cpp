#include "plmcore/program.h"

#include <nanobind/stl/pair.h>

#include "bindings/bindings.h"
#include "core/device.h"
#include "program/trace.h"

namespace plmcore::bindings {

namespace {

// Inputs by name. One output comes as it is, several as a tuple; outputs with names of their own as a dict.
nb::object call(const Program& p, nb::kwargs named) {
  Tensors inputs;
  for (const auto& [name, spec] : p.inputs()) {
    const nb::str key(name.c_str());
    check<ValueError>(named.contains(key), "the program's input '", name, "' is missing");
    nb::object value = named[key];
    if (!nb::isinstance<Tensor>(value))
      value = nb::type<Tensor>()(value, name_of(spec.dtype), p.device().name());
    inputs.push_back(nb::cast<Tensor>(value));
  }
  if (nb::len(named) > inputs.size())
    for (auto [key, value] : named) {
      const auto name = nb::cast<std::string>(key);
      bool known = false;
      for (const auto& input : p.inputs()) known |= input.name == name;
      check<ValueError>(known, "the program has no input '", name, "'");
    }
  Tensors outputs;
  {
    const ReleaseGil nogil;
    outputs = p.run(inputs);
  }
  nb::dict by_name;
  bool numbered = true;
  for (size_t k = 0; k < outputs.size(); ++k) {
    const std::string& name = p.outputs()[k].name;
    numbered &= name == "output." + std::to_string(k);
    by_name[name.c_str()] = outputs[k];
  }
  if (!numbered) return by_name;
  if (outputs.size() == 1) return nb::cast(outputs[0]);
  return from_tensors(outputs);
}

}  // namespace

void bind_program(nb::module_& m) {
  nb::class_<Program>(m, "Program", "A traced list of op calls; runs at any sizes that its guards allow.")
      .def("__init__",
           [](Program*, nb::args, nb::kwargs) {
             fail<ValueError>("a Program is made by plm.trace or read by plm.load_program");
           })
      .def(
          "run",
          [](const Program& p, Tensors inputs) {
            const ReleaseGil nogil;
            return p.run(inputs);
          },
          "inputs"_a, "Runs the program; inputs in their order, outputs as a list.")
      .def("__call__", &call,
           "Runs the program; inputs by name. One output comes as it is, several as a tuple, named ones as a "
           "dict.")
      .def(
          "to", [](Program& p, nb::handle device) { p.to(to_device(device)); }, "device"_a,
          "Moves the weights to a device; the program runs there from now on.")
      .def_prop_ro(
          "device", [](const Program& p) { return p.device().name(); },
          "The name of the device of its weights.")
      .def_static(
          "load",
          [](nb::object path, int threads, bool mapped) {
            return nb::module_::import_("plmcore.program.session")
                .attr("load")(path, "threads"_a = threads, "mapped"_a = mapped);
          },
          "path"_a, nb::kw_only(), "threads"_a = 0, "mapped"_a = true,
          "Opens a model file for use: a plmcore.program.session.Session.")
      .def("__repr__", &Program::str)
      .def("__len__", &Program::size)
      .def_prop_ro(
          "inputs",
          [](const Program& p) {
            nb::list l;
            for (auto& [name, spec] : p.inputs())
              l.append(nb::make_tuple(name, spec.shape, name_of(spec.dtype)));
            return l;
          },
          "(name, shape, dtype) of each input.")
      .def_prop_ro(
          "outputs",
          [](const Program& p) {
            nb::list l;
            for (auto& [name, spec] : p.outputs())
              l.append(nb::make_tuple(name, spec.shape, name_of(spec.dtype)));
            return l;
          },
          "(name, shape, dtype) of each output.");
  nb::class_<Model>(m, "Model", "The programs of one file, with their weights.")
      .def_static(
          "load", [](const FilePath& path, bool mapped) { return Model::load(path, mapped); }, "path"_a,
          "mapped"_a = true, NoGil())
      .def_static(
          "save",
          [](const FilePath& path, const std::vector<std::pair<std::string, const Program*>>& programs,
             const std::string& card, const std::vector<std::pair<std::string, Tensor>>& tensors) {
            Model::save(path, programs, card, tensors);
          },
          "path"_a, "programs"_a, "card"_a = "", "tensors"_a = nb::list(), NoGil(),
          "Writes programs to a file, with what it says of the model, as JSON, and the tensors of that.")
      .def("verify", &Model::verify, NoGil(), "Reads all weights; FormatError where a checksum differs.")
      .def(
          "to", [](Model& m, nb::handle device) { m.to(to_device(device)); }, "device"_a,
          "Moves the weights of all programs to a device.")
      .def_prop_ro("names", &Model::names)
      .def_prop_ro("card", &Model::card, nb::rv_policy::reference_internal,
                   "What the file says of the model.")
      .def("has", &Model::has, "name"_a,
           "Whether there is such a program; \"main\" is a model's forward pass.")
      .def("program", &Model::program, "name"_a, nb::rv_policy::reference_internal);
  nb::class_<Tracer>(m, "Tracer")
      .def(nb::init<>())
      .def(
          "input",
          [](Tracer& t, std::string name, Shape shape, nb::handle dtype, nb::handle device) {
            return t.input(std::move(name), {shape, to_dtype(dtype)}, to_device(device));
          },
          "name"_a, "shape"_a, "dtype"_a, "device"_a = nb::none())
      .def("name_constant", &Tracer::name_constant, "tensor"_a, "name"_a)
      .def("stop", &Tracer::stop, "Ends the trace without a program.")
      .def("finish", &Tracer::finish, "names"_a, "outputs"_a);
}

}  // namespace plmcore::bindings
