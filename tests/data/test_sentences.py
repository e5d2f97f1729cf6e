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
        "the end . The next ! a small one . | Last".replace(" . The", " .| The").replace(" . | Last", " .| Last"),
        "Wait... what?| No... Yes.".replace("No... Yes.", "No...| Yes."),
        "See fig. 3, p. 5, vol. 2.| Next.",
        "你好。|再见！|「好。」|是吗？| 是",
        "¿Qué?| ¡Nada!| «Bien.»| Fin",
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


def test_lines():
    assert split_lines("a\nb\n\nc\n") == ["a", "\nb", "\n\nc\n"]
    assert split_lines("\na") == ["\na"] and split_lines("") == [""]


def test_long_texts_take_linear_time():
    for piece in (". ", '."', "A. ", "word ", ".\n", "Mr. "):
        assert "".join(split(piece * 50_000)) == piece * 50_000
