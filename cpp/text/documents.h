// Documents of a text: what lies between blank lines. UTF-8 in, places out; nothing is decoded.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace plmcore::text {

struct Span {
  size_t begin, end;
};

// Runs of lines that are not blank (white space of ASCII), without the line breaks around them. `continues`:
// the text begins at the line break of a line of a document before it; the first span is what it has of that
// one, with the break, or empty.
std::vector<Span> documents(std::string_view text, bool continues);

}  // namespace plmcore::text
