import json

import numpy as np
import pytest
from plmcore.language_model import pooling
from plmcore.language_model.pooling import MODES, Pooling

X = np.array([[[1, 2], [3, 5], [100, 100]], [[2, -1], [4, 0], [6, 7]]], np.float32)
MASK = np.array([[1, 1, 0], [1, 1, 1]])


@pytest.mark.parametrize(
    "mode, expected",
    [
        ("cls", [[1, 2], [2, -1]]),
        ("lasttoken", [[3, 5], [6, 7]]),
        ("max", [[3, 5], [6, 7]]),
        ("mean", [[2, 3.5], [4, 2]]),
        ("mean_sqrt_len_tokens", [[2 * 2**0.5, 3.5 * 2**0.5], [4 * 3**0.5, 2 * 3**0.5]]),
        ("weightedmean", [[7 / 3, 4], [28 / 6, 20 / 6]]),
    ],
)
def test_modes(mode, expected):
    np.testing.assert_allclose(Pooling((mode,))(X, MASK), expected, rtol=1e-6)
    unit = np.array(expected) / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(Pooling((mode,), normalise=True)(X, MASK), unit, rtol=1e-6)


def test_modes_side_by_side():
    assert Pooling(("cls", "max"))(X, MASK).tolist() == [[1, 2, 3, 5], [2, -1, 6, 7]] and len(MODES) == 6


def write(folder, config, *kinds):
    (folder / "modules.json").write_text(
        json.dumps([{"type": f"a.b.{k}", "path": f"{i}_{k}"} for i, k in enumerate(kinds)])
    )
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))


def test_files(tmp_path):
    assert pooling.read(None) == pooling.read(tmp_path) == Pooling()
    write(
        tmp_path,
        {"pooling_mode_max_tokens": True, "pooling_mode_cls_token": True},
        "Transformer",
        "Pooling",
        "Normalize",
    )
    assert pooling.read(tmp_path) == Pooling(("cls", "max"), True)
    write(tmp_path, {"pooling_mode": "lasttoken"}, "Transformer", "Pooling")
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 77}')
    assert pooling.read(tmp_path) == Pooling(("lasttoken",), False, 77)


def test_what_is_not_known(tmp_path):
    write(tmp_path, {}, "Transformer", "Pooling")
    with pytest.raises(ValueError, match="names no mode that is known"):
        pooling.read(tmp_path)
    write(tmp_path, {"pooling_mode": "mean"}, "Transformer", "Pooling", "LSTM")
    with pytest.raises(ValueError, match="the module 'LSTM' is not one of"):
        pooling.read(tmp_path)
