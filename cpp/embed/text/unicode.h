// Characters: UTF-8, and the properties that tokenizers go by.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plmcore::unicode {

using Points = std::u32string;

// ValueError that names the place of bytes that are no UTF-8.
Points points_of(std::string_view text);
bool valid(std::string_view text);
void append(std::string& text, char32_t c);
// Bytes that are no UTF-8 become U+FFFD, one for each longest part of a character.
std::string repaired(std::string_view bytes);

enum Property : uint8_t {
  kLetter = 1,
  kNumber = 2,
  kPunctuation = 4,
  kOther = 8,  // control characters and the like
  kNonspacing = 16,  // marks
  kWhite = 32,
  kIdeograph = 64,
};
uint8_t properties(char32_t c);
inline bool is(char32_t c, int any_of) { return (properties(c) & any_of) != 0; }

void append_lower(Points& text, char32_t c);
void append_decomposed(Points& text, char32_t c);  // canonically, whole (NFD)

}  // namespace plmcore::unicode
