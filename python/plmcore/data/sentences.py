"""Where sentences end: a rule without a model.

A sentence ends behind . ! ? or … and the quotes and brackets that close there, if white space follows and the next letter is not a small one.
A full stop does not end one behind an initial (J. Smith) or an abbreviation of the list, nor behind one with a stop
inside (U.S., a.m.) if the name of a month or "I" follows. The marks of Chinese and Japanese end one without white space.
White space stays in front of the sentence that follows it, so that the sentences put together are the text.
"""

from __future__ import annotations

import re

ABBREVIATIONS = frozenset(
    "adm al alt approx apr assn assoc asst aug ave bldg blvd brig bros bzw ca capt cf cmdr co col comdr corp cpl dec dept dist div dr ed eds "
    "eg esp esq est etc evtl exec feb fig figs fr fri ft gen ggf gov hon hr hrsg ie inc inkl inst jan jr jul jun lt ltd maj mar max messrs mgr "
    "min mio misc mlle mm mme mon mr mrd mrs ms mt mts natl no nos nov nr oct op pp prof pt pvt rd rep rev rt sat sen sens sep sept sgt sgts "
    "sog sr st sta ste supt tel thu tue univ usw vgl viz vol vols vs wed zb".split()
)
CONTINUING = frozenset(
    "January February March April May June July August September October November December I".split()
)
OPENING = "\"'“‘«([¿¡「『（"

LONGEST = max(map(len, ABBREVIATIONS))

# One character of a class first, without a repeat: the regular expression engine searches for that quickly.
_MARK = re.compile(r"""[.!?…。！？][.!?…。！？]*(["'”’»」』）)\]]*)(\s*)(?=[^\sa-z,;:])""")
_LINE = re.compile(r"(?<=[^\n])(?=\n+[^\n])")
_WORD = re.compile(r"\w*")


def split(text: str) -> list[str]:
    """The sentences of a text."""
    sentences, begin = [], 0
    for match in _MARK.finditer(text):
        stop, following = match.span()
        closing, end = match.span(1)
        if end == following and text[closing - 1] not in "。！？":  # no white space
            continue
        if text[following] in OPENING:
            following += 1
        if text[following : following + 1].islower():
            continue
        if end - stop == 1 and text[stop] == "." and _abbreviated(text, begin, stop, following):
            continue
        sentences.append(text[begin:end])
        begin = end
    if begin < len(text):
        sentences.append(text[begin:])
    return sentences


def split_lines(text: str) -> list[str]:
    """One sentence to a line; line breaks stay in front of the line that follows them."""
    return _LINE.split(text)


def _abbreviated(text: str, begin: int, stop: int, following: int) -> bool:
    before = text[max(begin, stop - LONGEST - 1) : stop]
    if before.isalpha() and len(before) > LONGEST or before[-1:].isspace():
        return False
    word = text[max(begin, stop - 16) : stop].split()[-1:]
    word = word[0].lstrip(OPENING) if word else ""
    if len(word) == 1:
        return word.isalpha() and word != "I"
    if "." in word:
        return _WORD.match(text, following).group() in CONTINUING
    return word.lower() in ABBREVIATIONS
