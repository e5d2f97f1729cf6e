#include "program/header.h"

#include <cmath>
#include <mutex>
#include <set>
#include <unordered_set>

#include "core/device.h"
#include "core/fork.h"
#include "program/card.h"

namespace plmcore {

namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 46;
constexpr int kMinor = 0;  // of the format: what older readers may skip

// Attribute keys are compared by address first and may be held by copies of an instruction, so each is kept
// once for the life of the process.
const char* keep_key(const std::string& key) {
  struct Keys {
    std::mutex mutex;
    std::unordered_set<std::string> kept;
  };
  static Keys* keys = [] {
    auto* fresh = new Keys;
    hold_over_fork(fresh->mutex);
    return fresh;
  }();
  std::lock_guard lock(keys->mutex);
  return keys->kept.insert(key).first->c_str();
}

// ---- reading ----

FileTensor read_tensor(const Reader& r) {
  r.members({"name", "spec", "offset", "bytes", "crc32"});
  FileTensor t;
  t.name = r["name"].text();
  t.spec = r["spec"].spec();
  r.require(t.spec.shape.known(), "a tensor's sizes must be numbers, got ", t.spec.shape);
  t.offset = static_cast<uint64_t>(r["offset"].integer(0, kMaxTensorBytes));
  t.bytes = static_cast<uint64_t>(r["bytes"].integer(0, kMaxTensorBytes));
  int64_t want = static_cast<int64_t>(size_of(t.spec.dtype));
  bool empty = false;
  for (Dim d : t.spec.shape) empty |= d.is(0);
  for (Dim d : t.spec.shape)
    r.require(empty || (!__builtin_mul_overflow(want, d.value(), &want) && want <= kMaxTensorBytes),
              "the tensor ", t.spec, " is too large");
  if (empty) want = 0;
  r.require(t.bytes == static_cast<uint64_t>(want), "the tensor ", t.spec, " must have ", want,
            " bytes, got ", t.bytes);
  t.checked = r.has("crc32");
  if (t.checked) t.crc32 = static_cast<uint32_t>(r["crc32"].integer(0, UINT32_MAX));
  return t;
}

Attr read_attr(const Reader& r) {
  r.size(3);
  const std::string &key = r.at(0).text(), &kind = r.at(1).text();
  r.at(0).require(key.size() <= 64, "an attribute's name must have at most 64 bytes");
  const Reader value = r.at(2);
  if (kind == "int") return {keep_key(key), value.integer(INT64_MIN, INT64_MAX)};
  if (kind == "float") return {keep_key(key), value.number()};
  r.at(1).require(kind == "dims", "an attribute must be int, float or dims, got '", kind, "'");
  return {keep_key(key), value.dims()};
}

class ProgramReader {
 public:
  ProgramReader(const Reader& r, const std::vector<FileTensor>& tensors, Header::Entry& out)
      : r_(r), tensors_(tensors), out_(out), b_(out.program.body()) {}

  void read() {
    r_.members({"name", "values", "inputs", "constants", "random", "guards", "instructions", "outputs"});
    out_.name = r_["name"].text();
    const Reader values = r_["values"];
    values.require(values.size() < INT32_MAX / 2, "too many values");
    for (size_t i = 0; i < values.size(); ++i) b_.values.push_back({values.at(i).spec(), {}, {}, -1});
    defined_.resize(b_.values.size());
    read_inputs();
    read_constants();
    read_random();
    const Reader guards = r_["guards"];
    for (size_t i = 0; i < guards.size(); ++i) {
      guards.at(i).size(2);
      b_.guards.push_back({guards.at(i).at(0).dim(), guards.at(i).at(1).dim()});
    }
    const Reader steps = r_["instructions"];
    for (size_t i = 0; i < steps.size(); ++i) read_instruction(steps.at(i));
    read_outputs();
    if (b_.random_in) {
      b_.random_out = use(r_["random"].at(1));
      check_random(b_.random_out);
    }
    for (size_t v = 1; v < defined_.size(); ++v)
      r_["values"].at(v - 1).require(defined_[v], "nothing gives the value ", v);
    b_.analyse();
  }

 private:
  int32_t define(const Reader& r) {
    const auto v = static_cast<int32_t>(r.integer(1, last()));
    r.require(!defined_[v], "the value ", v, " is given twice");
    defined_[v] = true;
    return v;
  }
  int32_t use(const Reader& r, int64_t low = 1) const {
    const auto v = static_cast<int32_t>(r.integer(low, last()));
    r.require(v == 0 || defined_[v], "the value ", v, " is used before anything gives it");
    return v;
  }
  int64_t last() const { return static_cast<int64_t>(b_.values.size()) - 1; }

  void read_inputs() {
    const Reader list = r_["inputs"];
    std::set<std::string> names;
    for (size_t i = 0; i < list.size(); ++i) {
      list.at(i).members({"name", "value"});
      const std::string& name = list.at(i)["name"].text();
      list.at(i).require(names.insert(name).second, "two inputs are named '", name, "'");
      const int32_t v = define(list.at(i)["value"]);
      b_.values[v].name = name;
      b_.input_values.push_back(v);
      b_.inputs.push_back({name, b_.values[v].spec});
    }
  }
  void read_constants() {
    const Reader list = r_["constants"];
    for (size_t i = 0; i < list.size(); ++i) {
      list.at(i).size(2);  // [value, tensor]
      const int32_t v = define(list.at(i).at(0));
      const auto t =
          static_cast<size_t>(list.at(i).at(1).integer(0, static_cast<int64_t>(tensors_.size()) - 1));
      const Spec &want = b_.values[v].spec, &got = tensors_[t].spec;
      bool equal = want.dtype == got.dtype && want.shape.rank() == got.shape.rank();
      for (int k = 0; equal && k < got.shape.rank(); ++k) equal = same(want.shape[k], got.shape[k]);
      list.at(i).require(equal, "the value ", v, " is ", want, " but the tensor '", tensors_[t].name, "' is ",
                         got);
      b_.values[v].name = tensors_[t].name;
      out_.constants.push_back({v, t});
    }
  }
  void read_random() {
    const Reader r = r_["random"];
    if (r.size() == 0) return;
    r.size(2);
    b_.random_in = define(r.at(0));
    check_random(b_.random_in);
    b_.values[b_.random_in].name = "random";
  }
  void check_random(int32_t value) const {
    const Spec& s = b_.values[value].spec;
    r_["random"].require(s.dtype == DType::int64 && s.shape.rank() == 1 && s.shape[0].is(2),
                         "the random state must be int64[2], got ", s);
  }
  void read_instruction(const Reader& r) {
    r.members({"op", "in", "out", "attrs"});
    Instruction step;
    const std::string& name = r["op"].text();
    step.op = find_op(name);
    r["op"].require(step.op, "there is no op '", name, "' in this version");
    const Reader in = r["in"], out = r["out"], attrs = r["attrs"];
    in.require(in.size() <= 4096 && out.size() <= 4096, "more than 4096 inputs or outputs");
    for (size_t i = 0; i < in.size(); ++i) step.in.push_back(use(in.at(i), 0));
    for (size_t i = 0; i < out.size(); ++i) step.out.push_back(define(out.at(i)));
    attrs.require(attrs.size() <= 64, "more than 64 attributes");
    for (size_t i = 0; i < attrs.size(); ++i) {
      const Attr a = read_attr(attrs.at(i));
      for (const Attr& other : step.attrs)
        attrs.at(i).require(std::strcmp(other.key, a.key) != 0, "the attribute '", a.key, "' is given twice");
      step.attrs.push_back(a);
    }
    b_.instructions.push_back(std::move(step));
  }
  void read_outputs() {
    const Reader list = r_["outputs"];
    std::set<std::string> names;
    for (size_t i = 0; i < list.size(); ++i) {
      list.at(i).members({"name", "value"});
      const std::string& name = list.at(i)["name"].text();
      list.at(i).require(names.insert(name).second, "two outputs are named '", name, "'");
      const int32_t v = use(list.at(i)["value"]);
      b_.output_values.push_back(v);
      b_.outputs.push_back({name, b_.values[v].spec});
    }
  }

  Reader r_;
  const std::vector<FileTensor>& tensors_;
  Header::Entry& out_;
  Program::Body& b_;
  std::vector<bool> defined_;
};

// ---- writing ----

Json to_json(const Spec& spec) {
  Json list = Json::array({name_of(spec.dtype)});
  for (Dim d : spec.shape) list.push_back(d.str());
  return list;
}
Json to_json(const Attr& a) {
  if (a.kind == Attr::kInt) return Json::array({a.key, "int", a.i});
  if (a.kind == Attr::kFloat) {
    if (std::isfinite(a.f)) return Json::array({a.key, "float", a.f});
    const char* infinity = a.f > 0 ? "inf" : "-inf";
    return Json::array({a.key, "float", std::isnan(a.f) ? "nan" : infinity});
  }
  Json list = Json::array();
  for (Dim d : a.dims) list.push_back(d.str());
  return Json::array({a.key, "dims", list});
}
Json to_json(const Instruction& step) {
  Json in = Json::array(), out = Json::array(), attrs = Json::array();
  for (int32_t v : step.in) in.push_back(v);
  for (int32_t v : step.out) out.push_back(v);
  for (const Attr& a : step.attrs) attrs.push_back(to_json(a));
  return {{"op", step.op->name}, {"in", in}, {"out", out}, {"attrs", attrs}};
}
Json to_json(const NamedBody& p) {
  const Program::Body& b = *p.body;
  Json values = Json::array(), inputs = Json::array(), constants = Json::array(), random = Json::array();
  Json guards = Json::array(), instructions = Json::array(), outputs = Json::array();
  for (size_t v = 1; v < b.values.size(); ++v) values.push_back(to_json(b.values[v].spec));
  for (size_t i = 0; i < b.inputs.size(); ++i)
    inputs.push_back({{"name", b.inputs[i].name}, {"value", b.input_values[i]}});
  for (const auto& [value, tensor] : p.constants) constants.push_back(Json::array({value, tensor}));
  if (b.random_in) random = Json::array({b.random_in, b.random_out});
  for (const Guard& g : b.guards) guards.push_back(Json::array({g.a.str(), g.b.str()}));
  for (const Instruction& step : b.instructions) instructions.push_back(to_json(step));
  for (size_t i = 0; i < b.outputs.size(); ++i)
    outputs.push_back({{"name", b.outputs[i].name}, {"value", b.output_values[i]}});
  return {{"name", p.name},
          {"values", values},
          {"inputs", inputs},
          {"constants", constants},
          {"random", random},
          {"guards", guards},
          {"instructions", instructions},
          {"outputs", outputs}};
}

}  // namespace

Header read_header(std::string_view text) {
  const Json json = parse_header(text);
  const Reader root(json, "header");
  root.members({"minor", "tensors", "programs", "model"});
  const bool later = root.has("minor") && root["minor"].integer(0, INT32_MAX) > kMinor;
  Header header;
  std::set<std::string> names;
  const Reader tensors = root["tensors"];
  for (size_t i = 0; i < tensors.size(); ++i) {
    header.tensors.push_back(read_tensor(tensors.at(i)));
    tensors.at(i).require(names.insert(header.tensors.back().name).second, "two tensors are named '",
                          header.tensors.back().name, "'");
  }
  names.clear();
  const Reader programs = root["programs"];
  programs.require(programs.size() > 0, "there is no program");
  for (size_t i = 0; i < programs.size(); ++i) {
    Header::Entry& entry = header.programs.emplace_back();
    ProgramReader(programs.at(i), header.tensors, entry).read();
    programs.at(i).require(names.insert(entry.name).second, "two programs are named '", entry.name, "'");
  }
  if (root.has("model")) read_card(root["model"], later, header);
  return header;
}

std::string write_header(const std::vector<FileTensor>& tensors, const std::vector<NamedBody>& programs,
                         std::string_view card) {
  Json tensor_list = Json::array(), program_list = Json::array();
  for (const FileTensor& t : tensors)
    tensor_list.push_back({{"name", t.name},
                           {"spec", to_json(t.spec)},
                           {"offset", t.offset},
                           {"bytes", t.bytes},
                           {"crc32", t.crc32}});
  for (const NamedBody& p : programs) program_list.push_back(to_json(p));
  try {
    Json header = {{"minor", kMinor}, {"tensors", tensor_list}, {"programs", program_list}};
    if (!card.empty()) header["model"] = Json::parse(card);
    return header.dump();
  } catch (const Json::exception& e) {
    fail<ValueError>("export: a name is not valid UTF-8, or the card no JSON: ", e.what());
  }
}

}  // namespace plmcore
