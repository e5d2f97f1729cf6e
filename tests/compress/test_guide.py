"""The Python of docs/compression.md runs."""

import pathlib
import re

import plmcore as plm
import pytest
from small_models import GPT2, TEXT, sharp

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "compression.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="an installed copy has no docs")
def test_guide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tokenizer = plm.train_tokenizer(texts=[TEXT], kind="byte-bpe", vocab_size=280)
    sharp(dict(GPT2, n_positions=32), "causal-lm", tokenizer).save("gpt2-dir")
    pathlib.Path("held-out.txt").write_text(TEXT)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    assert len(blocks) == 2
    assert names["found"].bytes[1] < names["found"].bytes[0] / 2 and names["found"].perplexity is not None
    assert plm.load("gpt2-rounded").perplexity(TEXT) == pytest.approx(names["lm"].perplexity(TEXT), rel=0.01)
