import gzip
import random

import plmcore as plm
import pytest
from plmcore.tokenizers import passages


def test_passages_are_the_text(tmp_path):
    r = random.Random(1)
    words = ["a", "bc", "東京", "😀", "\n", " ", "x" * 50, "\r\n", "\u2028"]
    for size in (10, 64, 5000):
        text = "".join(r.choice(words) for _ in range(3000))
        (tmp_path / "f").write_bytes(text.encode())
        parts = list(passages.passages([tmp_path / "f"], size=size))
        assert "".join(parts) == text and all(0 < len(p) <= size for p in parts)
    cut = [p for p in parts[:-1] if not p.endswith("\n")]
    assert not cut or all(" " not in p for p in cut)


def test_characters_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(passages, "BLOCK", 7)
    (tmp_path / "f").write_bytes(("é東😀" * 50).encode())
    told = []
    assert "".join(passages.passages([tmp_path / "f"], told=told.append)) == "é東😀" * 50
    assert told[-1] == 450
    (tmp_path / "f").write_bytes(("é東😀" * 50).encode() + b"\xe6\x9d")
    with pytest.raises(
        plm.FormatError, match=r"line 1, byte 450: 0xe6 is not UTF-8 \(unexpected end of data\)"
    ):
        list(passages.passages([tmp_path / "f"]))


def test_packed_files(tmp_path):
    text = "A line.\n" * 5000
    (tmp_path / "plain").write_text(text)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(text.encode()))
    told = []
    assert (
        "".join(passages.passages([tmp_path / "plain", tmp_path / "packed.gz"], told=told.append)) == 2 * text
    )
    assert told[-1] == sum(f.stat().st_size for f in tmp_path.iterdir()) and told == sorted(told)
