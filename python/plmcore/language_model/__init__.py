"""A model with its tokenizer, and the directory it lives in."""

from plmcore.language_model.model import (
    FEATURES,
    Ids,
    IdsLike,
    LanguageModel,
    Vector,
    Vectors,
    as_tensor,
    from_config,
    load,
    read,
)

__all__ = [
    "FEATURES",
    "Ids",
    "IdsLike",
    "LanguageModel",
    "Vector",
    "Vectors",
    "as_tensor",
    "from_config",
    "load",
    "read",
]
