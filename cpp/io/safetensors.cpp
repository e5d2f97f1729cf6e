// The format: uint64 length of the header, the header (JSON, may end with spaces), the values. Offsets count
// from the end of the header; the tensors cover what follows without overlaps or holes.
#include "plmcore/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_set>

#include "io/file.h"

namespace plmcore::safetensors {

static_assert(std::endian::native == std::endian::little,
              "safetensors files are little-endian and are used in place");

namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxHeader = 100'000'000;          // the reference's limit
constexpr int64_t kMaxElements = int64_t{1} << 46;    // as Tensor::empty's
constexpr size_t kAlign = 64;
constexpr const char* kMetadata = "__metadata__";

// In the order in which the reference writes them.
constexpr std::pair<std::string_view, DType> kDTypeNames[] = {
    {"I64", DType::int64}, {"F64", DType::float64},   {"F32", DType::float32},
    {"I32", DType::int32}, {"BF16", DType::bfloat16}, {"F16", DType::float16},
    {"I8", DType::int8},   {"U8", DType::uint8},      {"BOOL", DType::boolean},
};
static_assert(std::size(kDTypeNames) == kDTypes);
size_t rank_of(DType t) {
  return static_cast<size_t>(
      std::find_if(std::begin(kDTypeNames), std::end(kDTypeNames), [&](auto& n) { return n.second == t; }) -
      std::begin(kDTypeNames));
}

struct Entry {
  std::string name;
  Spec spec;
  uint64_t begin = 0, end = 0;  // within the values
};

// ---- reading ----

// Takes the header as a stream of JSON events, so that nothing but its tensors costs memory. Every error
// names the place.
class HeaderReader {
 public:
  std::vector<Entry> entries;
  Metadata metadata;

  // ---- called by the parser; false is never returned, errors are thrown ----
  bool null() { return value("null"); }
  bool boolean(bool) { return value("a truth value"); }
  bool number_float(Json::number_float_t, const std::string&) {
    return value("a number that is not an integer, or too large a one");
  }
  bool number_integer(Json::number_integer_t n) {
    require(n >= 0, "must not be negative, got ", n);
    return number_unsigned(static_cast<uint64_t>(n));
  }
  bool number_unsigned(Json::number_unsigned_t n) {
    if (at_ == At::shape) {
      require(n <= static_cast<uint64_t>(kMaxElements), "the size ", n, " is too large");
      require(entry_.spec.shape.rank() < Shape::kMaxRank, "has more than ", int{Shape::kMaxRank}, " axes");
      entry_.spec.shape.push_back(static_cast<int64_t>(n));
    } else if (at_ == At::offsets) {
      require(offsets_ < 2, "must be two numbers");
      (offsets_++ ? entry_.end : entry_.begin) = n;
    } else {
      value("a number");
    }
    return true;
  }
  bool string(std::string& s) {
    if (at_ == At::metadata) metadata.insert_or_assign(member_, std::move(s));
    else if (at_ == At::tensor && member_ == "dtype") read_dtype(s);
    else value("a text");
    return true;
  }
  bool binary(Json::binary_t&) { return value("binary"); }
  bool start_object(size_t) {
    if (at_ == At::start) at_ = At::root;
    else if (at_ != At::root) value("an object");
    else if (entry_.name == kMetadata) at_ = At::metadata;
    else at_ = At::tensor;
    return true;
  }
  bool key(std::string& s) {
    if (at_ == At::root) {
      entry_ = {};
      entry_.name = std::move(s);
      offsets_ = 0;
      has_dtype_ = has_shape_ = has_offsets_ = false;
      member_.clear();
      require(names_.insert(entry_.name).second, "is there twice");
      return true;
    }
    member_ = std::move(s);
    if (at_ == At::metadata) require(!metadata.contains(member_), "is there twice");
    else if (member_ == "dtype") once(has_dtype_);
    else if (member_ == "shape") once(has_shape_);
    else once(member_ == "data_offsets" ? has_offsets_ : unknown());
    return true;
  }
  bool end_object() {
    member_.clear();
    if (at_ == At::tensor) {
      require(has_dtype_, "has no 'dtype'");
      require(has_shape_, "has no 'shape'");
      require(has_offsets_, "has no 'data_offsets'");
      check_size();
      entries.push_back(std::move(entry_));
      entry_ = {};
    }
    at_ = at_ == At::root ? At::done : At::root;
    return true;
  }
  bool start_array(size_t) {
    if (at_ == At::tensor && member_ == "shape") at_ = At::shape;
    else if (at_ == At::tensor && member_ == "data_offsets") at_ = At::offsets;
    else value("a list");
    return true;
  }
  bool end_array() {
    require(at_ != At::offsets || offsets_ == 2, "must be two numbers, got ", offsets_);
    at_ = At::tensor;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& e) {
    // "[json.exception.parse_error.101] parse error at ...: syntax error ...": the file's bytes follow.
    const std::string_view what = e.what();
    const size_t colon = what.find(": "), read = what.find("; last read");
    fail<FormatError>("the header is not valid JSON at its byte ", position, ": ",
                      printable(what.substr(std::min(colon + 2, what.size()),
                                            read == what.npos ? read : read - colon - 2)));
  }

 private:
  enum class At { start, root, tensor, shape, offsets, metadata, done };

  template <class... Parts>
  void require(bool ok, const Parts&... parts) const {
    if (ok) [[likely]]
      return;
    std::string place = "the header";
    if (at_ != At::start)
      place = entry_.name == kMetadata ? kMetadata : "the tensor '" + printable(entry_.name) + "'";
    if (!member_.empty()) place += ": '" + printable(member_) + "'";
    fail<FormatError>(place, " ", parts...);
  }
  // A value that does not belong here.
  bool value(const char* what) const {
    const char* want = "be a list of integers from 0";
    if (at_ == At::start || at_ == At::root) want = "be an object";
    if (at_ == At::metadata || (at_ == At::tensor && member_ == "dtype")) want = "be a text";
    require(false, "must ", want, ", got ", what);
    return true;
  }
  void once(bool& seen) const {
    require(!seen, "is there twice");
    seen = true;
  }
  bool& unknown() {
    require(false, "is no part of the format; known are 'dtype', 'shape' and 'data_offsets'");
    return has_dtype_;
  }
  void read_dtype(const std::string& s) {
    for (const auto& [name, dtype] : kDTypeNames)
      if (name == s) {
        entry_.spec.dtype = dtype;
        return;
      }
    std::string known;
    for (const auto& [name, dtype] : kDTypeNames) known += (known.empty() ? "" : ", ") + std::string(name);
    require(false, "is '", printable(s), "'; plmcore reads ", known);
  }
  void check_size() const {
    int64_t count = 1;
    bool empty = false;
    for (Dim d : entry_.spec.shape) {
      empty |= d.is(0);  // the other sizes must make sense nevertheless
      require(
          !__builtin_mul_overflow(count, std::max<int64_t>(d.value(), 1), &count) && count <= kMaxElements,
          "has the shape ", entry_.spec.shape, ", which is too large");
    }
    const uint64_t want = empty ? 0 : static_cast<uint64_t>(count) * size_of(entry_.spec.dtype);
    require(entry_.begin <= entry_.end, "ends at ", entry_.end, ", before it begins at ", entry_.begin);
    require(entry_.end - entry_.begin == want, "is ", entry_.spec, " and must have ", want, " bytes, got ",
            entry_.end - entry_.begin, " by its data_offsets");
  }

  At at_ = At::start;
  Entry entry_;
  std::string member_;  // of the tensor or the metadata
  int offsets_ = 0;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  std::unordered_set<std::string> names_;
};

void check_layout(const std::vector<Entry>& entries, uint64_t bytes) {
  uint64_t end = 0;
  const Entry* before = nullptr;
  for (const Entry& e : entries) {
    check<FormatError>(e.end <= bytes, "the tensor '", printable(e.name), "' ends at byte ", e.end,
                       " of the values, which have ", bytes, "; the file is cut off or damaged");
    check<FormatError>(e.begin >= end, "the tensor '", printable(e.name), "' begins at ", e.begin,
                       ", inside '", before ? printable(before->name) : "", "', which ends at ", end);
    check<FormatError>(e.begin == end, "nothing tells of the bytes from ", end, " to ", e.begin,
                       " of the values, before the tensor '", printable(e.name), "'");
    end = e.end;
    before = &e;
  }
  check<FormatError>(end == bytes, "nothing tells of the last ", bytes - end, " bytes of the file");
}

// ---- writing ----

std::string write_header(const std::vector<std::pair<Entry, Tensor>>& list, const Metadata& metadata) {
  Json json = Json::object();
  if (!metadata.empty()) json[kMetadata] = metadata;
  auto& object = json.get_ref<Json::object_t&>();
  for (const auto& [e, tensor] : list) {
    Json shape = Json::array();
    for (Dim d : e.spec.shape) shape.push_back(d.value());
    const std::string dtype(kDTypeNames[rank_of(e.spec.dtype)].first);
    object.emplace_back(e.name, Json{{"dtype", dtype}, {"shape", shape}, {"data_offsets", {e.begin, e.end}}});
  }
  try {
    std::string text = json.dump();
    text.resize((8 + text.size() + kAlign - 1) / kAlign * kAlign - 8, ' ');
    return text;
  } catch (const Json::exception&) {
    fail<ValueError>("safetensors: a name or a text of the metadata is not valid UTF-8");
  }
}

}  // namespace

const Tensor& File::at(std::string_view name) const {
  for (const auto& [n, tensor] : tensors)
    if (n == name) return tensor;
  fail<ValueError>("the file has no tensor '", printable(name), "'");
}

File read(const std::string& path, bool mapped) {
  uint64_t length;
  const Ref<Storage> file = open_file(path, "a safetensors file", sizeof length, mapped);
  try {
    std::memcpy(&length, file->data, sizeof length);
    check<FormatError>(length <= kMaxHeader, "its header would have ", length, " bytes, at most ", kMaxHeader,
                       " are allowed");
    check<FormatError>(length <= file->bytes - sizeof length, "it is cut off: the header has ", length,
                       " bytes, the file ", file->bytes);
    const std::string_view text(static_cast<const char*>(file->data) + sizeof length, length);
    check<FormatError>(text.starts_with('{'), "its header must begin with '{'");
    check<FormatError>(text.find('\0') == text.npos,
                       "its header has a zero byte");  // the parser would take it for the end
    HeaderReader header;
    Json::sax_parse(text, &header);
    std::vector<Entry>& entries = header.entries;
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    const size_t start = sizeof length + length;
    check_layout(entries, file->bytes - start);
    File result;
    result.metadata = std::move(header.metadata);
    result.tensors.reserve(entries.size());
    for (Entry& e : entries)
      result.tensors.emplace_back(std::move(e.name), tensor_in_file(file, start + e.begin, e.spec));
    return result;
  } catch (const FormatError& e) { fail<FormatError>("'", path, "' cannot be read: ", e.what()); }
}

void write(const std::string& path, const Named& tensors, const Metadata& metadata) {
  std::vector<std::pair<Entry, Tensor>> list;
  std::unordered_set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    check<ValueError>(name != kMetadata, "safetensors: a tensor cannot be named '", kMetadata, "'");
    check<ValueError>(names.insert(name).second, "safetensors: two tensors are named '", printable(name),
                      "'");
    check<ValueError>(tensor.defined(), "safetensors: there is no tensor '", printable(name), "'");
    check<ValueError>(!tensor.is_row_sparse(), "safetensors: '", printable(name),
                      "' is a row-sparse gradient; call to_dense() on it first");
    (void)tensor.data();  // a traced tensor has none: says so
    list.push_back({{name, tensor.spec()}, tensor});
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    const size_t left = rank_of(a.first.spec.dtype), right = rank_of(b.first.spec.dtype);
    return std::tie(left, a.first.name) < std::tie(right, b.first.name);
  });
  uint64_t end = 0;
  for (auto& [e, tensor] : list) {
    e.begin = end;
    end = e.end = e.begin + tensor.bytes();
  }
  const std::string header = write_header(list, metadata);
  const uint64_t length = header.size();
  check<ValueError>(length <= kMaxHeader, "safetensors: the header takes ", length, " bytes, at most ",
                    kMaxHeader, " are allowed");
  FileWriter out(path);
  out.write(&length, sizeof length);
  out.write(header.data(), header.size());
  for (const auto& [e, tensor] : list) out.write(tensor);
  out.finish();
}

}  // namespace plmcore::safetensors
