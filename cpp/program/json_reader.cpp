#include "program/json_reader.h"

#include <set>
#include <vector>

namespace plmcore {

namespace {
constexpr int kMaxDepth = 8;  // a well-formed header is seven levels deep
}  // namespace

Json parse_header(std::string_view text) {
  // Stops deep nesting before it costs memory, and objects that name a member twice.
  std::vector<std::set<std::string>> open;
  const auto callback = [&](int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    check<FormatError>(depth <= kMaxDepth, "program file: the header is nested deeper than ", kMaxDepth,
                       " levels");
    if (event == Event::object_start) open.emplace_back();
    else if (event == Event::object_end) open.pop_back();
    else if (event == Event::key)
      check<FormatError>(open.back().insert(value.get<std::string>()).second,
                         "program file: the header has the member '", value.get<std::string>(),
                         "' twice in one object");
    return true;
  };
  try {
    return Json::parse(text, callback);
  } catch (const Json::exception& e) {
    fail<FormatError>("program file: the header is not valid JSON: ", e.what());
  }
}

}  // namespace plmcore
