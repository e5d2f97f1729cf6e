"""How long an objective takes for a batch: beside transformers' data collators, and as a share of a training step of `gpt2 tiny`.

    python benchmarks/objectives                      # all objectives at three sizes, on one thread
    python benchmarks/objectives --only masked-lm --rounds 9

transformers gets examples that are ready: cut, with special tokens, as lists; plmcore reads its corpus as well. Its collators give PyTorch tensors by
default, and NumPy arrays when asked; it has none for the other objectives. The step is forward, backward and AdamW of 12 x 64 tokens.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import statistics
import sys

if __package__ in (None, ""):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np
from contest import machine_line, measure

from objectives import cases

FASTER, SHARE = 10.0, 0.05  # what the project has set itself


def ours(case: str, batch: int, length: int):
    from plmcore import objectives

    family, settings = cases.OBJECTIVES[case]
    tokenizer = cases.tokenizer(family)
    corpus = cases.corpus(tokenizer)
    data = (corpus, corpus, tokenizer) if case == "translation" else (corpus, tokenizer)
    objective = objectives.make(case.split()[0], *data, length=length, **settings)
    rng, n = np.random.default_rng(0), len(objective)
    return lambda: objective.batch(rng.integers(0, n, batch), seed=0, epoch=0)


def theirs(case: str, batch: int, length: int):
    """The collator's calls for PyTorch and for NumPy."""
    import transformers

    name, settings = cases.COLLATORS[case]
    made = cases.tokenizer(cases.OBJECTIVES[case][0])
    roles = {f"{role}_token": token for role, token in made.roles.items() if role != "unk"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made.backend.native, **roles)
    fast.pad_token = fast.pad_token or fast.eos_token
    rng = np.random.default_rng(0)
    plain = np.setdiff1d(np.arange(made.vocab_size), made.special_ids)
    bodies = [rng.choice(plain, length - made.format.added(False)).tolist() for _ in range(64)]
    examples = [made.build(body)[0].tolist() for body in bodies]
    features = [{"input_ids": ids} for ids in examples]
    if case == "translation":
        features = [{"input_ids": ids, "labels": ids} for ids in examples]
    if "words" in case:
        words = made.word_starts
        for f in features:
            edges = np.cumsum([3 * bool(words[i]) + 3 for i in f["input_ids"]])
            f["offset_mapping"] = [(int(e) - 3, int(e)) for e in edges]
            f["special_tokens_mask"] = [int(i in set(made.special_ids.tolist())) for i in f["input_ids"]]

    def call(kind: str):
        collator = getattr(transformers, name)(fast, return_tensors=kind, **settings)
        return lambda: collator([dict(features[i]) for i in rng.integers(0, 64, batch)])

    return call("pt"), call("np")


def step():
    """A training step of `gpt2 tiny`, on this process's threads."""
    import plmcore as plm
    from plmcore import optim

    config = dict(model_type="gpt2", n_layer=4, n_embd=128, n_head=4, n_positions=64, vocab_size=cases.VOCABULARY)
    lm = plm.from_config(config | dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0), "causal-lm")
    optimizer = optim.AdamW(lm.parameters(), lr=1e-3)
    ids = np.random.default_rng(0).integers(0, cases.VOCABULARY, (12, 64))

    def run():
        optimizer.zero_grad()
        lm(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()

    return run


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="cases whose names have one of these"
    )
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=0.2, help="of each measurement")
    args = arguments.parse_args()
    has_peer = importlib.util.find_spec("transformers") is not None
    print(machine_line(["plmcore", "numpy", "transformers", "torch"]))
    train = step()
    step_time = statistics.median(measure(train, 1.0) for _ in range(args.rounds))
    print(f"a step of gpt2 tiny: {1e3 * step_time:.1f} ms\n")
    print(
        f"{'objective':20}{'batch':>15}{'ms':>8}{'tokens/s':>12}{'collator: torch':>17}{'numpy':>14}{'of a step':>11}"
    )
    missed = 0
    for case in cases.OBJECTIVES:
        if not any(text in case for text in args.only):
            continue
        for size, (batch, length) in cases.SIZES.items():
            run = ours(case, batch, length)
            peers = theirs(case, batch, length) if has_peer and case in cases.COLLATORS else ()
            times, peer_times = [], [[] for _ in peers]
            for _ in range(args.rounds):
                times.append(measure(run, args.seconds))
                for peer, found in zip(peers, peer_times):
                    found.append(measure(peer, args.seconds))
            time, share = statistics.median(times), None
            if size.startswith("tiny"):
                share = time / step_time
            ratios = [statistics.median(p / t for p, t in zip(found, times)) for found in peer_times]
            shown = [f"{1e3 * statistics.median(p):.2f} ms, {r:.1f}x" for p, r in zip(peer_times, ratios)] or ["–", "–"]
            bad = bool(ratios and ratios[0] < FASTER) or bool(share and share > SHARE)
            missed += bad
            print(
                f"{case:20}{size:>15}{1e3 * time:8.2f}{batch * length / time:12,.0f}{shown[0]:>17}{shown[1]:>17}"
                + (f"{100 * share:8.1f}%" if share else "")
                + (" *" if bad else "")
            )
    print(
        f"\n* less than {FASTER:.0f} times the default collator's rate, or more than {SHARE:.0%} of the step: {missed}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
