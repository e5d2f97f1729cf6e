import math

import pytest
from plmcore.evaluate import translation

sacrebleu = pytest.importorskip("sacrebleu", reason="needs the extra eval")


def test_by_hand():
    # 13a splits the full stop off, which makes 7 tokens
    got = translation.bleu(["the cat sat on a mat."], ["the cat sat on the mat."])
    assert got["bleu"] == pytest.approx(100 * math.exp(sum(map(math.log, (6 / 7, 4 / 6, 2 / 5, 1 / 4))) / 4))
    assert (
        got["brevity_penalty"] == 1.0
        and "tok:13a" in got["bleu_signature"]
        and "nrefs:1" in got["bleu_signature"]
    )
    short = translation.bleu(["a b c d e f"], ["a b c d e f g h i"])
    assert short["bleu"] == pytest.approx(100 * math.exp(1 - 9 / 6))


def test_references_and_options():
    both = translation.bleu(["a b c d e", "f g h i j"], [["x y z", "a b c d e"], "f g h i j"])
    assert both["bleu"] == pytest.approx(100)
    assert translation.bleu(["A B C D E"], ["a b c d e"], lowercase=True)["bleu"] == pytest.approx(100)
    assert "tok:char" in translation.bleu(["ab"], ["ab"], tokenize="char")["bleu_signature"]
    with pytest.raises(ValueError, match="there is no tokenize 'words'; one of none, zh, 13a"):
        translation.bleu(["a"], ["a"], tokenize="words")
    with pytest.raises(ValueError, match="bleu: 1 predictions and 2 references"):
        translation.bleu(["a"], ["a", "b"])
