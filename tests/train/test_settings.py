import math
import tomllib

import plmcore as plm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plmcore.train import settings

DEFAULTS = {"optim": {"lr": 1e-3, "betas": [0.9, 0.99], "clip_norm": None}, "run": {"seed": 0, "note": "", "fast": False}}


def set_one(text):
    section, key, value = settings.parse(text)
    return settings.merged(DEFAULTS, {section: {key: value}})[section][key]


@pytest.mark.parametrize("text, value", [
    ("optim.lr=3e-4", 3e-4), ("optim.lr=1", 1.0), ("optim.betas=[0.8, 0.9]", [0.8, 0.9]), ("run.seed = 7", 7), ("run.note=a b", "a b"),
    ('run.note="12"', "12"), ("run.fast=true", True), ("optim.clip_norm=0.5", 0.5), ("optim.clip_norm=none", None), ("run.note=x=y", "x=y"),
])  # fmt: skip
def test_set(text, value):
    assert set_one(text) == value and type(set_one(text)) is type(value)


@pytest.mark.parametrize("text, message", [
    ("optim.lrr=1", r"no setting optim\.lrr; did you mean optim\.lr\?"),
    ("optm.lr=1", r"no table \[optm\]; did you mean optim\?"),
    ("run.sed=1", r"did you mean run\.seed\?"),
    ("lr=1", r"reads section\.key=value"),
    ("optim.lr", r"reads section\.key=value"),
    ("run.seed=1.5", r"run\.seed must be a whole number, got 1\.5"),
    ("run.fast=1", r"run\.fast must be true or false, got 1"),
    ("run.seed=true", r"must be a whole number, got True"),
    ("optim.lr=fast", r"optim\.lr must be a number, got 'fast'"),
    ("optim.betas=0.9", r"must be a list, got 0\.9"),
])  # fmt: skip
def test_errors(text, message):
    with pytest.raises(settings.SettingError, match=message):
        set_one(text)


def test_merging_leaves_the_defaults():
    changed = settings.merged(DEFAULTS, {"optim": {"betas": [1, 2]}}, {"optim": {"lr": 5}})
    changed["optim"]["betas"].append(3)
    assert DEFAULTS["optim"]["betas"] == [0.9, 0.99] and changed["optim"]["lr"] == 5.0


values = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(st.integers(0, 9)), st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.integers(0, 9)),
)  # fmt: skip
keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(keys, values))
def test_toml_reads_back(table):
    assert tomllib.loads(settings.dumps({"a": table})) == {"a": table}


def test_none_and_infinity():
    text = settings.dumps({"a": {"x": None, "y": math.inf, "z": -math.inf}})
    assert tomllib.loads(text) == {"a": {"y": math.inf, "z": -math.inf}}
    with pytest.raises(TypeError, match="cannot hold a set"):
        settings.dumps({"a": {"x": {1}}})


def test_read(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("[a]\nx = 1\n")
    assert settings.read(path) == {"a": {"x": 1}}
    for text, message in (("x = ", "Invalid"), ("x = 1", "x must be a table")):
        path.write_text(text)
        with pytest.raises(plm.FormatError, match=message):
            settings.read(path)


def test_differences():
    other = settings.merged(DEFAULTS, {"run": {"seed": 3}, "optim": {"clip_norm": 1.0}})
    assert settings.differences(DEFAULTS, DEFAULTS) == []
    assert settings.differences(DEFAULTS, other) == ["optim.clip_norm", "run.seed"]
