"""One vector per text from those of its tokens, as the files of a sentence-transformers directory say."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plmcore._core import ArgumentError, FormatError
from plmcore.files.whole import read_json, read_json_value


def _mean(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return (x * mask[..., None]).sum(1) / np.maximum(mask.sum(1), 1)[:, None]


def _last(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    last = x.shape[1] - 1 - mask[:, ::-1].argmax(1)
    return x[np.arange(len(x)), last]


# x [B, T, C], mask float32 [B, T] -> [B, C]
MODES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "cls": lambda x, mask: x[np.arange(len(x)), mask.argmax(1)],
    "lasttoken": _last,
    "max": lambda x, mask: np.where(mask[..., None] > 0, x, -np.inf).max(1),
    "mean": _mean,
    "mean_sqrt_len_tokens": lambda x, mask: _mean(x, mask) * np.sqrt(np.maximum(mask.sum(1), 1))[:, None],
    "weightedmean": lambda x, mask: _mean(x, mask * np.arange(1, x.shape[1] + 1)),
}
# Keys of 1_Pooling/config.json; newer files say "pooling_mode": "mean".
KEYS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


@dataclass(frozen=True)
class Pooling:
    """Several modes are put side by side."""

    modes: tuple[str, ...] = ("mean",)
    normalise: bool = False
    max_length: int | None = None

    def __call__(self, states: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """states float32 [B, T, C], mask [B, T] -> [B, C * modes]"""
        mask = mask.astype(np.float32)
        pooled = np.concatenate([MODES[mode](states, mask) for mode in self.modes], 1)
        if self.normalise:
            pooled = pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)
        return pooled.astype(np.float32)


def read(folder: pathlib.Path | None) -> Pooling:
    """What modules.json and the files it names say; the mean over tokens where there is none."""
    if folder is None or not (folder / "modules.json").exists():
        return Pooling()
    modes: tuple[str, ...] = ("mean",)
    normalise, max_length = False, None
    listed = read_json_value(folder / "modules.json")
    if not isinstance(listed, list) or not all(isinstance(module, dict) for module in listed):
        raise FormatError(f"'{folder / 'modules.json'}' must be a list of objects")
    for module in listed:
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind == "Transformer":
            limits = folder / "sentence_bert_config.json"
            max_length = _whole(limits, read_json(limits).get("max_seq_length")) if limits.exists() else None
        elif kind == "Pooling":
            modes = _modes(read_json(folder / _inner(folder, module.get("path")) / "config.json"))
        elif kind == "Normalize":
            normalise = True
        else:
            raise ArgumentError(
                f"'{folder / 'modules.json'}': the module {kind!r} is not one of Transformer, Pooling, "
                f"Normalize"
            )
    return Pooling(modes, normalise, max_length)


def _modes(values: dict[str, Any]) -> tuple[str, ...]:
    named = values.get("pooling_mode")
    found = tuple(
        named.split("+")
        if isinstance(named, str)
        else (mode for mode, key in KEYS.items() if values.get(key))
    )
    if not found or any(mode not in MODES for mode in found):
        raise ArgumentError(
            f"the pooling config names no mode that is known: {values}; one of {', '.join(KEYS.values())}"
        )
    return found


def _inner(folder: pathlib.Path, name: object) -> str:
    if not isinstance(name, str) or pathlib.PurePath(name).name != name and name != "":
        raise FormatError(
            f"'{folder / 'modules.json'}': the path of a module must be a folder beside it, got {name!r}"
        )
    return name


def _whole(path: pathlib.Path, value: object) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise FormatError(f"'{path}': max_seq_length must be a whole number from 1, got {value!r}")
    return value
