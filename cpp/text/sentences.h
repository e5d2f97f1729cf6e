// Where sentences end: a rule without a model.
//
// A sentence ends behind . ! ? or … and the quotes and brackets that close there, if white space follows and
// the next letter is not a small one. A full stop does not end one behind an initial (J. Smith) or an
// abbreviation of the list, nor behind one with a stop inside (U.S., a.m.) if the name of a month or "I"
// follows. The marks of Chinese and Japanese end one without white space. White space stays in front of the
// sentence that follows it, so that the sentences put together are the text.
#pragma once

#include <cstddef>
#include <vector>

namespace plmcore::text {

// What characters are. The caller has Unicode's tables: this library carries none.
struct Letters {
  bool (*space)(char32_t);
  bool (*lower)(char32_t);
  bool (*alpha)(char32_t);
  bool (*word)(char32_t);  // letters, digits and _
};

// The end of each sentence of a text of n characters, the last n. Char: 1, 2 or 4 bytes, one for each
// character.
template <class Char>
std::vector<size_t> sentence_ends(const Char* text, size_t n, const Letters& letters);

}  // namespace plmcore::text
