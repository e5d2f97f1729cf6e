"""What a model file says of its model, and the checksums of it."""

import json
import struct
import zlib

import every_family
import numpy as np
import plmcore as plm
import pytest
from plmcore import _core
from plmcore.program import export

VERBS = {"encode", "score", "decode", "classify", "tag", "answer", "choose"}


def header(path):
    raw = path.read_bytes()
    magic, number, crc, size = struct.unpack_from("<8sIIQ", raw)
    assert number == 2 and crc == zlib.crc32(raw[24 : 24 + size])
    return json.loads(raw[24 : 24 + size])


def rewritten(path, said):
    """The file with another header."""
    raw, text = path.read_bytes(), json.dumps(said).encode()
    (size,) = struct.unpack_from("<Q", raw, 16)
    data = raw[-(-(24 + size) // 64) * 64 :]
    start = raw[:8] + struct.pack("<IIQ", 2, zlib.crc32(text), len(text)) + text
    path.write_bytes(start + bytes(-len(start) % 64) + data)


@pytest.fixture
def gpt2(tmp_path):
    plm.export(every_family.model("gpt2", "causal-lm"), tmp_path / "gpt2.plm")
    return tmp_path / "gpt2.plm"


@pytest.mark.parametrize(("family", "head"), every_family.HEADS)
def test_every_family_and_head(family, head, tmp_path):
    lm = every_family.model(family, head)
    plm.export(lm, tmp_path / "model.plm")
    said, model = header(tmp_path / "model.plm"), _core.Model.load(str(tmp_path / "model.plm"))
    card = said["model"]
    assert (card["family"], card["head"], card["vocabulary"]) == (family, head, 30)
    assert card["main"] == export.forward_name(lm.model) == model.names[0] and card["main"] in VERBS
    assert ("step" in model.names) == (head in ("causal-lm", "double-heads", "seq2seq-lm") and makes_text(lm))
    labelled = ("sequence-classification", "token-classification", "next-sentence")
    assert ("labels" in card) == (head in labelled)
    model.verify()
    for tensor in said["tensors"]:
        assert tensor["crc32"] < 2**32


def makes_text(lm):
    return isinstance(lm.model, plm.models.generates.Generates)


def test_what_a_directory_says_is_in_the_file(tmp_path):
    labels = {"0": "bad", "1": "fair", "2": "good"}
    config = every_family.config("bert", id2label=labels, num_labels=3)
    plm.export(plm.from_config(config, "sequence-classification").eval(), tmp_path / "x.plm")
    card = header(tmp_path / "x.plm")["model"]
    assert card["labels"] == list(labels.values()) and card["problem"] == "single_label_classification"
    lm = plm.from_config(every_family.config("gpt2", eos_token_id=7), "causal-lm").eval()
    lm.save(tmp_path / "dir")
    said = {"num_beams": 4, "eos_token_id": [7, 8], "length_penalty": 2.0, "max_length": 9}
    (tmp_path / "dir" / "generation_config.json").write_text(json.dumps(said))
    plm.export(plm.load(tmp_path / "dir"), tmp_path / "x.plm")
    card = header(tmp_path / "x.plm")["model"]
    assert card["ids"]["eos"] == [7, 8] and card["generation"]["num_beams"] == 4
    assert card["generation"]["length_penalty"] == 2.0 and card["generation"]["max_length"] == 9


def test_a_damaged_header_is_found(gpt2):
    raw = bytearray(gpt2.read_bytes())
    raw[100] ^= 1
    gpt2.write_bytes(raw)
    with pytest.raises(plm.FormatError, match="its header is damaged: the checksum is another one"):
        _core.Model.load(str(gpt2))


def test_a_damaged_weight_is_found_by_verify(gpt2):
    raw = bytearray(gpt2.read_bytes())
    raw[-5] ^= 1
    gpt2.write_bytes(raw)
    model = _core.Model.load(str(gpt2))
    with pytest.raises(plm.FormatError, match="the tensor '.*' is damaged: its checksum is another one"):
        model.verify()


def test_a_higher_format_is_refused_in_one_sentence(gpt2):
    raw = bytearray(gpt2.read_bytes())
    raw[8:12] = struct.pack("<I", 3)
    gpt2.write_bytes(raw)
    with pytest.raises(plm.FormatError, match="it has format 3, this version .* reads up to 2; install"):
        _core.Model.load(str(gpt2))


def test_members_of_a_later_minor_version_are_skipped(gpt2):
    said = header(gpt2)
    said["model"]["mood"] = "bright"
    rewritten(gpt2, said)
    with pytest.raises(plm.FormatError, match=r"header.model: unknown member 'mood'"):
        _core.Model.load(str(gpt2))
    rewritten(gpt2, said | {"minor": 1})
    assert _core.Model.load(str(gpt2)).has("score")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"main": "sing"}, r"header.model: there is no program 'sing'"),
        ({"pooling": {"modes": ["median"]}}, r"pooling.modes\[0\]: there is no pooling 'median'"),
        ({"ids": {"eos": [-1]}}, r"header.model.ids.eos\[0\]: must be from 0"),
        ({"generation": {"top_p": "x"}}, r"header.model.generation.top_p: must be a number"),
        ({"text": {"kind": "wordpiece", "tokens": "t"}}, r"header.model.text.tokens: there is no tensor 't'"),
        ({"text": {"kind": "wordpiece", "single": [[1, 0, 0]]}}, r"single\[0\]\[0\]: must be from -1 to 0"),
    ],
)
def test_a_card_is_checked(gpt2, change, message):
    said = header(gpt2)
    said["model"] |= change
    rewritten(gpt2, said)
    with pytest.raises(plm.FormatError, match=message):
        _core.Model.load(str(gpt2))


def test_a_card_that_cannot_be_read_is_not_written(gpt2, tmp_path):
    program = plm.load_program(gpt2)
    with pytest.raises(plm.ArgumentError, match="unknown member 'mood'"):
        _core.Model.save(str(tmp_path / "x.plm"), [("main", program)], '{"mood": 1}')
    assert not (tmp_path / "x.plm").exists()


def test_tensors_of_the_card_keep_their_names(tmp_path):
    program = plm.trace(lambda x: x + plm.Tensor(np.ones(3, np.float32)), x=plm.spec("float32", 3))
    tokens, ends = plm.Tensor(np.frombuffer(b"ab", np.uint8)), plm.Tensor(np.array([1, 2]))
    card = {"text": {"kind": "wordpiece", "tokens": "text.tokens", "ends": "text.ends"}}
    given = [("text.tokens", tokens), ("text.ends", ends)]
    _core.Model.save(str(tmp_path / "x.plm"), [("main", program)], json.dumps(card), given)
    assert [t["name"] for t in header(tmp_path / "x.plm")["tensors"]][:2] == ["text.tokens", "text.ends"]
    _core.Model.load(str(tmp_path / "x.plm")).verify()
