"""Where sentences end: a rule without a model.

A sentence ends behind . ! ? or … and the quotes and brackets that close there, if white space follows and the
next letter is not a small one. A full stop does not end one behind an initial (J. Smith) or an abbreviation
of the list, nor behind one with a stop inside (U.S., a.m.) if the name of a month or "I" follows. The marks
of Chinese and Japanese end one without white space. White space stays in front of the sentence that follows
it, so that the sentences put together are the text.
"""

from __future__ import annotations

import re

from plmcore._core import text as native

_LINE = re.compile(r"(?<=[^\n])(?=\n+[^\n])")


def split(text: str) -> list[str]:
    """The sentences of a text."""
    # cpp/text/sentences.cpp: a tokenizer reads 10 MB/s, a rule in Python no more than 40
    return native.sentences(text)


def split_lines(text: str) -> list[str]:
    """One sentence to a line; line breaks stay in front of the line that follows them."""
    return _LINE.split(text)
