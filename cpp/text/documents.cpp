#include "text/documents.h"

#include <algorithm>

namespace plmcore::text {
namespace {

bool is_blank(std::string_view line) {
  return std::ranges::all_of(
      line, [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; });
}

}  // namespace

std::vector<Span> documents(std::string_view text, bool continues) {
  std::vector<Span> found;
  bool inside = continues;
  if (continues) found.push_back({0, 0});
  size_t at = continues && text.starts_with('\n') ? 1 : 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (is_blank(text.substr(at, end - at))) {
      inside = false;
    } else {
      if (!inside) found.push_back({at, at});
      found.back().end = end;
      inside = true;
    }
    at = end + 1;
  }
  return found;
}

}  // namespace plmcore::text
