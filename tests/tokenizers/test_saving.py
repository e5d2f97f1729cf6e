import json
import pathlib
import shutil

import plmcore as plm
from plmcore.language_model import LanguageModel

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "models" / "bert"


def test_files_of_each_kind(trained, tmp_path):
    files = {
        ("wordpiece", "bert"): {"tokenizer.json", "vocab.txt"},
        ("bpe", "openai-gpt"): {"tokenizer.json", "vocab.json", "merges.txt"},
        ("byte-bpe", "roberta"): {"tokenizer.json", "vocab.json", "merges.txt"},
        ("unigram", "t5"): {"spiece.model"},
        ("unigram", "xlm-roberta"): {"sentencepiece.bpe.model"},
        ("characters", None): {"tokenizer.json"},
        ("words", None): {"tokenizer.json"},
    }
    for (kind, family), names in files.items():
        folder = tmp_path / kind / (family or "own")
        tokenizer = trained(kind, family)
        tokenizer.save(folder)
        assert {f.name for f in folder.iterdir()} == names | {"tokenizer_config.json"}
        (folder / "tokenizer_config.json").unlink()
        if "vocab.json" in names or "vocab.txt" in names:  # the older files alone do as well
            (folder / "tokenizer.json").unlink()
            older = plm.load_tokenizer(folder, family=family)
            assert (
                older("The list, 東京").input_ids.tolist() == tokenizer("The list, 東京").input_ids.tolist()
            )


def test_settings_come_back(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n")
    tokenizer = plm.load_tokenizer(tmp_path, do_lower_case=False, model_max_length=7, padding_side="left")
    tokenizer.save(tmp_path / "copy")
    values = json.loads((tmp_path / "copy" / "tokenizer_config.json").read_text())
    assert (
        values["tokenizer_class"] == "BertTokenizer"
        and values["do_lower_case"] is False
        and "mask_token" not in values
    )
    other = plm.load_tokenizer(tmp_path / "copy")
    assert (other.max_length, other.padding_side, other.fingerprint) == (7, "left", tokenizer.fingerprint)


def test_models_are_saved_with_their_tokenizer(trained, tmp_path):
    made = trained("wordpiece", "bert")
    model = LanguageModel(plm.load(GOLDEN).model, made)
    model.save(tmp_path / "new")
    assert plm.load(tmp_path / "new").tokenizer.fingerprint == made.fingerprint
    folder = pathlib.Path(shutil.copytree(tmp_path / "new", tmp_path / "known"))
    lm = plm.load(folder)
    lm.tokenizer.add_tokens(["<new>"])
    lm.save(tmp_path / "changed")
    assert plm.load(tmp_path / "changed").tokenizer.id_of("<new>") == made.vocab_size
