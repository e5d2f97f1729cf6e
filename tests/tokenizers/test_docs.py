"""The examples of docs/tokenizers.md run, one after the other."""

import pathlib
import re

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "tokenizers.md"


def test_examples(tmp_path, corpus, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "text.txt").write_text(
        "To be, or not to be, that is the question\n" + corpus.read_text(encoding="utf-8")[:30_000]
    )
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 4 and repr(names["tokenizer"]) == "Tokenizer(gpt2, byte-bpe, 400 tokens)"
    assert (
        names["batch"].input_ids.shape == (2, 8) and names["tokenizer"].decode(names["batch"].input_ids)[1] == "that is"
    )
    assert (
        len(names["rows"].input_ids) > 1 and names["rows"].input_ids.shape[1] == 32 and set(names["rows"].sample) == {0}
    )
    assert sorted(set(names["tagged"].word_ids.ravel().tolist())) == [0, 1, 2]
