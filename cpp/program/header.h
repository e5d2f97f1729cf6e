// The JSON header of a program file (docs/program-format.md): programs and the list of tensors, without their
// data.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plmcore/card.h"
#include "program/body.h"

namespace plmcore {

struct FileTensor {
  std::string name;
  Spec spec;
  uint64_t offset = 0;  // from the start of the data part
  uint64_t bytes = 0;
  uint32_t crc32 = 0;
  bool checked = false;  // has a checksum: from format 2 on
};

struct Header {
  // `tensor` is the constant's place in `tensors`.
  struct Constant {
    int32_t value;
    size_t tensor;
  };
  struct Entry {
    std::string name;
    Program program;
    std::vector<Constant> constants;
  };
  std::vector<FileTensor> tensors;
  std::vector<Entry> programs;
  Card card;
  std::map<std::string, size_t> text_tensors;  // of the card's tokenizer, by member: place in `tensors`
};

inline constexpr size_t kMaxHeader = size_t{64} << 20;

// FormatError that says where and what is wrong. Ops, value numbers, names, sizes and kinds are checked here;
// offsets against the file are the caller's part, as is what an op says about its inputs (its shape rule runs
// with the program).
Header read_header(std::string_view json);
struct NamedBody {
  std::string_view name;
  const Program::Body* body;
  std::vector<Header::Constant> constants;
};
// `card`: the part "model", as JSON; empty: none. ValueError where it is no JSON.
std::string write_header(const std::vector<FileTensor>& tensors, const std::vector<NamedBody>& programs,
                         std::string_view card);

}  // namespace plmcore
