#include "embed/text/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "plmcore/error.h"

namespace plmcore::unicode {

namespace {

struct Range {
  uint32_t first, last;
};
struct Mapped {
  uint32_t from;
  uint16_t pool;
  uint8_t count;
};

#include "embed/text/unicode_tables.inc"

constexpr Range kWhites[] = {{0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
                             {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                             {0x205f, 0x205f}, {0x3000, 0x3000}};
// CJK as BERT has it: each character is a word.
constexpr Range kIdeographs[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                 {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                 {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};

constexpr char32_t kLooked = 0x20000;  // below, properties are in a table

template <size_t N>
bool within(const Range (&table)[N], char32_t c) {
  const Range* it =
      std::upper_bound(table, table + N, c, [](char32_t x, const Range& r) { return x < r.first; });
  return it != table && c <= (it - 1)->last;
}

uint8_t found(char32_t c) {
  int all = 0;
  if (within(kLetters, c)) all |= kLetter;
  if (within(kNumbers, c)) all |= kNumber;
  if (within(kPunctuation_, c)) all |= kPunctuation;
  if (within(kOther_, c)) all |= kOther;
  if (within(kNonspacing_, c)) all |= kNonspacing;
  if (within(kWhites, c)) all |= kWhite;
  if (within(kIdeographs, c)) all |= kIdeograph;
  return static_cast<uint8_t>(all);
}

const uint8_t* table() {
  static const std::unique_ptr<uint8_t[]> made = [] {
    auto t = std::make_unique<uint8_t[]>(kLooked);
    for (char32_t c = 0; c < kLooked; ++c) t[c] = found(c);
    return t;
  }();
  return made.get();
}

template <size_t N>
const Mapped* mapped(const Mapped (&entries)[N], char32_t c) {
  const Mapped* it =
      std::lower_bound(entries, entries + N, c, [](const Mapped& m, char32_t x) { return m.from < x; });
  return it != entries + N && it->from == c ? it : nullptr;
}

// The length of a character that begins with `lead`, and the smallest one of that length; 0: none does.
struct Lead {
  int length;
  char32_t least;
};
Lead lead_of(uint8_t b) {
  if (b < 0x80) return {1, 0};
  if (b >= 0xc2 && b < 0xe0) return {2, 0x80};
  if (b >= 0xe0 && b < 0xf0) return {3, 0x800};
  if (b >= 0xf0 && b < 0xf5) return {4, 0x10000};
  return {0, 0};
}

// One character from p on: how many bytes of it are right, all of them where `whole`.
struct Read {
  char32_t c;
  int bytes;
  bool whole;
};
Read read(const uint8_t* p, const uint8_t* end) {
  const Lead lead = lead_of(*p);
  if (lead.length == 0) return {0, 1, false};
  char32_t c = lead.length == 1 ? *p : *p & (0x7f >> lead.length);
  for (int k = 1; k < lead.length; ++k) {
    if (p + k >= end || (p[k] & 0xc0) != 0x80) return {0, k, false};
    c = c << 6 | (p[k] & 0x3f);
    if (k == 1) {  // what the second byte must be so that the rest can follow
      const char32_t low = c << (6 * (lead.length - 2)), high = low | ((1u << (6 * (lead.length - 2))) - 1);
      if (high < lead.least || low > 0x10ffff || (low >= 0xd800 && high <= 0xdfff)) return {0, 1, false};
    }
  }
  return {c, lead.length, true};
}

}  // namespace

Points points_of(std::string_view text) {
  Points found;
  found.reserve(text.size());
  const auto *begin = reinterpret_cast<const uint8_t*>(text.data()), *end = begin + text.size();
  for (const uint8_t* p = begin; p < end;) {
    if (*p < 0x80) {
      found.push_back(*p++);
      continue;
    }
    const Read r = read(p, end);
    check<ValueError>(r.whole, "the text is not valid UTF-8: byte ", p - begin, " is ", static_cast<int>(*p));
    found.push_back(r.c);
    p += r.bytes;
  }
  return found;
}

bool valid(std::string_view text) {
  const auto *p = reinterpret_cast<const uint8_t*>(text.data()), *end = p + text.size();
  while (p < end) {
    const Read r = read(p, end);
    if (!r.whole) return false;
    p += r.bytes;
  }
  return true;
}

void append(std::string& text, char32_t c) {
  const auto add = [&](char32_t b) { text.push_back(static_cast<char>(b)); };
  if (c < 0x80) add(c);
  else if (c < 0x800) add(0xc0 | c >> 6), add(0x80 | (c & 0x3f));
  else if (c < 0x10000) add(0xe0 | c >> 12), add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
  else add(0xf0 | c >> 18), add(0x80 | (c >> 12 & 0x3f)), add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
}

std::string repaired(std::string_view bytes) {
  std::string text;
  const auto *p = reinterpret_cast<const uint8_t*>(bytes.data()), *end = p + bytes.size();
  while (p < end) {
    const Read r = read(p, end);
    append(text, r.whole ? r.c : U'\ufffd');
    p += r.bytes;
  }
  return text;
}

uint8_t properties(char32_t c) {
  static const uint8_t* const known = table();
  return c < kLooked ? known[c] : found(c);
}

void append_lower(Points& text, char32_t c) {
  if (c < 0x80) text.push_back(c >= 'A' && c <= 'Z' ? c + 32 : c);
  else if (const Mapped* m = mapped(kLower, c))
    text.append(std::begin(kLowerPool) + m->pool, std::begin(kLowerPool) + m->pool + m->count);
  else text.push_back(c);
}

void append_decomposed(Points& text, char32_t c) {
  constexpr char32_t kFirst = 0xac00, kLast = 0xd7a3, kLead = 0x1100, kVowel = 0x1161, kTail = 0x11a7;
  constexpr char32_t kTails = 28, kEach = 21 * kTails;
  if (c < 0x80) return text.push_back(c);
  if (c >= kFirst && c <= kLast) {
    const char32_t i = c - kFirst;
    text.push_back(kLead + i / kEach);
    text.push_back(kVowel + i % kEach / kTails);
    if (i % kTails) text.push_back(kTail + i % kTails);
  } else if (const Mapped* m = mapped(kDecomposed, c)) {
    text.append(std::begin(kDecomposedPool) + m->pool, std::begin(kDecomposedPool) + m->pool + m->count);
  } else {
    text.push_back(c);
  }
}

}  // namespace plmcore::unicode
