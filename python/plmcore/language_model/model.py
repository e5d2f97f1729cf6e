"""A model with its tokenizer: what plm.load returns."""

from __future__ import annotations

import os
import pathlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, cast, overload

import numpy as np

from plmcore import models, nn
from plmcore._core import ArgumentError, Tensor
from plmcore.files.whole import only_writer
from plmcore.language_model import directory, pooling
from plmcore.models.config import Config
from plmcore.models.names import Report
from plmcore.models.outputs import Output
from plmcore.nn.state import State
from plmcore.runtime.kinds import checked
from plmcore.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from plmcore.evaluate.likelihood import Perplexity
    from plmcore.generate import Filled, Generated
    from plmcore.language_model.attention import Attention
    from plmcore.models import Model

Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]
Vectors: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Ids: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
IdsLike: TypeAlias = Tensor | np.ndarray | Sequence[int] | Sequence[Sequence[int]] | Sequence[np.ndarray]

FEATURES = "features"  # the head that reads the layers of a body: plmcore.tasks.features


class LanguageModel:
    """A model with its tokenizer: what plm.load returns.

    `model` is the network, `config` its config, `tokenizer` its tokenizer or None. `report` lists what
    loading found.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Tokenizer | None = None,
        source: pathlib.Path | None = None,
        report: Report | None = None,
    ) -> None:
        self.model = cast("Model", model)
        self.tokenizer, self.source, self.report = tokenizer, source, report

    @property
    def config(self) -> Config:
        """The config of the model: a frozen dataclass with the keys of config.json."""
        return self.model.config

    @property
    def notes(self) -> list[str]:
        """What loading had to say."""
        return [] if self.report is None else self.report.notes

    @property
    def head(self) -> str:
        """The name of the model's head, for instance "causal-lm"."""
        return models.head_name(self.model)

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        """Runs the model on tensors, arrays or nested lists, by the names that transformers uses (input_ids,
        attention_mask, labels, ...).
        """
        device = self.device
        inputs = {name: as_tensor(name, value, device) for name, value in inputs.items()}
        out: Output = self.model(*(as_tensor("input_ids", a, device) for a in args), **inputs)
        return out

    @property
    def device(self) -> str:
        """The name of the device that the model is on."""
        return self.model.device

    def to(self, target: str) -> Self:
        """Moves the model to a device, or its weights to a dtype; returns self."""
        self.model.to(target)
        return self

    @overload
    def encode(self, texts: str, batch_size: int = 32) -> Vector: ...  # type: ignore[overload-overlap]  # a str is a Sequence[str] too
    @overload
    def encode(self, texts: Sequence[str], batch_size: int = 32) -> Vectors: ...
    @checked
    def encode(self, texts: str | Sequence[str], batch_size: int = 32) -> Vector | Vectors:
        """Returns a float32 vector for each text, [n, C], or [C] for one text.

        The model directory sets pooling and normalisation. The default is the mean over tokens."""
        if self.tokenizer is None:
            raise ArgumentError(
                "encode: this model has no tokenizer; load it from a directory with tokenizer files"
            )
        if isinstance(texts, str):
            return self.encode([texts], batch_size)[0]
        texts = list(texts)
        if not texts:
            return self.encode(["."], batch_size)[:0]  # as wide as others
        how = pooling.read(self.source)
        limits = [how.max_length, self.tokenizer.max_length, self.config.longest]
        longest = min((n for n in limits if n), default=None)
        body = getattr(self.model, "body", self.model)
        if getattr(body, "READS_VECTORS", False):
            raise ArgumentError(
                f"encode: {self.config.model_type} reads the vectors of words, which are not here: "
                f"lm.model.embed(sentences, vectors)"
            )
        # a batch of equals has no padding
        by_length = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        vectors: dict[int, np.ndarray] = {}
        with nn.inference():
            for start in range(0, len(texts), batch_size):
                chosen = by_length[start : start + batch_size]
                # where positions of a text do not depend on the others
                side = self.tokenizer.family.padding_side
                batch = self.tokenizer([texts[i] for i in chosen], max_length=longest, padding_side=side)
                encoded = body.encode(**body.tensors({name: batch[name] for name in self._takes(batch)}))
                states = encoded.layout.unpack(encoded.rows).numpy().astype(np.float32)  # [B, T, C]
                vectors.update(zip(chosen, how(states, batch["attention_mask"])))
        return np.stack([vectors[i] for i in range(len(texts))])

    @checked
    def perplexity(
        self, texts: Any, sources: str | Sequence[str] | None = None, **options: Any
    ) -> Perplexity:
        """Returns the perplexity of a text, of a file (a pathlib.Path) or of several.

        A model with an encoder takes targets and their sources. The options are those of
        plm.evaluate.perplexity.
        """
        from plmcore.evaluate.likelihood import perplexity

        return perplexity(self, texts, sources, **options)

    @overload  # the more there is to tell: with scores or a trace, in any form of the prompt
    def generate(
        self,
        inputs: str | Sequence[str] | IdsLike,
        attention_mask: Any = None,
        decoder_input_ids: Any = None,
        *,
        output_scores: Literal[True],
        **options: Any,
    ) -> Generated: ...
    @overload
    def generate(
        self,
        inputs: str | Sequence[str] | IdsLike,
        attention_mask: Any = None,
        decoder_input_ids: Any = None,
        *,
        trace: Literal[True],
        **options: Any,
    ) -> Generated: ...
    @overload  # what comes back is known when it runs
    def generate(
        self,
        inputs: str | Sequence[str] | IdsLike,
        attention_mask: Any = None,
        decoder_input_ids: Any = None,
        *,
        output_scores: bool,
        **options: Any,
    ) -> Any: ...
    @overload
    def generate(
        self,
        inputs: str | Sequence[str] | IdsLike,
        attention_mask: Any = None,
        decoder_input_ids: Any = None,
        *,
        trace: bool,
        **options: Any,
    ) -> Any: ...
    @overload  # a text, or several where so many are asked for
    def generate(
        self,
        inputs: str,
        attention_mask: Any = None,
        decoder_input_ids: Any = None,
        *,
        num_return_sequences: int,
        **options: Any,
    ) -> str | list[str]: ...
    @overload
    def generate(
        self, inputs: str, attention_mask: Any = None, decoder_input_ids: Any = None, **options: Any
    ) -> str: ...
    @overload
    def generate(
        self, inputs: Sequence[str], attention_mask: Any = None, decoder_input_ids: Any = None, **options: Any
    ) -> list[str]: ...
    @overload
    def generate(
        self, inputs: IdsLike, attention_mask: Any = None, decoder_input_ids: Any = None, **options: Any
    ) -> Ids: ...
    @checked
    def generate(
        self, inputs: Any, attention_mask: Any = None, decoder_input_ids: Any = None, **options: Any
    ) -> Any:
        """Generates from a prompt: a text for a text, ids [B, L] for ids [B, T], as transformers' generate.

        lm.generate("Once upon", max_new_tokens=40, num_beams=4). With output_scores=True a
        plmcore.generate.Generated; with trace=True one whose html("beams.html") shows the search.
        docs/generation.md lists the options.
        """
        from plmcore import generate

        return generate.generate(self, inputs, attention_mask, decoder_input_ids, **options)

    @checked
    def stream(self, text: str, **options: Any) -> Iterator[str]:
        """Generates text piece by piece, greedy or sampled. for piece in lm.stream("Once upon"):
        print(piece, end="")
        """
        from plmcore import generate

        return generate.stream(self, text, **options)

    @checked
    def score(self, texts: Any, targets: Any = None) -> list[np.ndarray]:
        """Returns the log-probability of each token, given the tokens before it.

        A model with an encoder scores `targets`, given the texts.
        """
        from plmcore import generate

        return generate.score(self, texts, targets)

    @overload
    def classify(  # type: ignore[overload-overlap]
        self,
        texts: str,
        pairs: str | None = None,
        batch_size: int = 32,
        others: Sequence[LanguageModel] = (),
    ) -> dict[str, Any]: ...
    @overload
    def classify(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        batch_size: int = 32,
        others: Sequence[LanguageModel] = (),
    ) -> list[dict[str, Any]]: ...
    @checked
    def classify(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        batch_size: int = 32,
        others: Sequence[LanguageModel] = (),
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """Classifies texts or pairs of texts: {"label", "probability", "probabilities"} for each; {"value"}
        for a regression model. `others`: models for the same classes, whose probabilities are averaged with
        this one's.

        lm.classify(["good film"]) -> [{"label": "positive", "probability": 0.98, ...}]
        """
        from plmcore.tasks import inference

        return inference.classify(self, texts, pairs, batch_size, others)

    @overload
    def answer(self, questions: str, contexts: str, batch_size: int = 32) -> dict[str, Any]: ...  # type: ignore[overload-overlap]
    @overload
    def answer(
        self, questions: Sequence[str], contexts: Sequence[str], batch_size: int = 32
    ) -> list[dict[str, Any]]: ...
    def answer(
        self, questions: str | Sequence[str], contexts: str | Sequence[str], batch_size: int = 32
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """Finds the answer to a question in a context: {"answer", "n_best"}.

        A model fine-tuned on questions without answers may answer "".

        lm.answer("Who wrote it?", "It was written by Ada.") -> {"answer": "Ada", "n_best":
        [{"answer": "Ada", "probability": 0.9}, ...]}
        """
        from plmcore.tasks import inference

        return inference.answer(self, questions, contexts, batch_size)

    @overload
    def annotate(self, texts: str, batch_size: int = 32) -> dict[str, Any]: ...  # type: ignore[overload-overlap]
    @overload
    def annotate(
        self, texts: Sequence[str] | Sequence[Sequence[str]], batch_size: int = 32
    ) -> list[dict[str, Any]]: ...
    def annotate(self, texts: Any, batch_size: int = 32) -> Any:
        """Labels texts, or lists of words, with every task of the model: {"words", TASK: tags or class}.

        lm.annotate("Ada lives in Paris .") -> {"words": ["Ada", ...], "tagging": ["B-PER", "O", ...]}
        """
        from plmcore.tasks import annotating

        return annotating.annotate(self, texts, batch_size)

    @checked
    def fill_mask(self, text: str, k: int = 5) -> list[dict[str, Any]] | Any:  # the number of masks decides
        """Returns the k most likely tokens for the mask of a text, [{"token", "probability", "text"}]; a list
        for each of several masks.

        lm.fill_mask("Paris is the [MASK] of France.")
        """
        from plmcore.tasks import inference

        return inference.fill_mask(self, text, k)

    @overload
    def fill_blanks(
        self, text: str, num_beams: int = 1, max_new_tokens: int = 32, **options: Any
    ) -> Filled: ...
    @overload
    def fill_blanks(
        self, text: Sequence[str], num_beams: int = 1, max_new_tokens: int = 32, **options: Any
    ) -> list[Filled]: ...
    @checked
    def fill_blanks(
        self, text: str | Sequence[str], num_beams: int = 1, max_new_tokens: int = 32, **options: Any
    ) -> Filled | list[Filled]:
        """Fills the blanks of a text, or of several, [MASK], [sMASK] and [gMASK], with pieces of any length
        (GLM): a plmcore.generate.Filled with text, pieces and score.

        lm.fill_blanks("Paris is the [MASK] of [MASK]."). A piece has at most max_new_tokens tokens. Beams go
        over all blanks of a text. The options are those of generate. docs/blanks.md has more.
        """
        from plmcore.generate import blanks

        return blanks.fill(self, text, num_beams, max_new_tokens, **options)

    @checked
    def score_blanks(self, text: str, answers: Sequence[Any], end: bool = True) -> np.ndarray:
        """Returns the log-probability of each answer in the blank of a text (GLM); for several blanks an
        answer is a list of texts.  float64 [answers]

        lm.score_blanks("It was [MASK].", ["good", "bad"]). The end of a piece counts, so that answers of
        several lengths compare; end=False leaves it out, as the published scoring does.
        """
        from plmcore.generate import blanks

        return blanks.score(self, [text] * len(answers), answers, end)

    @checked
    def classify_blanks(
        self,
        texts: Sequence[str],
        answers: Mapping[str, str],
        template: str = "{} It was [MASK].",
        batch_size: int = 32,
    ) -> list[dict[str, Any]]:
        """Classifies texts by how likely the answer of each class is in a blank beside them (GLM), as
        classify does: lm.classify_blanks(["a fine film"], {"positive": "good", "negative": "bad"}).
        """
        from plmcore.generate import blanks

        return blanks.classify(self, texts, answers, template, batch_size)

    @checked
    def attention(
        self,
        text: str,
        pair: str | None = None,
        *,
        target: str | None = None,
        layers: Sequence[int] | None = None,
    ) -> Attention:
        """Returns the attention weights of a text: lm.attention("The cat sat.").html("a.html"), .text(layer,
        head), .weights [L, H, T, T].

        The decoder of an encoder-decoder reads `target`, or the text that the model generates. `layers`
        selects layers.
        """
        from plmcore.language_model.attention import attention

        return attention(self, text, pair, target=target, layers=layers)

    @checked
    def save(self, folder: str | os.PathLike[str], max_shard_bytes: int | None = None) -> None:
        """Writes a directory that plm.load and transformers open: config, weights, tokenizer, and the other
        files of the source directory.
        """
        if self.source is not None:
            directory.companions(self.source)  # what is wrong with them is said before anything is written
        with only_writer(folder := pathlib.Path(folder)):
            if self.head == FEATURES:
                from plmcore.tasks import features

                features.save(cast("features.Features", self.model), folder)
            else:
                directory.write_model(self.model, folder, max_shard_bytes)
            if self.source is not None:
                directory.copy_companions(self.source, folder)
            if self.tokenizer is not None and (self.source is None or self.tokenizer.changed):
                self.tokenizer.save(folder)

    def parameters(self) -> list[nn.Parameter]:
        """All parameters of the model."""
        return self.model.parameters()

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Pairs of name and parameter."""
        return self.model.named_parameters()

    def train(self, mode: bool = True) -> Self:
        """Switches training mode (dropout) on or off; returns self."""
        self.model.train(mode)
        return self

    def eval(self) -> Self:
        """Switches training mode off; returns self."""
        return self.train(False)

    def _takes(self, batch: Mapping[str, np.ndarray]) -> list[str]:
        """Not every family has token types."""
        types = hasattr(self.config, "type_vocab_size")
        return [name for name in batch if name != "token_type_ids" or types]

    def __repr__(self) -> str:
        return (
            f"LanguageModel({self.config.model_type}, {self.head}, {self.model.num_parameters():,} "
            f"parameters)"
        )


def as_tensor(name: str, value: Any, device: str) -> Any:
    """Lists and arrays of numbers as tensors on a device, whole numbers as int64; anything else as it is."""
    if value is None or isinstance(value, (Tensor, State, bool, str, Mapping)):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Tensor, tuple, type(None))) for v in value):
        return value  # memories and caches of layers
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype == object:
        raise ArgumentError(
            f"{name}: the lists must be numbers, and of equal lengths; pad them and pass an attention_mask"
        )
    return Tensor(array, dtype="int64" if array.dtype.kind in "iu" else None, device=device)


@checked
def load(
    folder: str | os.PathLike[str],
    head: str | None = None,
    *,
    dtype: str | None = None,
    device: str | None = None,
    strict: bool = True,
    mapped: bool = True,
    new_head: bool = False,
    **changes: Any,
) -> LanguageModel:
    """Loads the model of a directory, in eval mode.
    plm.load("dir", head="sequence-classification", num_labels=3)

    Without `head` the architecture in config.json decides, and features.json where a fine-tuned model reads
    the features of its body; without `dtype` that of the file; with one, weights that plm.quantize made
    become ordinary ones. `device` is "cpu", "cuda", "cuda:1". Other keywords replace keys of the config.
    strict=False loads what fits; `report` of the result tells the rest. The weights are mapped from their
    file where they lie in it, and who cuts the file short while the model is in use ends the process
    (SIGBUS): with mapped=False they are read into memory. new_head=True draws the head at random, whatever
    the directory has.
    """
    if device is not None:
        Tensor([], device=device)  # one that is not there is found before the work
    lm = read(folder, head, dtype=dtype, strict=strict, mapped=mapped, new_head=new_head, **changes)
    for note in lm.notes:
        warnings.warn(note, stacklevel=2)
    return lm if device is None else lm.to(device)


def read(
    folder: str | os.PathLike[str],
    head: str | None = None,
    *,
    dtype: str | None = None,
    strict: bool = True,
    mapped: bool = True,
    new_head: bool = False,
    **changes: Any,
) -> LanguageModel:
    """Loads as load() does, without its warnings, which `notes` of the result has."""
    folder = pathlib.Path(folder)
    if head is None and (folder / f"{FEATURES}.json").is_file():
        from plmcore.tasks import features

        return features.load(folder, dtype=dtype, strict=strict, mapped=mapped, **changes)
    model, report = directory.read_model(folder, head, dtype, strict, mapped, new_head, **changes)
    try:
        tokenizer = load_tokenizer(folder)
    except FileNotFoundError:
        tokenizer = None
    if tokenizer is not None and (more := tokenizer.beyond(model.config.vocab_size)):
        report.notes.append(f"'{folder}': {more}; a text that has one of them is an error")
    return LanguageModel(model.eval(), tokenizer, folder, report)


@checked
def from_config(
    config: Config | Mapping[str, Any] | str | os.PathLike[str],
    head: str = "base",
    *,
    dtype: str = "float32",
    **changes: Any,
) -> LanguageModel:
    """Builds a model with fresh weights, in training mode.

    The config is a Config, a dict of its keys, or a directory with config.json.
    """
    if isinstance(config, (str, os.PathLike)):
        config = directory.read_config(config, **changes)
    elif isinstance(config, Config):
        config = config.replace(**changes)
    else:
        config = models.config_from_dict(config, **changes)
    Tensor([], dtype=dtype)  # one that there is
    model = models.build(config, head)
    return LanguageModel(model if dtype == "float32" else model.to(dtype))
