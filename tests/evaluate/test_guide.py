"""The Python of docs/evaluation.md runs."""

import pathlib
import re

import plmcore as plm
import pytest
from small_models import GPT2, MASKED, TEXT, sharp

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "evaluation.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="an installed copy has no docs")
def test_guide(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tokenizer = plm.tokenizers.train_tokenizer(texts=[TEXT], kind="byte-bpe", vocab_size=280, out="model-dir")
    sharp(dict(GPT2, n_positions=32), "causal-lm", tokenizer).save("model-dir")
    sharp(dict(MASKED["bert"], num_hidden_layers=5, num_attention_heads=3), "masked-lm", tokenizer).save("bert-dir")
    tokenizer.save("bert-dir")
    sharp(dict(MASKED["bert"], num_labels=2), "sequence-classification", tokenizer).save("classifier-dir")
    tokenizer.save("classifier-dir")
    pathlib.Path("test.tsv").write_text("the cat\tLABEL_1\nthe dog\tLABEL_0\n")
    pathlib.Path("test.txt").write_text(TEXT + "a question of the test set, as long as it may be")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    assert len(blocks) == 8 and pathlib.Path("attention.html").exists()
    assert names["found"].found.tolist() == [True, False]
    assert names["found"].clean.tolist() == [1] and "GLUE     89.5  without cola" in capsys.readouterr().out
