// A JSON header, read with care: every step names the place it looks at.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "plmcore/tensor.h"

namespace plmcore {

using Json = nlohmann::ordered_json;

inline constexpr size_t kMaxText = 1024;  // of a name or a size

// FormatError for text that is no JSON, is nested too deeply, or names a member twice in one object.
Json parse_header(std::string_view text);

// A JSON value and the path to it. Members must be there and have the right type; an object has no other
// members.
class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  template <class... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail<FormatError>("program file: ", path_, ": ", parts...);
  }
  template <class... Parts>
  void require(bool ok, const Parts&... parts) const {
    if (!ok) bad(parts...);
  }

  Reader operator[](const char* key) const {
    require(json_.is_object(), "must be an object");
    const auto it = json_.find(key);
    require(it != json_.end(), "'", key, "' is missing");
    return {*it, path_ + "." + key};
  }
  Reader at(size_t i) const { return {json_[i], path_ + "[" + std::to_string(i) + "]"}; }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  std::vector<std::string> keys() const {
    require(json_.is_object(), "must be an object");
    std::vector<std::string> found;
    for (auto& [key, value] : json_.items()) found.push_back(key);
    return found;
  }
  // The members of an object: none but these.
  void members(const std::vector<const char*>& keys) const {
    require(json_.is_object(), "must be an object");
    for (auto& [key, value] : json_.items()) {
      bool known = false;
      for (const char* k : keys) known |= key == k;
      require(known, "unknown member '", key.substr(0, kMaxText), "'");
    }
  }
  size_t size() const {
    require(json_.is_array(), "must be a list");
    return json_.size();
  }
  size_t size(size_t want) const {
    require(size() == want, "must be a list of ", want, ", got ", size());
    return want;
  }
  int64_t integer(int64_t low, int64_t high) const {
    require(json_.is_number_integer(), "must be an integer");
    require(!json_.is_number_unsigned() || json_.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX),
            "is too large");
    const auto n = json_.get<int64_t>();
    require(n >= low && n <= high, "must be from ", low, " to ", high, ", got ", n);
    return n;
  }
  const std::string& text() const {
    require(json_.is_string(), "must be a text");
    const auto& s = json_.get_ref<const std::string&>();
    require(!s.empty() && s.size() <= kMaxText, "must be a text of 1 to ", kMaxText, " bytes, got ",
            s.size());
    return s;
  }
  double number() const {  // infinities and NaN have no JSON form: they are texts
    if (json_.is_number()) return json_.get<double>();
    const std::string& s = text();
    if (s == "inf") return INFINITY;
    if (s == "-inf") return -INFINITY;
    require(s == "nan", "must be a number, \"inf\", \"-inf\" or \"nan\"");
    return NAN;
  }
  // f(), with its errors as this place's.
  template <class F>
  auto caught(F f) const {
    try {
      return f();
    } catch (const Error& e) { bad(e.what()); }
  }
  Dim dim() const {
    const std::string& s = text();
    return caught([&] { return Dim::parse(s); });
  }
  // [dtype, size, size, ...]
  Spec spec() const {
    require(size() >= 1 && size() <= 1 + Shape::kMaxRank, "must be a dtype and at most ",
            int{Shape::kMaxRank}, " sizes");
    Spec s;
    s.dtype = caught([&] { return dtype_from_name(at(0).text()); });
    for (size_t i = 1; i < size(); ++i) s.shape.push_back(at(i).dim());
    return s;
  }
  Shape dims() const {
    require(size() <= Shape::kMaxRank, "must have at most ", int{Shape::kMaxRank}, " sizes");
    Shape s;
    for (size_t i = 0; i < size(); ++i) s.push_back(at(i).dim());
    return s;
  }

 private:
  const Json& json_;
  std::string path_;
};

}  // namespace plmcore
