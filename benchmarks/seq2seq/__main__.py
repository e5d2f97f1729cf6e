"""Attentional translation with recurrent networks, 4 beams: plmcore's search against a loop in torch.

    python benchmarks/seq2seq [--threads 1] [--rounds 6] [--write]

Both have the same weights, random ones, and write 30 tokens for every sentence. plmcore must give torch's
sentences torch's scores, and both must write the same, but for a few that rounding decides. Then they run in
turns. Times are those of the processor, so that a busy machine does no harm.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import contest

HERE = pathlib.Path(__file__).resolve().parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- benchmarks/seq2seq: begin -->", "<!-- benchmarks/seq2seq: end -->"
TARGET = 3.0
LUONG = dict(cell="lstm", encoder_layers=2, decoder_layers=2, attention="general", input_feeding=True)
BAHDANAU = dict(cell="gru", encoder_layers=1, decoder_layers=1, attention="bahdanau", bidirectional=True)
MODELS = {  # of Multi30k's size, and of Luong's half
    "LSTM 2 × 256, general, fed; 6,000 words": dict(LUONG, vocab_size=6000, d_embed=256, d_hidden=256),
    "GRU 1 × 256, Bahdanau; 6,000 words": dict(BAHDANAU, vocab_size=6000, d_embed=256, d_hidden=256),
    "LSTM 2 × 500, general, fed; 10,000 words": dict(LUONG, vocab_size=10_000, d_embed=500, d_hidden=500),
    "GRU 1 × 500, Bahdanau; 10,000 words": dict(BAHDANAU, vocab_size=10_000, d_embed=500, d_hidden=500),
}
SENTENCES, WORDS = (1, 16), 20


def write_model(folder: pathlib.Path, config: dict) -> None:
    import plmcore as plm

    plm.seed(0)
    lm = plm.from_config({"model_type": "rnn-seq2seq", "init_range": 0.1, **config}, "seq2seq-lm")
    # Scores of random weights lie close together, and rounding would decide between them.
    plm._core.assign(lm.model.out.W_s, lm.model.out.W_s.detach() * 20.0)
    lm.save(folder)


def measure(args: argparse.Namespace) -> list[tuple[str, ...]]:
    lines = []
    rng = np.random.default_rng(0)
    for name, config in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            write_model(pathlib.Path(folder), config)
            for threads in args.threads:
                with contest.field(HERE / "worker.py", ("plmcore", "torch"), threads) as sides:
                    for side in sides.values():
                        side.ask("load", folder)
                    for B in SENTENCES:
                        ids = rng.integers(3, config["vocab_size"], (B, WORDS))
                        (a, _), (b, total) = (side.ask("output", ids) for side in sides.values())
                        contest.compare(name, [sides["plmcore"].ask("scores", folder, ids, b)], [total], 1e-5)
                        # Where two beams are as likely but for rounding, the searches may part.
                        if (same := (a == b).all(1).mean()) < 0.8:
                            raise contest.ContestError(f"{name}: only {same:.0%} of the sentences agree")
                        timed = lambda library: sides[library].ask("seconds", ids)
                        times = contest.alternate(list(sides), args.rounds, 0.0, timed)
                        found = contest.ratios(times["plmcore"], times["torch"])
                        spread = f"{found['ratio']:.2f} ({found['low']:.2f} to {found['high']:.2f})"
                        verdict = contest.verdict(found, TARGET)
                        ms = f"{1000 * sorted(times['plmcore'])[len(times['plmcore']) // 2]:.0f}"
                        lines.append((name, str(B), str(threads), ms, spread, verdict))
                        print(*lines[-1], sep="  ", flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks/seq2seq", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/README.md")
    args = parser.parse_args()
    head = ("model", "sentences", "threads", "ms of plmcore", "torch / plmcore", f"at least {TARGET:g}")
    rows = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *measure(args))]
    machine = contest.machine_line(["plmcore", "torch"])
    text = "\n".join(rows) + f"\n\nThe ratio is {contest.SPREAD}. {machine}."
    print(f"\n{text}")
    if args.write:
        contest.write_between(README, BEGIN, END, text)


if __name__ == "__main__":
    main()
