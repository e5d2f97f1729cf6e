import json

import numpy as np
import plmcore as plm
import pytest

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat dog ##s".split()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY))
    return tmp_path


def test_one_text_and_several(folder):
    tokenizer = plm.load_tokenizer(folder)
    assert tokenizer("The cats sat!").input_ids.tolist() == [2, 5, 6, 9, 7, 1, 3] and tokenizer.vocab_size == 10
    batch = tokenizer(["the cat", "dog"], pair=["sat", "sat"])
    assert batch.input_ids.tolist() == [[2, 5, 6, 3, 7, 3], [2, 8, 3, 7, 3, 0]]
    assert batch.attention_mask.tolist() == [[1] * 6, [1] * 5 + [0]]
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]]
    assert set(batch) == {"input_ids", "attention_mask", "token_type_ids"} and len(batch) == 3
    assert batch.offsets.shape == (2, 6, 2) and batch.offsets[0, 1].tolist() == [0, 3]
    assert batch.input_ids.dtype == np.int64 and tokenizer([]).input_ids.shape == (0, 0)
    assert tokenizer.decode([2, 5, 6, 9, 3]) == "the cats"
    assert tokenizer("the", add_special_tokens=False).input_ids.tolist() == [5]


def test_limits(folder):
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 4, "do_lower_case": False}))
    tokenizer = plm.load_tokenizer(folder)
    assert tokenizer("the cat sat").input_ids.tolist() == [2, 5, 6, 3]
    assert tokenizer("the cat sat", max_length=3).input_ids.tolist() == [2, 5, 3]
    assert tokenizer("The").input_ids.tolist() == [2, 1, 3]  # not lowered


def test_tokenizer_json_comes_first(folder):
    plm.load_tokenizer(folder).save(folder)
    (folder / "vocab.txt").unlink()
    assert plm.load_tokenizer(folder)("the dogs").input_ids.tolist() == [2, 5, 8, 9, 3]


def test_errors(folder, tmp_path):
    tokenizer = plm.load_tokenizer(folder)
    with pytest.raises(TypeError, match="takes a str or a list of them, got .*int"):
        tokenizer([1])
    with pytest.raises(ValueError, match="2 texts need 2 second texts, got 1"):
        tokenizer(["a", "b"], ["c"])
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(plm.FormatError, match="tokenizer.json' cannot be read"):
        plm.load_tokenizer(folder)
    with pytest.raises(FileNotFoundError, match="has no tokenizer.json and no vocab.txt"):
        plm.load_tokenizer(tmp_path / "nothing")
