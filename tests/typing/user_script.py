"""A user's script from text to a classifier, as type checkers see it.

It runs (test_user_script.py) and passes `mypy --strict` and pyright's strict mode with the installed package
(.ci/check_types.py); misuse.py holds what they must report.
"""

import pathlib
from collections.abc import Mapping
from typing import Any, assert_type

import numpy as np
import plmcore as plm
from numpy.typing import NDArray
from plmcore import data, nn, objectives, ops, optim
from plmcore.generate import Generated
from plmcore.language_model import LanguageModel, Vector, Vectors
from plmcore.models.outputs import Output
from plmcore.tokenizers import Batch, Tokenizer
from plmcore.train import Trainer

WORDS = "the cat sat on the mat and the dog ran far away from home to see the other cat that sat there. "
TINY = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


def square(x: plm.Tensor) -> plm.Tensor:
    return x @ x


def tensors() -> None:
    t = plm.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    array = np.ones((2, 2), np.float32)
    assert_type(t @ t, plm.Tensor)
    assert_type(t @ array, plm.Tensor)
    assert_type(2 * t + 1.5 - t / 3, plm.Tensor)
    assert_type(t**2 * array, plm.Tensor)
    assert_type(-t, plm.Tensor)
    assert_type(t < 2.0, plm.Tensor)
    assert_type(t == t, plm.Tensor)
    assert_type(t[0, 1:], plm.Tensor)
    assert_type(t[..., None][t.numpy()[:, 0] > 1], plm.Tensor)
    assert_type([row.sum() for row in t], list[plm.Tensor])
    assert_type(t.T.reshape(4).sum(axis=0, keepdims=True), plm.Tensor)
    assert_type(t.shape, tuple[int | plm.Dim, ...])
    assert_type(t.numpy(), NDArray[Any])
    assert_type(t.sum().item(), float)
    assert np.asarray(t).shape == (2, 2) and np.allclose(t, array * t.numpy())
    assert_type(plm.from_dlpack(array), plm.Tensor)
    assert np.from_dlpack(t.detach()).shape == (2, 2)
    assert_type(plm.zeros(2, 3, requires_grad=True).requires_grad_(), plm.Tensor)

    loss = ops.gelu(ops.linear(t, array)).mean()
    loss.backward()
    assert_type(t.grad, plm.Tensor | None)
    assert_type(ops.topk(t, 1), tuple[plm.Tensor, plm.Tensor])
    q = ops.reshape(t.detach(), [1, 2, 1, 2])
    assert_type(ops.attention(q, q, q, causal=True), plm.Tensor)
    assert_type(ops.attention(q, q, q, weights=True), tuple[plm.Tensor, plm.Tensor])
    assert_type(plm.grad((t * t).sum(), t), plm.Tensor | None)
    with plm.no_grad():
        program = plm.trace(square, x=plm.spec("float32", "N", "N"))
    assert_type(program, plm.Program)
    assert_type(plm.memory_stats(), dict[str, int])
    assert_type(plm.__version__, str)


class Classifier(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        self.up = nn.Linear(width, 2 * width)
        self.out = nn.Linear(2 * width, classes)

    def __call__(self, x: plm.Tensor) -> plm.Tensor:
        return self.out(ops.relu(self.up(x)))


def loop(x: Vectors, y: NDArray[np.int64], steps: int) -> float:
    model = Classifier(x.shape[1], 2)
    opt = optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    loss = 0.0
    for _ in range(steps):
        logits = model(plm.Tensor(x))
        assert_type(logits, plm.Tensor)
        error = ops.cross_entropy(logits, plm.Tensor(y))
        opt.zero_grad()
        error.backward()
        assert_type(opt.step(clip_norm=1.0), float | None)
        loss = error.item()
    return loss


def texts(folder: pathlib.Path) -> Tokenizer:
    text = folder / "text.txt"
    text.write_text("\n\n".join([WORDS * 4] * 8))
    tokenizer = plm.train_tokenizer(text, kind="wordpiece", vocab_size=80, out=folder / "tokenizer")
    assert_type(tokenizer, Tokenizer)
    assert_type(plm.load_tokenizer(folder / "tokenizer"), Tokenizer)
    batch = tokenizer(["the cat", "the dog ran"], max_length=8)
    assert_type(batch, Batch)
    assert batch.input_ids.shape == batch["attention_mask"].shape
    corpus = data.write_corpus(folder / "corpus", text, tokenizer)
    assert_type(corpus, data.Corpus)
    masked = objectives.MaskedLM(corpus, tokenizer, length=16)
    assert set(masked.batch([0, 1], seed=0, epoch=0)) >= {"input_ids", "labels"}
    return tokenizer


def encoder(tokenizer: Tokenizer, folder: pathlib.Path) -> pathlib.Path:
    lm = plm.from_config({"model_type": "bert", **TINY}, "masked-lm", vocab_size=tokenizer.vocab_size)
    lm.tokenizer = tokenizer
    lm.save(folder / "bert")
    lm = plm.load(folder / "bert", dtype="float32")
    assert_type(lm, LanguageModel)
    assert_type(lm.tokenizer, Tokenizer | None)

    out = lm(**lm.tokenizer(["the cat"]) if lm.tokenizer else {})
    assert_type(out, Output)
    assert out.logits.numpy().shape[-1] == tokenizer.vocab_size and out.loss is None
    vectors = lm.encode(["the cat sat", "the dog ran"])
    assert_type(vectors, Vectors)
    assert_type(lm.encode("the cat sat"), Vector)
    assert loop(vectors, np.array([0, 1]), steps=3) > 0
    for guess in lm.fill_mask("the [MASK] sat"):
        assert 0 <= guess["probability"] <= 1
    return folder / "bert"


def decoder(folder: pathlib.Path) -> None:
    def report(trainer: Trainer, metrics: Mapping[str, float]) -> None:
        assert trainer.step >= 0 and metrics["loss"] > 0

    lm = plm.pretrain(
        "gpt2",
        text=[folder / "text.txt"],
        out=folder / "run",
        size="tiny",
        steps=2,
        changes=["data.length=16", "data.batch=2"],
        quiet=True,
        callbacks=[report],
    )
    assert_type(lm, LanguageModel)
    assert_type(lm.generate("the cat", max_new_tokens=3), str)
    assert_type(lm.generate(["the cat", "the dog"], max_new_tokens=3), list[str])
    assert_type(lm.generate("the cat", max_new_tokens=3, output_scores=True), Generated)
    for detailed in (False, True):
        found = lm.generate("the cat", max_new_tokens=3, trace=detailed)
        assert len(found.sequences if isinstance(found, Generated) else found) > 0
    assert lm.generate(np.array([[1, 2, 3]]), max_new_tokens=3).dtype == np.int64
    for piece in lm.stream("the cat", max_new_tokens=3):
        assert_type(piece, str)
    assert lm.perplexity("the cat sat on the mat").per_word > 1
    assert_type(plm.evaluate(lm, folder / "text.txt"), dict[str, Any])
    assert plm.evaluate.perplexity(lm, "the cat sat").tokens > 0
    assert_type(plm.evaluate.compute("accuracy", [1, 0], [1, 1]), dict[str, Any])
    plm.export(lm, folder / "gpt2.plm")
    assert_type(plm.load_program(folder / "gpt2.plm"), plm.Program)


def classifier(bert: pathlib.Path, folder: pathlib.Path) -> None:
    table = folder / "train.tsv"
    table.write_text("text\tlabel\n" + "the cat sat\tcat\nthe dog ran\tdog\n" * 4)
    lm = plm.finetune(
        bert, "classification", train=table, dev=table, out=folder / "tuned", steps=2, quiet=True
    )
    assert_type(lm, LanguageModel)
    assert_type(lm.classify("the cat"), dict[str, Any])
    assert_type(lm.classify(["the cat", "the dog"]), list[dict[str, Any]])
    assert {found["label"] for found in lm.classify(["the cat", "the dog"])} <= {"cat", "dog"}
    assert plm.evaluate(folder / "tuned/final", table, "classification")["accuracy"] >= 0
    try:
        plm.load(folder / "nothing")
    except (FileNotFoundError, plm.FormatError, plm.ArgumentError) as error:
        print(error)


def main(folder: pathlib.Path) -> None:
    tensors()
    tokenizer = texts(folder)
    classifier(encoder(tokenizer, folder), folder)
    decoder(folder)
