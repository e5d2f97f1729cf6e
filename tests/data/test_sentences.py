import re

import numpy as np
import pytest
from plmcore.data.sentences import split, split_lines


@pytest.mark.parametrize(
    "marked",
    [
        "One.| Two!| Three?| Four…| Five",
        "Mr. Smith met Dr. Jones at 3.5 p.m. in St. Louis.| They left.",
        "J. R. R. Tolkien wrote it.| C. S. Lewis did not.",
        "He said \"Go.\"| Then (he left.)| 'So.'| End",
        'She asked: "Why?" and left.| "Because."',
        "It was I.| He knew.",
        "He lived in the U.S.| They did not.| On 3 a.m. January was cold.",
        "the end . The next ! a small one . | Last".replace(" . The", " .| The").replace(
            " . | Last", " .| Last"
        ),
        "Wait... what?| No... Yes.".replace("No... Yes.", "No...| Yes."),
        "See fig. 3, p. 5, vol. 2.| Next.",
        "你好。|再见！|「好。」|是吗？| 是",
        "¿Qué?| ¡Nada!| «Bien.»| Fin",
        "「はい。」|と言った。|「そう。」",
        "好。。a",
        "No ending at all",
        "  Leading.| Trailing.  \n",
        "Line\nbreaks are space.\n| Next".replace(".\n| ", ".|\n "),
        "version 1.2. next",
        "",
    ],
)
def test_rule(marked):
    assert "|".join(split(marked.replace("|", ""))) == marked


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost(seed):
    random = np.random.default_rng(seed)
    parts = [".", "!", " ", "\n", "Mr", "A", "b", "é", "。", '"', "(", ")", "\u3000", "\0", "…", "3", "U.S."]
    text = "".join(random.choice(parts, 2000))
    assert "".join(split(text)) == text and all(split(text))
    assert "".join(split_lines(text)) == text


ABBREVIATIONS = frozenset(
    """
adm al alt approx apr assn assoc asst aug ave bldg blvd brig bros bzw ca capt cf cmdr co col comdr corp cpl
dec dept dist div dr ed eds eg esp esq est etc evtl exec feb fig figs fr fri ft gen ggf gov hon hr hrsg ie
inc inkl inst jan jr jul jun lt ltd maj mar max messrs mgr min mio misc mlle mm mme mon mr mrd mrs ms mt mts
natl no nos nov nr oct op pp prof pt pvt rd rep rev rt sat sen sens sep sept sgt sgts sog sr st sta ste supt
tel thu tue univ usw vgl viz vol vols vs wed zb
""".split()
)
CONTINUING = "January February March April May June July August September October November December I".split()
OPENING = "\"'“‘«([¿¡「『（"
MARK = re.compile(r"""[.!?…。！？]++(["'”’»」』）)\]]*+)(\s*+)(?=[^\sa-z,;:])""")


def by_expressions(text):
    """The same rule, written with regular expressions."""
    sentences, begin = [], 0
    for match in MARK.finditer(text):
        stop, following = match.span()
        closing, end = match.span(1)
        if end == following and text[closing - 1] not in "。！？":
            continue
        following += text[following] in OPENING
        if text[following : following + 1].islower():
            continue
        if end - stop == 1 and text[stop] == "." and abbreviated(text[begin:stop], text[following:]):
            continue
        sentences.append(text[begin:end])
        begin = end
    return [*sentences, text[begin:]] if begin < len(text) else sentences


def abbreviated(before, after):
    if before[-7:].isalpha() and len(before) > 6 or before[-1:].isspace():
        return False
    word = "".join(before[-16:].split()[-1:]).lstrip(OPENING)
    if len(word) == 1:
        return word.isalpha() and word != "I"
    if "." in word:
        return re.match(r"\w*", after).group() in CONTINUING
    return word.lower() in ABBREVIATIONS


@pytest.mark.parametrize("wide", ["", "\u2014", "😀"], ids=["one byte", "two bytes", "four bytes"])
@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_the_rule_in_expressions(seed, wide):
    """On text of all three widths that Python keeps strings in."""
    random = np.random.default_rng(seed)
    parts = [
        *". . . . ! ? , ; : \" ' ( ) [ ] 3 I a Z é É ª _ \0 \n \t \x1c \x85 \xa0".split(" "),
        " ",
        " ",
        " ",
        " ",
    ]
    parts += [
        "Mr",
        "dr",
        "U.S",
        "a.m",
        "March",
        "Mayor",
        "May",
        "Messrs",
        "etc",
        "J",
        "approximately",
        "...",
        "Longworded.word",
    ]
    parts += (
        ["\u3000", "。", "！", "”", "«", "「", "」", "…", "ß", "Ж", "ж", "ǅ", "\u0301", "中"] if wide else []
    )
    text = "".join(random.choice(parts, 3000)) + wide
    assert split(text) == by_expressions(text)


def test_every_abbreviation_is_known():
    for word in ABBREVIATIONS:
        for spelled in (word, word.capitalize(), word.upper(), f"({word}"):
            assert len(split(f"So {spelled}. Next one.")) == 1, spelled
    for word in ("adn", "a1", "vz", "zc", "approxi"):
        assert len(split(f"So {word}. Next one.")) == 2, word


def test_what_is_no_text():
    with pytest.raises(TypeError):
        split(b"One. Two.")


def test_lines():
    assert split_lines("a\nb\n\nc\n") == ["a", "\nb", "\n\nc\n"]
    assert split_lines("\na") == ["\na"] and split_lines("") == [""]


def test_long_texts_take_linear_time():
    for piece in (". ", '."', "A. ", "word ", ".\n", "Mr. "):
        assert "".join(split(piece * 50_000)) == piece * 50_000
