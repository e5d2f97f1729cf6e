"""The experiments by name: how each is run, with which seeds, and what must come out."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from learning import (
    cloze,
    clusters,
    contextual,
    copying,
    cross_view,
    fragments,
    markov_runs,
    memories,
    penn,
    sentences,
    shakespeare,
    transfer,
    translation,
    ulmfit,
)

Found = dict[str, float]
NEAR = 0.02  # of the best possible loss
BAYES = 0.01  # of the best possible accuracy
GAIN = 0.02  # bits per character that a memory must save


@dataclass(frozen=True)
class Experiment:
    """`run` takes the data folder, a folder that the seeds of one experiment share, and the seed; `holds`
    judges what it found. `prepare` makes what they share in that folder.
    """

    group: str
    run: Callable[[pathlib.Path, pathlib.Path, int], Found]
    holds: Callable[[Found], bool]
    target: str
    seeds: tuple[int, ...] = (0, 1, 2)
    needs_data: bool = True
    nightly: bool = False
    prepare: Callable[[pathlib.Path, pathlib.Path], object] | None = None


def near_optimum(found: Found) -> bool:
    """Close to the best possible loss, and not below it, which only a leak could bring about; pairs by their
    accuracy.
    """
    if "Bayes" in found:
        return found["above"] >= 0 and found["accuracy"] >= found["Bayes"] - BAYES
    return 0 <= found["above"] <= NEAR


def helps(found: Found) -> bool:
    return all(found[f"{name}, pre-trained"] > found[f"{name}, from scratch"] for name in transfer.TASKS)


def remembers(found: Found) -> bool:
    short, long = (found[f"memory {n}"] for n in (memories.SHORT, memories.LONG))
    return long < short <= found["without"] - GAIN


def _markov(name: str) -> Experiment:
    pairs = markov_runs.CASES[name].pairs
    target = "accuracy within 1 point of Bayes's" if pairs else "within 2 % of the optimum"
    return Experiment(
        "markov",
        lambda data, folder, seed: markov_runs.run(name, seed),
        near_optimum,
        f"{target}, loss never below",
        needs_data=False,
    )


EXPERIMENTS: dict[str, Experiment] = {
    "shakespeare": Experiment(
        "shakespeare",
        shakespeare.run,
        lambda f: 1.80 <= f["validation loss"] <= 1.95,
        "1.80 to 1.95",
        seeds=(1337,),
    ),
    **{name: _markov(name) for name in markov_runs.CASES},
    **{
        name: Experiment(
            "copying",
            partial(lambda name, data, folder, seed: copying.run(name, seed), name),
            lambda f: f["exact"] >= 0.99,
            "at least 0.99",
            needs_data=False,
        )
        for name in copying.ORDERS
    },
    **{
        name: Experiment(
            "reversing",
            partial(lambda name, data, folder, seed: copying.run(name, seed), name),
            *(
                (lambda f: f["exact"] <= 0.05, "at most 0.05")
                if config["attention"] == "none"
                else (lambda f: f["exact"] >= 0.99, "at least 0.99")
            ),
            needs_data=False,
        )
        for name, config in copying.NETWORKS.items()
    },
    **{
        f"transfer, {title}": Experiment(
            "transfer",
            partial(transfer.run, family),
            helps,
            "pre-trained above from scratch",
            prepare=partial(transfer.prepare, family),
        )
        for family, title in (("gpt2", "GPT-2"), ("bert", "BERT"))
    },
    "LSTM of the Penn Treebank": Experiment(
        "penn",
        penn.run,
        lambda f: 117 <= f["validation perplexity"] <= 125,
        "121 ± 4",
        nightly=True,
    ),
    "biLM of the Penn Treebank": Experiment(
        "directions",
        contextual.directions,
        lambda f: abs(f["forward"] / f["backward"] - 1) <= 0.05,
        "forward and backward within 5 %",
    ),
    "ELMo's layers, CoNLL-2003": Experiment(
        "contextual",
        contextual.elmo,
        lambda f: f["with"] > f["without"],
        "[GloVe; ELMo] above GloVe",
        prepare=contextual.wikipedia,
    ),
    "CoVe's layers, SST-2": Experiment(
        "contextual",
        contextual.cove,
        lambda f: f["with"] > f["without"],
        "[GloVe; CoVe] above GloVe",
        prepare=contextual.translator,
    ),
    "SST-2, CNN": Experiment(
        "convolution",
        sentences.run,
        lambda f: min(f["GloVe"], f["GloVe, static"]) > f["random"],
        "GloVe's vectors above random ones",
    ),
    "cross-view training": Experiment(
        "cross-view",
        cross_view.run,
        cross_view.gains,
        "above supervised, with as many labels or steps",
        prepare=cross_view.prepare,
    ),
    "translation, recurrent": Experiment(
        "recurrent",
        translation.recurrent,
        lambda f: f["LSTM"] < f["GRU"] < f["Bahdanau"],
        "BLEU of LSTM < GRU < Bahdanau",
    ),
    "ULMFiT": Experiment(
        "ulmfit",
        ulmfit.run,
        lambda f: f["gain"] >= 0.03,
        "at least 0.03 above scratch",
        nightly=True,
        prepare=ulmfit.prepare,
    ),
    "Transformer-XL": Experiment(
        "memories",
        memories.run,
        remembers,
        f"at least {GAIN} below without, less with the longer memory",
    ),
    "adaptive softmax": Experiment(
        "clusters", clusters.run, lambda f: f["worse"] <= NEAR, "at most 2 % worse"
    ),
    "MASS, translation": Experiment(
        "fragments",
        fragments.run_translation,
        lambda f: f["BLEU, pre-trained"] > f["BLEU, from scratch"],
        "pre-trained above from scratch",
        prepare=fragments.prepare_translation,
    ),
    "MASS, summaries": Experiment(
        "summaries",
        fragments.run_summaries,
        lambda f: f["ROUGE-L, pre-trained"] > f["ROUGE-L, from scratch"],
        "pre-trained above from scratch; the first sentence stands beside them",
        prepare=fragments.prepare_summaries,
    ),
    "GLM, cloze": Experiment(
        "cloze",
        cloze.run,
        lambda f: f["cloze"] > f["linear head"],
        "cloze above a linear head",
        prepare=cloze.prepare,
    ),
    "translation, short": Experiment(
        "translation",
        partial(translation.run, "translation, short"),
        lambda f: f["BLEU"] >= 10,
        "at least 10",
        seeds=(0,),
    ),
    "translation": Experiment(
        "translation",
        partial(translation.run, "translation"),
        lambda f: f["BLEU"] >= 34,
        "at least 34",
        seeds=(0,),
        nightly=True,
    ),
}
