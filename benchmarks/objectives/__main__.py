"""How long an objective takes for a batch: beside transformers' data collators, and as a share of a training
step of `gpt2 tiny`.

    python benchmarks/objectives --json objectives.json --write      # all objectives at three sizes
    python benchmarks/objectives --only masked-lm --rounds 9

transformers gets examples that are ready: cut, with special tokens, as lists; plmcore reads its corpus as
well. Its collators give PyTorch tensors by default, and NumPy arrays when asked; it has none for the other
objectives. The step is forward, backward and AdamW of 12 x 64 tokens.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import statistics
import sys

if __package__ in (None, ""):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import contest
import numpy as np
from contest import measure

from objectives import cases, table

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"


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

    config = dict(
        model_type="gpt2", n_layer=4, n_embd=128, n_head=4, n_positions=64, vocab_size=cases.VOCABULARY
    )
    lm = plm.from_config(config | dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0), "causal-lm")
    optimizer = optim.AdamW(lm.parameters(), lr=1e-3)
    ids = np.random.default_rng(0).integers(0, cases.VOCABULARY, (12, 64))

    def run():
        optimizer.zero_grad()
        lm(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()

    return run


def run_case(case: str, size: str, step_time: float, args) -> dict:
    batch, length = cases.SIZES[size]
    run = ours(case, batch, length)
    has_peer = case in cases.COLLATORS and importlib.util.find_spec("transformers") is not None
    peers = dict(zip(("torch", "numpy"), theirs(case, batch, length))) if has_peer else {}
    calls = {"plmcore": run, **peers}
    tied = lambda t: bool(peers) and table.mark(t["plmcore"], t["torch"]) == contest.TIE
    peer_times = contest.alternate(
        list(calls), args.rounds, 0.0, lambda name: measure(calls[name], args.seconds), undecided=tied
    )
    times = peer_times.pop("plmcore")
    share = statistics.median(times) / step_time if size.startswith("tiny") else None
    return {
        "case": case,
        "size": size,
        "tokens": batch * length,
        "times": times,
        "peers": peer_times,
        "share": share,
    }


def main() -> int:
    arguments = argparse.ArgumentParser(
        prog="benchmarks/objectives",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    arguments.add_argument(
        "--only", nargs="+", default=[], metavar="TEXT", help="cases whose names have one of these"
    )
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=0.1, help="of each measurement")
    arguments.add_argument("--json", type=pathlib.Path, help="keep the results in this file")
    arguments.add_argument("--write", action="store_true", help="write the table into benchmarks/README.md")
    args = arguments.parse_args()
    if args.write and args.only:
        raise SystemExit("a part is no measurement of all: --write needs every case")
    found = {"machine": contest.machine_line(["plmcore", "numpy", "transformers", "torch"]), "results": []}
    print(found["machine"])
    train = step()
    found["step"] = statistics.median(measure(train, 1.0) for _ in range(args.rounds))
    print(f"a step of gpt2 tiny: {1e3 * found['step']:.1f} ms", flush=True)
    for case in cases.OBJECTIVES:
        if args.only and not any(text in case for text in args.only):
            continue
        for size in cases.SIZES:
            found["results"].append(run_case(case, size, found["step"], args))
            shown = zip(table.HEAD, table.cells(found["results"][-1]), strict=True)
            print("; ".join(f"{k}: {v}" for k, v in shown), flush=True)
            if args.json:
                args.json.write_text(json.dumps(found, indent=1))
    if args.write:
        contest.write_between(README, table.BEGIN, table.END, table.markdown(found))
    missed = [what for result in found["results"] for what in table.missed(result)]
    for what in missed:
        print(f"missed: {what}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
