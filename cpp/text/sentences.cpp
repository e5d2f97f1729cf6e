#include "text/sentences.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace plmcore::text {
namespace {

// Sorted, small letters.
constexpr std::array<std::string_view, 118> kAbbreviations = {
    "adm",  "al",   "alt",  "approx", "apr",  "assn", "assoc", "asst", "aug",  "ave",   "bldg", "blvd",
    "brig", "bros", "bzw",  "ca",     "capt", "cf",   "cmdr",  "co",   "col",  "comdr", "corp", "cpl",
    "dec",  "dept", "dist", "div",    "dr",   "ed",   "eds",   "eg",   "esp",  "esq",   "est",  "etc",
    "evtl", "exec", "feb",  "fig",    "figs", "fr",   "fri",   "ft",   "gen",  "ggf",   "gov",  "hon",
    "hr",   "hrsg", "ie",   "inc",    "inkl", "inst", "jan",   "jr",   "jul",  "jun",   "lt",   "ltd",
    "maj",  "mar",  "max",  "messrs", "mgr",  "min",  "mio",   "misc", "mlle", "mm",    "mme",  "mon",
    "mr",   "mrd",  "mrs",  "ms",     "mt",   "mts",  "natl",  "no",   "nos",  "nov",   "nr",   "oct",
    "op",   "pp",   "prof", "pt",     "pvt",  "rd",   "rep",   "rev",  "rt",   "sat",   "sen",  "sens",
    "sep",  "sept", "sgt",  "sgts",   "sog",  "sr",   "st",    "sta",  "ste",  "supt",  "tel",  "thu",
    "tue",  "univ", "usw",  "vgl",    "viz",  "vol",  "vols",  "vs",   "wed",  "zb",
};
static_assert(std::ranges::is_sorted(kAbbreviations));
constexpr size_t kLongest = std::ranges::max(kAbbreviations, {}, &std::string_view::size).size();

// What may follow a full stop behind U.S. or a.m. without beginning a sentence.
constexpr std::array<std::string_view, 13> kContinuing = {
    "January", "February",  "March",   "April",    "May",      "June", "July",
    "August",  "September", "October", "November", "December", "I"};
constexpr size_t kWord = 16;  // characters before a full stop that are looked at

constexpr bool is_wide_mark(char32_t c) { return c == U'。' || c == U'！' || c == U'？'; }
constexpr bool is_mark(char32_t c) {
  return c == '.' || c == '!' || c == '?' || (c > 0xff && (c == U'…' || is_wide_mark(c)));
}
constexpr bool closes(char32_t c) {
  switch (c) {
    case U'"':
    case U'\'':
    case U'”':
    case U'’':
    case U'»':
    case U'」':
    case U'』':
    case U'）':
    case U')':
    case U']': return true;
    default: return false;
  }
}
constexpr bool opens(char32_t c) {
  switch (c) {
    case U'"':
    case U'\'':
    case U'“':
    case U'‘':
    case U'«':
    case U'(':
    case U'[':
    case U'¿':
    case U'¡':
    case U'「':
    case U'『':
    case U'（': return true;
    default: return false;
  }
}
constexpr bool goes_on(char32_t c) { return (c >= 'a' && c <= 'z') || c == ',' || c == ';' || c == ':'; }

template <class Char>
bool is(const Char* begin, const Char* end, std::string_view word) {
  return std::equal(begin, end, word.begin(), word.end(),
                    [](Char a, char b) { return a == static_cast<unsigned char>(b); });
}

template <class Char>
bool is_abbreviation(const Char* begin, const Char* end) {
  const size_t n = static_cast<size_t>(end - begin);
  if (n == 0 || n > kLongest) return false;
  char spelled[kLongest];
  for (size_t i = 0; i < n; ++i) {
    if (begin[i] > 127) return false;
    const char c = static_cast<char>(begin[i]);
    spelled[i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  return std::ranges::binary_search(kAbbreviations, std::string_view(spelled, n));
}

// Does the full stop at `stop` end a word of the sentence from `begin` on, and not the sentence, before a
// text at `next`?
template <class Char>
bool abbreviated(const Char* text, size_t n, size_t begin, size_t stop, size_t next, const Letters& letters) {
  const auto is_letter = [&](Char c) { return letters.alpha(c); };
  if (stop - begin > kLongest && std::all_of(text + stop - kLongest - 1, text + stop, is_letter))
    return false;
  size_t first = stop;  // of the word
  const size_t limit = stop - begin > kWord ? stop - kWord : begin;
  while (first > limit && !letters.space(text[first - 1])) --first;
  while (first < stop && opens(text[first])) ++first;
  if (stop - first == 1) return letters.alpha(text[first]) && text[first] != 'I';
  if (std::find(text + first, text + stop, Char('.')) == text + stop)
    return is_abbreviation(text + first, text + stop);
  size_t after = next;
  while (after < n && letters.word(text[after])) ++after;
  return std::ranges::any_of(kContinuing,
                             [&](std::string_view word) { return is(text + next, text + after, word); });
}

}  // namespace

template <class Char>
std::vector<size_t> sentence_ends(const Char* text, size_t n, const Letters& letters) {
  std::vector<size_t> ends;
  size_t begin = 0;
  for (size_t i = 0; i < n;) {
    if (!is_mark(text[i])) {
      ++i;
      continue;
    }
    const size_t stop = i;
    while (i < n && is_mark(text[i])) ++i;
    const char32_t mark = text[i - 1];
    while (i < n && closes(text[i])) ++i;
    const size_t end = i;
    while (i < n && letters.space(text[i])) ++i;
    if (i == n) break;
    if (goes_on(text[i]) || (i == end && !is_wide_mark(mark))) continue;
    const size_t next = i + opens(text[i]);
    if (next < n && letters.lower(text[next])) continue;
    if (end - stop == 1 && mark == '.' && abbreviated(text, n, begin, stop, next, letters)) continue;
    ends.push_back(end);
    begin = end;
  }
  if (begin < n) ends.push_back(n);
  return ends;
}

template std::vector<size_t> sentence_ends(const uint8_t*, size_t, const Letters&);
template std::vector<size_t> sentence_ends(const uint16_t*, size_t, const Letters&);
template std::vector<size_t> sentence_ends(const uint32_t*, size_t, const Letters&);

}  // namespace plmcore::text
