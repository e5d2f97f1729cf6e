"""The published files of ELMo: options.json, and weights in hdf5 with the names of TensorFlow."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from plmcore._core import FormatError, Tensor
from plmcore.files.whole import read_json
from plmcore.formats import registry

OPTIONS = "options.json"
CELL = "RNN_{d}/RNN/MultiRNNCell/Cell{l}/LSTMCell/{part}"


def opened(source: pathlib.Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The arrays and the options of a folder with both, or of a file of weights beside its options."""
    weights = weights_in(source) if source.is_dir() else source
    if not weights.exists():
        raise FileNotFoundError(f"there is no '{weights}'")
    options = options_beside(weights)
    tensors, _ = registry.read_as("hdf5", weights)
    return tensors, read_json(options)


def weights_in(folder: pathlib.Path) -> pathlib.Path:
    found = sorted(p for p in folder.iterdir() if p.name.endswith(("weights.hdf5", "weights.h5")))
    if len(found) != 1:
        names = ", ".join(p.name for p in found) or "none"
        raise FileNotFoundError(
            f"'{folder}' must have one file that ends in weights.hdf5, it has {names}: name the file itself"
        )
    return found[0]


def options_beside(weights: pathlib.Path) -> pathlib.Path:
    """options.json, or that of the same beginning: x_weights.hdf5 and x_options.json."""
    start = weights.name.partition("weights.")[0]
    for name in (f"{start}{OPTIONS}", OPTIONS):
        if (weights.parent / name).is_file():
            return weights.parent / name
    raise FileNotFoundError(f"'{weights}' needs the {OPTIONS} that it was published with in the same folder")


def converted(
    tensors: Mapping[str, Tensor], options: Mapping[str, Any], ids: Mapping[str, int]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Keys of the config, and tensors by our names.

    TensorFlow has the gates in the order i, g, f, o in one matrix [inputs + projection, 4 dim] and adds 1 to
    what the forget gate gets; here they are i, f, g, o, and the 1 is in the bias.
    """
    config = config_of(options)
    L, H, P, d = (config[k] for k in ("n_layers", "dim", "projection_dim", "char_embed_dim"))
    C = sum(n for _, n in config["filters"])
    config["char_projection"] = "CNN_proj/W_proj" in tensors or C != P
    used: set[str] = set()

    def take(name: str, *shape: int) -> np.ndarray:
        if name not in tensors:
            raise FormatError(f"it has no array {name}")
        found = tensors[name]
        if tuple(found.shape) != shape or "float" not in found.dtype:
            raise FormatError(
                f"{name} must be numbers {list(shape)} by its options, got {found.dtype} {list(found.shape)}"
            )
        used.add(name)
        values = np.asarray(found.numpy(), np.float32)
        if not np.isfinite(values).all():
            raise FormatError(f"{name} has numbers that are not finite")
        return values

    characters = take("char_embed", config["n_characters"] - 1, d)
    ours = {"words.characters.weight": np.concatenate([np.zeros((1, d), np.float32), characters])}
    for i, (width, n) in enumerate(config["filters"]):
        kernel = take(f"CNN/W_cnn_{i}", 1, width, d, n)
        ours |= {
            f"words.convs.{i}.weight": kernel[0].transpose(2, 1, 0),
            f"words.convs.{i}.bias": take(f"CNN/b_cnn_{i}", n),
        }
    for i in range(config["n_highway"]):
        for part in ("transform", "carry"):
            ours |= {
                f"words.highways.{i}.{part}.weight": take(f"CNN_high_{i}/W_{part}", C, C).T,
                f"words.highways.{i}.{part}.bias": take(f"CNN_high_{i}/b_{part}", C),
            }
    if config["char_projection"]:
        ours |= {
            "words.projection.weight": take("CNN_proj/W_proj", C, P).T,
            "words.projection.bias": take("CNN_proj/b_proj", P),
        }
    for number, direction in enumerate(("forward", "backward")):
        for layer in range(L):

            def cell(part: str, *shape: int) -> np.ndarray:
                return take(CELL.format(d=number, l=layer, part=part), *shape)

            start = f"{direction}.layers.{layer}."
            both, bias = gates(cell("W_0", 2 * P, 4 * H).T), gates(cell("B", 4 * H))
            bias[H : 2 * H] += 1.0
            ours |= {
                f"{start}weight_ih_l0": both[:, :P],
                f"{start}weight_hh_l0": both[:, P:],
                f"{start}bias_hh_l0": bias,
                f"{start}weight_hr_l0": cell("W_P_0", H, P).T,
            }
    if rest := sorted(set(tensors) - used):
        raise FormatError(f"its options have no place for {rest[0]} {list(tensors[rest[0]].shape)}")
    return config, {name: Tensor(np.ascontiguousarray(array)) for name, array in ours.items()}


def gates(x: np.ndarray) -> np.ndarray:
    """i, g, f, o as i, f, g, o."""
    i, g, f, o = np.split(x, 4)
    return np.concatenate([i, f, g, o])


def config_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of the config."""

    def read(path: str, kind: type, usual: Any = ...) -> Any:
        value: Any = options
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is None and usual is not ...:
            return usual
        if type(value) is int and kind is float:
            value = float(value)
        if type(value) is not kind:
            raise FormatError(f"{OPTIONS}: {path} must be {_SPOKEN[kind]}, got {value!r:.60}")
        return value

    filters = read("char_cnn.filters", list)
    whole = [
        isinstance(f, list) and len(f) == 2 and all(type(n) is int and n > 0 for n in f) for f in filters
    ]
    if not filters or not all(whole):
        raise FormatError(
            f"{OPTIONS}: char_cnn.filters must be pairs of a width and a number, got {filters!r:.60}"
        )
    return dict(
        n_layers=read("lstm.n_layers", int),
        dim=read("lstm.dim", int),
        projection_dim=read("lstm.projection_dim", int),
        cell_clip=read("lstm.cell_clip", float, None),
        proj_clip=read("lstm.proj_clip", float, None),
        use_skip_connections=read("lstm.use_skip_connections", bool, False),
        char_embed_dim=read("char_cnn.embedding.dim", int),
        filters=[list(f) for f in filters],
        n_highway=read("char_cnn.n_highway", int, 0),
        n_characters=read("char_cnn.n_characters", int, 262),
        max_characters_per_token=read("char_cnn.max_characters_per_token", int, 50),
        activation=read("char_cnn.activation", str, "relu"),
    )


_SPOKEN = {int: "a whole number", float: "a number", bool: "true or false", list: "a list", str: "a text"}
