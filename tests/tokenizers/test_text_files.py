import random

import plmcore as plm
import pytest
from plmcore.tokenizers import text_files


def test_passages_are_the_text(tmp_path):
    r = random.Random(1)
    words = ["a", "bc", "東京", "😀", "\n", " ", "x" * 50, "\r\n", "\u2028"]
    for size in (10, 64, 5000):
        text = "".join(r.choice(words) for _ in range(3000))
        (tmp_path / "f").write_bytes(text.encode())
        parts = list(text_files.passages([tmp_path / "f"], size=size))
        assert "".join(parts) == text and all(0 < len(p) <= size for p in parts)
    cut = [p for p in parts[:-1] if not p.endswith("\n")]
    assert not cut or all(" " not in p for p in cut)


def test_characters_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK", 7)
    (tmp_path / "f").write_bytes(("é東😀" * 50).encode())
    told = []
    assert "".join(text_files.passages([tmp_path / "f"], told=told.append)) == "é東😀" * 50
    assert told[-1] == 450
    (tmp_path / "f").write_bytes(("é東😀" * 50).encode() + b"\xe6\x9d")
    with pytest.raises(plm.FormatError, match=r"byte 450 \(0xe6\)"):
        list(text_files.passages([tmp_path / "f"]))


def test_files_of_folders(tmp_path):
    for name in ("b.txt", "a/c.txt", ".hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [f.name for f in text_files.files_of(tmp_path)] == ["c.txt", "b.txt"]
    assert text_files.files_of([tmp_path / "b.txt", str(tmp_path / "a")]) == [
        tmp_path / "b.txt",
        tmp_path / "a" / "c.txt",
    ]
