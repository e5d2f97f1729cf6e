#include "plmcore/safetensors.h"

#include <nanobind/stl/map.h>

#include "bindings/bindings.h"
#include "core/pages.h"
#include "cpu/weight_layouts.h"

namespace plmcore::bindings {

void bind_safetensors(nb::module_& m) {
  m.def(
      "read",
      [](const FilePath& path, bool mapped) {
        safetensors::File file;
        {
          const ReleaseGil nogil;
          file = safetensors::read(path, mapped);
        }
        nb::dict tensors, metadata;
        for (auto& [name, tensor] : file.tensors) tensors[nb::str(name.data(), name.size())] = tensor;
        for (auto& [key, text] : file.metadata)
          metadata[nb::str(key.data(), key.size())] = nb::str(text.data(), text.size());
        return nb::make_tuple(tensors, metadata);
      },
      "path"_a, "mapped"_a = true,
      nb::sig("def read(path: str, mapped: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]"),
      "The tensors of a file by name, as they lie in it, and its metadata. The file is mapped, not copied, "
      "or read into memory.");
  m.def(
      "write",
      [](const FilePath& path, nb::dict tensors, const safetensors::Metadata& metadata) {
        safetensors::Named named;
        for (auto [name, tensor] : tensors)
          named.emplace_back(nb::cast<std::string>(name), nb::cast<Tensor>(tensor));
        const ReleaseGil nogil;
        safetensors::write(path, named, metadata);
      },
      "path"_a, "tensors"_a, "metadata"_a = safetensors::Metadata(),
      nb::sig("def write(path: str, tensors: dict[str, Tensor], metadata: dict[str, str] = {}) -> None"),
      "Writes a file that appears under its name when it is complete.");
  m.def(
      "laid_out_later",
      [](nb::sequence parts, bool transposed) {
        Tensors list;
        for (nb::handle p : parts) list.push_back(nb::cast<const Tensor&>(p));
        return laid_out_later(list, transposed);
      },
      "parts"_a, "transposed"_a,
      nb::sig("def laid_out_later(parts: Sequence[Tensor], transposed: bool) -> Tensor"),
      "The parts' rows below each other, of transposed ones their columns: a matrix that is put together "
      "when its values are first looked at.");
  m.def(
      "release",
      [](const Tensor& t) {
        if (t.has_data()) release_file_pages(t.data(), t.bytes());
      },
      "tensor"_a, "Takes a mapped tensor's pages out of memory until somebody looks at them again.");
}

}  // namespace plmcore::bindings
