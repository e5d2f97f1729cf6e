"""A tokenizer as files."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any

from plmcore.files.whole import atomic_write, json_bytes
from plmcore.tokenizers.families import GENERIC
from plmcore.tokenizers.loading import VERY_LONG

if TYPE_CHECKING:
    from plmcore.tokenizers.tokenizer import Tokenizer

# Keys of tokenizer_config.json that say how text is read, and are kept as they came.
KEPT = (
    "add_prefix_space",
    "clean_up_tokenization_spaces",
    "do_lower_case",
    "extra_ids",
    "keep_accents",
    "legacy",
    "remove_space",
    "source_lang",
    "strip_accents",
    "target_lang",
    "tokenize_chinese_chars",
)


def save(tokenizer: Tokenizer, folder: str | os.PathLike[str]) -> None:
    folder = pathlib.Path(folder)
    for name, content in tokenizer.backend.files().items():
        with atomic_write(folder / name) as f:
            f.write(content)
    with atomic_write(folder / "tokenizer_config.json") as f:
        f.write(json_bytes(config(tokenizer), indent=2))


def config(tokenizer: Tokenizer) -> dict[str, Any]:
    """The keys of tokenizer_config.json."""
    family = tokenizer.family
    values: dict[str, Any] = {"tokenizer_class": family.class_name}
    values |= {f"{role}_token": token for role, token in tokenizer.roles.items()}
    values |= {key: value for key, value in tokenizer.settings.items() if key in KEPT}
    values |= {
        "model_max_length": tokenizer.max_length or 10 * VERY_LONG,
        "padding_side": tokenizer.padding_side,
    }
    if family.languages:
        values["src_lang"] = tokenizer.language
    if family.class_name == GENERIC:
        values["family"] = family.name  # for load_tokenizer; transformers needs only tokenizer.json
    added = getattr(tokenizer.backend, "added", None)
    if added is not None and (own := {t: i for t, i in added.ids.items() if i >= tokenizer.backend.size}):
        values["added_tokens_decoder"] = {
            str(i): {
                "content": t,
                "special": i in tokenizer.backend.special,
                "normalized": False,
                "lstrip": False,
                "rstrip": False,
                "single_word": False,
            }
            for t, i in own.items()
        }
    return values
