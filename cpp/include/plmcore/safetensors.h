// Safetensors files: a JSON header that tells of tensors, and their values, little-endian, one after the
// other.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plmcore/tensor.h"

namespace plmcore::safetensors {

using Metadata = std::map<std::string, std::string>;
using Named = std::vector<std::pair<std::string, Tensor>>;

struct File {
  Named tensors;  // as they lie in the file
  Metadata metadata;

  const Tensor& at(std::string_view name) const;  // ValueError where the file has no such tensor
};

// Maps the file; tensors lie in it, and keep it mapped, unless one is askew for its dtype. Writing to one
// changes memory only. A mapped file must not be cut short while it is in use, which would end the process:
// replace it by another, as write() does, or read it into memory with mapped = false. FormatError that names
// file and place for a file that breaks a rule of the format, FileError where the system cannot read it.
File read(const std::string& path, bool mapped = true);

// Wider dtypes first, then by name, as the reference implementation orders them; values start at a multiple
// of 64 bytes. The file appears under its name when it is complete and on disk.
void write(const std::string& path, const Named& tensors, const Metadata& metadata = {});

}  // namespace plmcore::safetensors
