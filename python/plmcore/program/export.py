"""Programs to files and back. The format: docs/program-format.md; C++ reads it with plmcore::Model::load."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from plmcore import _core
from plmcore.program.trace import Spec, spec, trace
from plmcore.runtime.kinds import checked

if TYPE_CHECKING:
    from plmcore import nn
    from plmcore.language_model import LanguageModel
    from plmcore.models import Model


@checked
def export(
    what: LanguageModel | nn.Module | _core.Program | Mapping[str, _core.Program],
    path: str | os.PathLike[str],
) -> None:
    """Writes a model, a traced program, or several programs by name, with their weights, to one file.

    A single program is named "main".

    plm.export(plm.load("gpt2"), "gpt2.plm"): a model's programs are its entry points in eval mode, at any
    batch size and length. One is the forward pass for the inputs of `signature`, named by what the head does
    (`forward_name`); it is also found as "main". `encode` gives the states of the tokens. A model that makes
    text also has the entry points of plmcore.program.decoding; a decoder that needs each token's result for
    the next one has no forward pass. The file says what plmcore.program.card makes:
    labels, special ids, pooling, generation defaults, tokenizer. Other inputs, or labels:
    plm.export(plm.trace(lm.model, input_ids=..., labels=...), "loss.plm").
    """
    from plmcore.formats import program_file
    from plmcore.nn.modes import inference
    from plmcore.program import card

    if isinstance(what, _core.Program) or isinstance(what, Mapping):
        programs = what if isinstance(what, Mapping) else {"main": what}
        program_file.write(path, {name: _program(name, p) for name, p in programs.items()})
        return
    model: Any = getattr(what, "model", what)
    lm: Any = None if model is what else what
    stepwise = hasattr(model, "prefill") and model.stepwise  # of a body _program says why it has none
    with inference():
        forward = {} if stepwise else {forward_name(model): _program("main", model)}
        by_name = forward | entries(model)
    said, tensors = card.made(model, lm, next(iter(forward), "start"))
    program_file.write(path, by_name, card.text(said), tensors)


# What the forward pass of a head is called; of others "score".
FORWARD = {
    "base": "encode",
    "base-encoder": "encode",
    "sequence-classification": "classify",
    "next-sentence": "classify",
    "token-classification": "tag",
    "question-answering": "answer",
    "answer-beams": "answer",
    "multiple-choice": "choose",
}


def forward_name(model: Any) -> str:
    """encode, score, classify, tag, answer or choose; decode for the states of an encoder-decoder."""
    from plmcore import models

    if not hasattr(model, "config"):
        return "main"
    head = models.head_name(model)
    return "decode" if head == "base" and _targets(model) else FORWARD.get(head, "score")


def entries(model: Model) -> dict[str, _core.Program]:
    """The programs beside the forward pass."""
    from plmcore.models.generates import Generates
    from plmcore.program import decoding

    found = {}
    if forward_name(model) != "encode" and hasattr(getattr(model, "body", model), "encode"):
        found["encode"] = _encode(model)
    if isinstance(model, Generates) and model.TRACES:
        found |= decoding.programs(model)
    return found


def _encode(model: Model) -> _core.Program:
    """The states of the tokens of one text, which `lm.encode` pools."""
    body: Any = getattr(model, "body", model)

    def encode(**inputs: Any) -> dict[str, _core.Tensor]:
        encoded = body.encode(**inputs)
        return {"last_hidden_state": encoded.layout.unpack(encoded.rows)}

    one = {name: spec("int64", "B", "T") for name in signature(model) if name != "decoder_input_ids"}
    inputs = signature(model) if hasattr(model, "program_inputs") else one  # one text, also of several
    return trace(encode, dict(model.named_parameters()), **inputs)


def signature(model: Model) -> dict[str, Spec]:
    """The inputs of a model's exported program, int64: input_ids and attention_mask [B, T], [B, K, T] where
    it chooses one of K; token_type_ids where there are several types; decoder_input_ids [B, T] where they are
    read, and the encoder's inputs are [B, S]. A model that reads something else has `program_inputs`.
    """
    from plmcore import models

    if hasattr(model, "program_inputs"):
        return {name: spec(*sizes) for name, sizes in model.program_inputs().items()}
    config, head, targets = model.config, models.head_name(model), _targets(model)
    sizes = ("B", "K", "T") if head in ("multiple-choice", "double-heads") else ("B", "S" if targets else "T")
    names = [
        "input_ids",
        "attention_mask",
        *(["token_type_ids"] if getattr(config, "type_vocab_size", 1) != 1 else []),
    ]
    inputs = {name: spec("int64", *sizes) for name in names}
    return inputs | ({"decoder_input_ids": spec("int64", "B", "T")} if targets else {})


def _targets(model: Model) -> bool:
    """Whether the forward pass also reads what the decoder writes."""
    from plmcore import models

    return "seq2seq-lm" in models.family(model.config).HEADS and models.head_name(model) in (
        "base",
        "seq2seq-lm",
    )


def _program(name: str, what: LanguageModel | nn.Module | _core.Program) -> _core.Program:
    if isinstance(what, _core.Program):
        return what
    model: Any = getattr(what, "model", what)
    if not hasattr(model, "config"):
        raise _core.DTypeError(
            f"export: {name!r} must be a model, or a Program, which plm.trace(module, x=plm.spec(...)) "
            f"makes, got {type(what).__name__}"
        )
    if getattr(model, "stepwise", False):
        raise _core.ArgumentError(
            f"export: the decoder of {type(model).__name__} needs each token's result for the next one: a "
            f"whole text has no program; export the head seq2seq-lm, whose programs make text"
        )
    from plmcore.nn.modes import inference

    with inference():
        return trace(model, None, **signature(model))


@checked
def load_programs(
    path: str | os.PathLike[str], *, mapped: bool = True, device: str = "cpu"
) -> dict[str, _core.Program]:
    """The programs of a file by name.

    The file is mapped, not copied, and must not be cut short while it is in use; with mapped=False it is read
    into memory. It runs no code of its own beside plmcore's ops. The programs run on `device`.
    """
    from plmcore.formats import program_file

    model = program_file.read(path, mapped)
    model.to(device)
    return {name: model.program(name) for name in model.names}


@checked
def load_program(
    path: str | os.PathLike[str], name: str | None = None, *, mapped: bool = True, device: str = "cpu"
) -> _core.Program:
    """One program of a file, "main" (of a model its forward pass) or the only one unless named. The rest as
    in load_programs.
    """
    from plmcore.formats import program_file

    model = program_file.read(path, mapped)
    model.to(device)
    if name is None:
        name = "main" if model.has("main") else model.names[0]
        if name != "main" and len(model.names) != 1:
            raise _core.ArgumentError(
                f"{os.fspath(path)!r} has the programs {', '.join(map(repr, model.names))}; name the "
                f"one to load"
            )
    return model.program(name)
