// Program files: docs/program-format.md. Reading maps the file; the weights are used where they lie.
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "core/device.h"
#include "io/checksum.h"
#include "io/file.h"
#include "program/header.h"

namespace plmcore {

static_assert(std::endian::native == std::endian::little,
              "program files are little-endian and are used in place");

namespace {

constexpr char kMagic[8] = {'\x89', 'P',  'L',    'M',
                            '\r',   '\n', '\x1a', '\n'};  // spoiled by every text conversion
constexpr uint32_t kVersion = 2;
constexpr uint64_t kAlign = 64;

struct Prefix {
  char magic[8];
  uint32_t version;
  uint32_t crc32;  // of the header; 0 in format 1
  uint64_t header_bytes;
};
static_assert(sizeof(Prefix) == 24);

constexpr uint64_t aligned(uint64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

// ---- loading ----

std::string_view header_text(const Storage& file) {
  Prefix prefix;
  std::memcpy(&prefix, file.data, sizeof prefix);
  check<FormatError>(std::memcmp(prefix.magic, kMagic, sizeof kMagic) == 0,
                     "it does not start with the mark of a program file");
  check<FormatError>(prefix.version <= kVersion, "it has format ", prefix.version,
                     ", this version of plmcore reads up to ", kVersion, "; install a newer one");
  check<FormatError>(prefix.version >= 1, "its format number is damaged");
  check<FormatError>(prefix.header_bytes <= kMaxHeader, "its header would have ", prefix.header_bytes,
                     " bytes, at most ", kMaxHeader, " are allowed");
  check<FormatError>(prefix.header_bytes <= file.bytes - sizeof prefix, "it is cut off: the header has ",
                     prefix.header_bytes, " bytes, the file ", file.bytes);
  const std::string_view text(static_cast<const char*>(file.data) + sizeof prefix, prefix.header_bytes);
  check<FormatError>(prefix.crc32 == (prefix.version == 1 ? 0 : crc32(text.data(), text.size())),
                     "its header is damaged: the checksum is another one");
  return text;
}

// Tensors follow each other at multiples of 64 bytes, and the file ends with the last: none can overlap or
// reach outside.
void check_layout(const std::vector<FileTensor>& tensors, uint64_t data_start, uint64_t file_bytes) {
  uint64_t end = 0;
  for (const FileTensor& t : tensors) {
    check<FormatError>(t.offset == aligned(end), "the tensor '", t.name, "' must start at ", aligned(end),
                       ", got ", t.offset);
    end = t.offset + t.bytes;
    check<FormatError>(data_start + end <= file_bytes, "it is cut off: the tensor '", t.name,
                       "' ends at byte ", data_start + end, ", the file at ", file_bytes);
  }
  const uint64_t want = tensors.empty() ? data_start : data_start + end;
  check<FormatError>(want == file_bytes, "it has ", file_bytes, " bytes, the header tells of ", want);
}

// ---- saving ----

// The weights of all programs, each once: two constants over the same memory with the same spec are one
// tensor.
class TensorList {
 public:
  std::vector<Header::Constant> add(std::string_view program, const Program::Body& body) {
    std::vector<Header::Constant> constants;
    for (size_t v = 1; v < body.values.size(); ++v) {
      const Value& value = body.values[v];
      if (!value.constant.defined()) continue;
      check<ValueError>(!value.constant.is_row_sparse(), "export: the constant '", value.name,
                        "' is a row-sparse gradient; call to_dense() on it first");
      constants.push_back({static_cast<int32_t>(v), place(program, value.name, value.constant)});
    }
    return constants;
  }
  void add(const std::string& name, const Tensor& t) { place({}, name, t); }  // of no program
  std::vector<FileTensor> entries;
  std::vector<Tensor> tensors;  // beside entries

 private:
  size_t place(std::string_view program, const std::string& name, const Tensor& t) {
    const auto [it, fresh] = places_.try_emplace({t.data(), t.dtype(), t.shape().str()}, entries.size());
    if (fresh) {
      const uint64_t start = entries.empty() ? 0 : aligned(entries.back().offset + entries.back().bytes);
      const Tensor values = t.to(cpu());
      entries.push_back({unique(program, name), t.spec(), start, t.bytes(), crc32(values.data(), t.bytes())});
      tensors.push_back(t);
    }
    return it->second;
  }
  std::string unique(std::string_view program, const std::string& name) {
    std::string wish = name.empty() ? "constant" : name;
    if (names_.count(wish)) wish = std::string(program) + "." + wish;
    std::string found = wish;
    for (int k = 2; !names_.insert(found).second; ++k) found = wish + "." + std::to_string(k);
    return found;
  }

  std::map<std::tuple<const void*, DType, std::string>, size_t> places_;
  std::set<std::string> names_;
};

}  // namespace

static Tensor& text_tensor(TextCard& text, const std::string& member) {
  if (member == "tokens") return text.tokens;
  if (member == "ends") return text.ends;
  if (member == "merges") return text.merges;
  return member == "scores" ? text.scores : text.normalisation;
}

Model Model::load(const std::string& path, bool mapped) {
  const Ref<Storage> file = open_file(path, "a plmcore program", sizeof(Prefix), mapped);
  try {
    const std::string_view text = header_text(*file);
    Header header = read_header(text);
    const uint64_t start = aligned(sizeof(Prefix) + text.size());
    check_layout(header.tensors, header.tensors.empty() ? sizeof(Prefix) + text.size() : start, file->bytes);
    std::vector<Tensor> tensors;
    for (const FileTensor& t : header.tensors) {
      const Tensor& weight = tensors.emplace_back(tensor_in_file(file, start + t.offset, t.spec));
      weight.device().keep_layouts(*weight.impl()->storage);  // nobody else has it
    }
    Model model;
    for (const FileTensor& t : header.tensors)
      if (t.checked) model.sums_.push_back({t.name, start + t.offset, t.bytes, t.crc32});
    model.file_ = file;
    for (const auto& [member, place] : header.text_tensors)
      text_tensor(header.card.text, member) = tensors[place];
    model.card_ = std::move(header.card);
    for (auto& [name, program, constants] : header.programs) {
      for (const auto& [value, tensor] : constants) program.body().values[value].constant = tensors[tensor];
      model.programs_.emplace_back(std::move(name), std::move(program));
    }
    return model;
  } catch (const FormatError& e) { fail<FormatError>("'", path, "' cannot be read: ", e.what()); }
}

void Model::verify() const {
  for (const Sum& s : sums_)
    check<FormatError>(crc32(static_cast<const char*>(file_->data) + s.start, s.bytes) == s.crc32,
                       "the tensor '", s.name, "' is damaged: its checksum is another one");
}

void Model::save(const std::string& path, const std::vector<std::pair<std::string, const Program*>>& programs,
                 std::string_view card, const std::vector<std::pair<std::string, Tensor>>& tensors) {
  check<ValueError>(!programs.empty(), "export: there is no program to write");
  TensorList list;
  for (const auto& [name, tensor] : tensors) list.add(name, tensor);
  std::vector<NamedBody> bodies;
  for (const auto& [name, program] : programs)
    bodies.push_back({name, &program->body(), list.add(name, program->body())});
  const std::string header = write_header(list.entries, bodies, card);
  check<ValueError>(header.size() <= kMaxHeader, "export: the programs take ", header.size(),
                    " bytes, at most ", kMaxHeader, " are allowed");
  try {
    read_header(header);  // what is written can be read: names that repeat, empty ones
  } catch (const FormatError& e) { fail<ValueError>("export: ", e.what()); }

  Prefix prefix = {{}, kVersion, crc32(header.data(), header.size()), header.size()};
  std::memcpy(prefix.magic, kMagic, sizeof kMagic);
  FileWriter out(path);
  out.write(&prefix, sizeof prefix);
  out.write(header.data(), header.size());
  for (const Tensor& t : list.tensors) {
    out.pad(kAlign);
    out.write(t);
  }
  out.finish();
}

std::vector<std::string> Model::names() const {
  std::vector<std::string> list;
  for (const auto& [name, program] : programs_) list.push_back(name);
  return list;
}

bool Model::has(std::string_view name) const {
  if (name == "main" && !card_.main.empty()) return true;
  for (const auto& [n, program] : programs_)
    if (n == name) return true;
  return false;
}

const Program& Model::program(std::string_view name) const {
  std::string known;
  const std::string_view wanted = name == "main" && !card_.main.empty() ? card_.main : name;
  for (const auto& [n, program] : programs_) {
    if (n == wanted) return program;
    known += (known.empty() ? "'" : ", '") + n + "'";
  }
  fail<ValueError>("the file has no program '", name, "'; it has ", known);
}

Tensors Model::run(const Tensors& inputs) const {
  if (programs_.size() == 1 || has("main"))
    return (programs_.size() == 1 ? programs_[0].second : program("main")).run(inputs);
  fail<ValueError>("the file has ", programs_.size(), " programs; name the one to run");
}

}  // namespace plmcore
