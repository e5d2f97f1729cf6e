import math
import tomllib

import numpy as np
import plmcore as plm
import pytest
from plmcore.train import settings

DEFAULTS = {
    "optim": {"lr": 1e-3, "betas": [0.9, 0.99], "clip_norm": None},
    "run": {"seed": 0, "note": "", "fast": False},
}


def set_one(text):
    section, key, value = settings.parse(text)
    return settings.merged(DEFAULTS, {section: {key: value}})[section][key]


@pytest.mark.parametrize("text, value", [
    ("optim.lr=3e-4", 3e-4), ("optim.lr=1", 1.0), ("optim.betas=[0.8, 0.9]", [0.8, 0.9]), ("run.seed = 7", 7),
    ("run.note=a b", "a b"),
    ('run.note="12"', "12"), ("run.fast=true", True), ("optim.clip_norm=0.5", 0.5),
    ("optim.clip_norm=none", None), ("run.note=x=y", "x=y"),
    ("run.note= translate: ", "translate: "),
])  # fmt: skip
def test_set(text, value):
    assert set_one(text) == value and type(set_one(text)) is type(value)


@pytest.mark.parametrize("text, message", [
    ("optim.lrr=1", r"no setting optim\.lrr; did you mean optim\.lr\?"),
    ("optm.lr=1", r"no setting optm\.lr; did you mean optim\.lr\?"),
    ("run.sed=1", r"did you mean run\.seed\?"),
    ("lr=1", r"no setting lr; did you mean optim\.lr\?"),
    ("learning_rate=1", r"no setting learning_rate; did you mean optim\.lr\?"),
    (".lr=1", r"reads section\.key=value"),
    ("optim.lr", r"reads section\.key=value"),
    ("run.seed=1.5", r"run\.seed must be a whole number, got 1\.5"),
    ("run.fast=1", r"run\.fast must be true or false, got 1"),
    ("run.seed=true", r"must be a whole number, got True"),
    ("optim.lr=fast", r"optim\.lr must be a number, got 'fast'"),
    ("optim.betas=0.9", r"must be a list, got 0\.9"),
    ("optim.lr=none", r"optim\.lr must be a number, got none"),
    ("run.note=none", r"run\.note must be a text, got none"),
])  # fmt: skip
def test_errors(text, message):
    with pytest.raises(settings.SettingError, match=message):
        set_one(text)


def test_kinds_of_settings_without_a_default():
    kinds = {"run.every": "int | None", "run.rate": "float", "run.order": "Sequence[int]"}
    fit = lambda key, value: settings.merged({"run": {key: None}}, {"run": {key: value}}, kinds=kinds)["run"][
        key
    ]
    assert (
        fit("every", 3) == 3
        and fit("every", None) is None
        and fit("rate", 1) == 1
        and fit("order", [1, 2]) == [1, 2]
    )
    for key, value, message in (
        ("every", 0.5, "a whole number"),
        ("every", True, "a whole number"),
        ("rate", "x", "a number"),
        ("order", "x", "a list, each a whole number"),
    ):
        with pytest.raises(settings.SettingError, match=rf"run\.{key} must be {message}, got {value!r}"):
            fit(key, value)


def test_none_that_is_a_text():
    assert settings.merged({"task": {"scheme": "none"}}, {"task": {"scheme": None}}) == {
        "task": {"scheme": "none"}
    }


def test_merging_leaves_the_defaults():
    changed = settings.merged(DEFAULTS, {"optim": {"betas": [1, 2]}}, {"optim": {"lr": 5}})
    changed["optim"]["betas"].append(3)
    assert DEFAULTS["optim"]["betas"] == [0.9, 0.99] and changed["optim"]["lr"] == 5.0


UNICODE = np.array([*range(0xD800), *range(0xE000, 0xE100), 0x1F600, 0x10FFFF])


def drawn(rng, depth=0):
    """A random value that TOML can hold; texts are of all planes of Unicode."""
    texts = lambda: "".join(map(chr, rng.choice(UNICODE, rng.integers(0, 9))))
    kinds = [
        lambda: bool(rng.integers(2)),
        lambda: int(rng.integers(-(2**63), 2**63 - 1)),
        texts,
        lambda: float(np.frombuffer(rng.bytes(8))[0]),
        lambda: [int(i) for i in rng.integers(0, 9, rng.integers(0, 4))],
        lambda: {texts() or "k": drawn(rng, depth + 1) for _ in range(rng.integers(0, 3))},
    ]
    return kinds[rng.integers(len(kinds) - (depth > 1))]()


def ordered(value):
    """Tables by name: TOML has those within others at the end."""
    return {k: ordered(value[k]) for k in sorted(value)} if isinstance(value, dict) else value


def test_toml_reads_back():
    rng = np.random.default_rng(0)
    for _ in range(500):
        table = {f"{i} {drawn(rng, 2)}": drawn(rng) for i in range(4)}
        found = tomllib.loads(settings.dumps({"a": table}))["a"]
        assert repr(ordered(found)) == repr(ordered(table))  # NaN is not equal to itself


def test_none_and_infinity():
    text = settings.dumps({"a": {"x": None, "y": math.inf, "z": -math.inf}})
    assert tomllib.loads(text) == {"a": {"y": math.inf, "z": -math.inf}}
    with pytest.raises(TypeError, match="config.toml cannot hold it: .*set"):
        settings.dumps({"a": {"x": {1}}})


def test_none_in_place_of_a_default_comes_back():
    changed = settings.merged(DEFAULTS, {"optim": {"betas": None}})
    text = settings.dumps(changed, DEFAULTS)
    assert settings.merged(DEFAULTS, tomllib.loads(text)) == changed


def test_read(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("[a]\nx = 1\n")
    assert settings.read(path) == {"a": {"x": 1}}
    for text, message in (
        ("x = ", "Invalid"),
        ("x = 1", "x must be a table$"),
        ("learning_rate = 1", r"learning_rate must be a table; did you mean \[optim\] lr\?"),
    ):
        path.write_text(text)
        with pytest.raises(plm.FormatError, match=message):
            settings.read(path)


def test_differences():
    other = settings.merged(DEFAULTS, {"run": {"seed": 3}, "optim": {"clip_norm": 1.0}})
    assert settings.differences(DEFAULTS, DEFAULTS) == []
    assert settings.differences(DEFAULTS, other) == ["optim.clip_norm", "run.seed"]


def test_an_option_and_a_setting_that_disagree():
    given = {"optim": {"lr": 1e-4}, "data": {"batch": None}}
    with pytest.raises(
        settings.SettingError, match=r"optim\.lr is given twice: 0\.0001 by itself, and 0\.0003 among"
    ):
        settings.layers(given, None, ["optim.lr=3e-4"])
    assert settings.layers(given, None, ["optim.lr=1e-4", "data.batch=3"])[1] == {"optim": {"lr": 1e-4}}
