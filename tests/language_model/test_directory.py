"""plm.load and save on directories that are whole, strange or broken."""

import json
import pathlib
import shutil

import numpy as np
import plmcore as plm
import pytest
from plmcore import safetensors
from plmcore.language_model import directory

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "models" / "bert"  # a BertForPreTraining
IDS = np.array([[5, 9, 2, 14, 3]])


@pytest.fixture
def folder(tmp_path):
    return pathlib.Path(shutil.copytree(GOLDEN, tmp_path / "model"))


def edit(folder, change=None, **config):
    """Rewrites the directory with other tensors and config keys."""
    tensors = {n: t.numpy().copy() for n, t in safetensors.read(folder)[0].items()}
    if change:
        change(tensors)
    safetensors.write(folder, tensors, {"format": "pt"})
    values = {**json.loads((folder / "config.json").read_text()), **config}
    (folder / "config.json").write_text(json.dumps({k: v for k, v in values.items() if v != "none"}))


def test_round_trip(folder, tmp_path):
    edit(folder, novelty=[1, 2])
    lm = plm.load(folder)
    lm.save(tmp_path / "again")
    a, b = safetensors.read(folder)[0], safetensors.read(tmp_path / "again")[0]
    assert set(a) == set(b) and all(np.array_equal(a[n].numpy(), b[n].numpy()) for n in a)
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert config["novelty"] == [1, 2] and config["architectures"] == ["BertForPreTraining"]
    assert config["dtype"] == "float32" and config["model_type"] == "bert"
    assert plm.load(tmp_path / "again").config == lm.config


def test_weights_are_mapped_and_the_file_stays(folder):
    before = (folder / "model.safetensors").read_bytes()
    lm = plm.load(folder)
    lm.train()
    opt = plm.optim.SGD(lm.parameters(), lr=0.1)
    lm(input_ids=IDS, labels=IDS, next_sentence_label=[1]).loss.backward()
    opt.step()
    assert (folder / "model.safetensors").read_bytes() == before
    lm.save(folder)  # over the file that is mapped
    assert np.isfinite(plm.load(folder)(input_ids=IDS).prediction_logits.numpy()).all()
    assert (folder / "model.safetensors").read_bytes() != before


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_the_dtype_of_the_file_is_kept(folder, tmp_path, dtype):
    plm.from_config(folder, "base", dtype=dtype).save(tmp_path / "a")
    lm = plm.load(tmp_path / "a")
    assert {p.dtype for p in lm.parameters()} == {dtype} and lm.config.dtype == dtype
    assert {p.dtype for p in plm.load(tmp_path / "a", dtype="float32").parameters()} == {"float32"}
    lm.save(tmp_path / "b")
    assert {t.dtype for t in safetensors.read(tmp_path / "b")[0].values()} == {dtype}


def test_shards(folder, tmp_path):
    lm = plm.load(folder)
    lm.save(tmp_path / "s", max_shard_bytes=5000)
    assert len(list((tmp_path / "s").glob("model-*.safetensors"))) > 2
    a, b = (plm.load(f)(input_ids=IDS).prediction_logits.numpy() for f in (folder, tmp_path / "s"))
    assert np.array_equal(a, b)


def test_another_head_takes_the_body_and_is_fresh(folder):
    with pytest.warns(
        UserWarning, match="has no weights for classifier.weight, classifier.bias: they are drawn at random"
    ):
        lm = plm.load(folder, head="sequence-classification", num_labels=5)
    assert lm(input_ids=IDS).logits.shape == (1, 5) and not lm.report.missing and not lm.report.unexpected
    assert "cls.predictions.bias" in lm.report.unused
    base = plm.load(folder, head="base")
    assert np.array_equal(base.model.pooler.weight.numpy(), lm.model.body.pooler.weight.numpy())
    assert base.report.problems() == "" and plm.load(folder, "masked-lm")(input_ids=IDS).logits.shape == (
        1,
        5,
        16,
    )


def test_tensors_of_other_heads_are_left_aside(folder):
    edit(folder, architectures=["BertForMaskedLM"])  # as the published bert-base-uncased
    lm = plm.load(folder)
    assert lm.head == "masked-lm" and set(lm.report.unused) == {
        "bert.pooler.dense.weight",
        "bert.pooler.dense.bias",
        "cls.seq_relationship.weight",
        "cls.seq_relationship.bias",
    }


def test_without_architectures_it_is_the_base(folder):
    edit(folder, architectures="none")
    assert plm.load(folder).head == "base"


def missing(tensors):
    del tensors["bert.encoder.layer.1.output.dense.bias"]


def unexpected(tensors):
    tensors["bert.encoder.layer.1.adapter.weight"] = np.zeros((2, 2), np.float32)


def misshaped(tensors):
    tensors["bert.pooler.dense.weight"] = np.zeros((12, 11), np.float32)


def whole_numbers(tensors):
    tensors["bert.pooler.dense.weight"] = np.ones((12, 12), np.int64)


def codes(tensors):
    tensors["bert.pooler.dense.bias"] = np.ones(12, np.int8)


@pytest.mark.parametrize(
    "change, message",
    [
        (missing, "missing: bert.encoder.layer.1.output.dense.bias. strict=False"),
        (unexpected, "unexpected: bert.encoder.layer.1.adapter.weight"),
        (misshaped, r"wrong shape: bert.pooler.dense.weight \[12, 11\], expected \[12, 12\]"),
        (whole_numbers, "not floating point: bert.pooler.dense.weight int64"),
        (codes, "not floating point: bert.pooler.dense.bias int8"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*drawn at random")
def test_strict(folder, change, message):
    edit(folder, change)
    with pytest.raises(plm.FormatError, match=f"do not fit bert with the head pretraining; {message}"):
        plm.load(folder)
    report = plm.load(folder, strict=False).report
    assert report.missing + report.unexpected + [
        m.partition(" ")[0] for m in report.misshaped + report.mistyped
    ] == [message.split(": ")[1].partition(" ")[0].removesuffix(".")]


@pytest.mark.parametrize(
    "text, error, message",
    [
        (None, FileNotFoundError, "has no config.json; is it a model directory"),
        ("{", plm.FormatError, "config.json' cannot be read: not valid JSON"),
        ("[1]", plm.FormatError, "it must hold one object, got a list"),
        ("[" * 100_000, plm.FormatError, "not valid JSON"),
        ('{"model_type": "bert", "hidden_size": [768]}', ValueError, "hidden_size must be a whole number"),
        ('{"hidden_size": 12}', ValueError, "must have a model_type"),
        ('{"model_type": "bert", "architectures": ["BertForFun"]}', ValueError, "'BertForFun' is not one of"),
    ],
)
def test_broken_configs(folder, text, error, message):
    (folder / "config.json").unlink()
    if text is not None:
        (folder / "config.json").write_text(text)
    with pytest.raises(error, match=message):
        plm.load(folder)


def test_no_directory(folder):
    with pytest.raises(
        FileNotFoundError, match="there is no directory 'bert-base-uncased'; nothing is downloaded"
    ):
        plm.load("bert-base-uncased")
    for file in ("config.json", "model.safetensors"):
        for call in (plm.load, plm.from_config):
            with pytest.raises(
                NotADirectoryError, match=f"{file}' is a file; name the model directory, here '{folder}'"
            ):
                call(folder / file)


@pytest.mark.parametrize(
    "dtype, message",
    [("float8", "must be one of float64, .* got 'float8'"), ("int8", "float dtype, got int8")],
)
def test_no_such_dtype(folder, dtype, message):
    for call in (plm.load, plm.from_config):
        with pytest.raises(plm.DTypeError, match=message):
            call(folder, dtype=dtype)


def test_no_weights(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="has no model.safetensors"):
        plm.load(folder)
    (folder / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="plmcore convert"):
        plm.load(folder)


def test_companions_are_copied(folder, tmp_path):
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("{}")
    directory.copy_companions(folder, tmp_path)
    assert (tmp_path / "vocab.txt").exists() and (tmp_path / "1_Pooling" / "config.json").read_text() == "{}"
