"""Text to a corpus against the tokenizer library alone, and random batches from a large corpus.

    python benchmarks/corpus --text wiki.txt --tokenizer bert=vocab-bert gpt2=vocab-gpt2 t5=vocab-t5 --megabytes 50
    python benchmarks/corpus --batches 1000

The library has documents or sentences in memory and throws its results away; plmcore reads the file, cuts it into the same documents and
sentences, encodes in as many processes, and writes ids, boundaries and checksums. Both must count the same tokens. The ratio is that of rates.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

WORKER = Path(__file__).with_name("worker.py")
BATCHES = Path(__file__).with_name("batches.py")
TARGET = 0.95


def repeated(source: Path, megabytes: int, out: Path) -> Path:
    """A text as often as it takes to reach a size."""
    data = source.read_bytes() + b"\n\n"
    with open(out, "wb") as f:
        while f.tell() < megabytes * 10**6:
            f.write(data)
    return out


def run(text: Path, family: str, tokenizer: str, cut: str, cores: int, rounds: int) -> dict:
    names = ("library", "plmcore")
    with contest.field(WORKER, names, cores) as sides:
        for side in sides.values():
            side.ask("load", str(text), tokenizer, family, cut)
        taken = contest.alternate(names, rounds, 0.5, lambda name: sides[name].ask("time"))
        memory = sides["plmcore"].ask("memory")
        counts = {name: side.ask("tokens") for name, side in sides.items()}
    if len(set(counts.values())) > 1:
        raise contest.ContestError(f"{family}: different numbers of tokens: {counts}")
    times = {name: [seconds for seconds, _ in taken[name]] for name in names}
    computed = {name: statistics.median(cpu for _, cpu in taken[name]) for name in names}
    ratios = contest.ratios(times["plmcore"], times["library"])
    return {"memory": memory, "times": times, "cpu": computed, **ratios}


def line(name: str, size: float, found: dict) -> str:
    ours, theirs = (size / statistics.median(found["times"][side]) for side in ("plmcore", "library"))
    return (
        f"{name:16} {size:4.0f} MB: plmcore {ours:5.2f} MB/s, library {theirs:5.2f} MB/s, ratio {found['ratio']:.2f} ({found['low']:.2f}-{found['high']:.2f}, "
        f"target {TARGET}); processor seconds {found['cpu']['plmcore']:.1f} and {found['cpu']['library']:.1f}; "
        f"memory: parent {found['memory']['parent']:.0f} MB, worker {found['memory']['worker']:.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks/corpus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", type=Path, help="a text file, repeated up to the size")
    parser.add_argument("--tokenizer", nargs="+", default=[], metavar="FAMILY=DIR")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[50])
    parser.add_argument("--sentences", nargs="+", default=["document", "rule"], help="how documents are cut, for both")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, metavar="MEGABYTES", help="random batches from a corpus of this size")
    args = parser.parse_args()
    print(contest.machine_line(["plmcore", "tokenizers", "sentencepiece", "numpy"]))
    for megabytes in args.megabytes if args.text else []:
        with tempfile.TemporaryDirectory() as folder:
            text = repeated(args.text, megabytes, Path(folder) / "text.txt")
            size = text.stat().st_size / 1e6
            for family, _, tokenizer in (pair.partition("=") for pair in args.tokenizer):
                for cut in args.sentences:
                    found = run(text, family, tokenizer, cut, args.cores, args.rounds)
                    print(line(f"{family}, {cut}", size, found), flush=True)
    if args.batches:
        subprocess.run([sys.executable, str(BATCHES), str(args.batches), "2000", "1"], check=True)


if __name__ == "__main__":
    main()
