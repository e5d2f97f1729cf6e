"""Text to a corpus against the tokenizer library alone, and random batches from a large corpus.

    python benchmarks/corpus --families t5 --rounds 7 --json t5.json
    python benchmarks/corpus --text wiki.txt --tokenizer bert=DIR gpt2=DIR    # others
    python benchmarks/corpus --batches 1000 --json batches.json
    python benchmarks/corpus --from t5.json batches.json --write    # the tables into benchmarks/README.md

PLM_DATA or --data names the folder with texts and vocabularies.

The library has documents or sentences in memory, runs its own threads in the quicker of its forms and throws
its results away; plmcore reads the file, cuts it into the same documents and sentences, encodes, and writes
ids, boundaries and checksums to the disk. The ids must be the same.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

from corpus import table

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
DATA = Path(os.environ.get("PLM_DATA", HERE.parents[2] / "shared" / "data"))
TEXTS = ("wikitext-2/wiki.valid.raw", "wikitext-2/wiki.test.raw")
VOCABULARIES = {  # family -> the file in the data folder by the name that a model directory has for it
    "t5": {"spiece.model": "vocab-t5/t5_tokenizer_base.model"},
    "bert": {"vocab.txt": "vocab-bert/bert-base-uncased-vocab.txt"},
    "gpt2": {"vocab.json": "vocab-gpt2/vocab.json", "merges.txt": "vocab-gpt2/merges.txt"},
}
STEPS, THREADS = 2000, 1  # of the random batches


def repeated(sources: list[Path], megabytes: int, out: Path) -> Path:
    """Texts as often as it takes to reach a size."""
    data = b"".join(source.read_bytes() + b"\n\n" for source in sources)
    with open(out, "wb") as f:
        while f.tell() < megabytes * 10**6:
            f.write(data[: megabytes * 10**6 - f.tell()].rpartition(b"\n")[0] + b"\n\n")
    return out


def model_directory(family: str, data: Path, folder: Path) -> Path:
    made = folder / family
    made.mkdir(exist_ok=True)
    for name, source in VOCABULARIES[family].items():
        (made / name).write_bytes((data / source).read_bytes())
    return made


def seconds_of(taken: dict[str, list]) -> dict[str, list[float]]:
    return {name: [seconds for seconds, _ in rounds] for name, rounds in taken.items()}


def run(text: Path, family: str, tokenizer: Path, cut: str, args) -> dict:
    names = ("library", "plmcore")
    with contest.field(HERE / "worker.py", names, args.cores) as sides:
        for side in sides.values():
            side.ask("load", str(text), str(tokenizer), family, cut)
        sums = {name: side.ask("checksum") for name, side in sides.items()}  # and the first call of each
        if len(set(sums.values())) > 1:
            raise contest.ContestError(f"{family}, {cut}: different ids, by number and checksum: {sums}")
        tied = lambda taken: table.mark({"times": seconds_of(taken)}) == contest.TIE
        taken = contest.alternate(
            names, args.rounds, 0.5, lambda name: sides[name].ask("time"), undecided=tied
        )
        memory = sides["plmcore"].ask("memory")
    return {
        "family": family,
        "cut": cut,
        "megabytes": text.stat().st_size / 1e6,
        "cores": args.cores,
        "memory": memory,
        "times": seconds_of(taken),
        "cpu": {name: statistics.median(cpu for _, cpu in taken[name]) for name in names},
    }


def measured(args) -> dict:
    found = {
        "machine": contest.machine_line(["plmcore", "tokenizers", "sentencepiece", "numpy"]),
        "results": [],
    }
    print(found["machine"], flush=True)
    if args.batches:
        command = [sys.executable, str(HERE / "batches.py"), *map(str, (args.batches, STEPS, THREADS))]
        found["batches"] = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
        print(table.batches(found["batches"]))
        return found
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = dict(pair.split("=", 1) for pair in args.tokenizer)
        tokenizers = {family: Path(path) for family, path in given.items()} or {
            family: model_directory(family, args.data, folder) for family in args.families
        }
        for megabytes in args.megabytes:
            text = repeated(args.text or [args.data / t for t in TEXTS], megabytes, folder / "text.txt")
            for family, tokenizer in tokenizers.items():
                for cut in args.sentences:
                    found["results"].append(run(text, family, tokenizer, cut, args))
                    cells = zip(table.HEAD, table.cells(found["results"][-1]), strict=True)
                    print("; ".join(f"{k}: {v}" for k, v in cells), flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks/corpus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="where wikitext-2 and the vocabularies lie")
    parser.add_argument("--families", nargs="+", choices=VOCABULARIES, default=list(VOCABULARIES))
    parser.add_argument("--text", type=Path, nargs="+", help="other texts, repeated up to the size")
    parser.add_argument("--tokenizer", nargs="+", default=[], metavar="FAMILY=DIR", help="other tokenizers")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[8, 24])
    parser.add_argument(
        "--sentences", nargs="+", default=["document", "rule"], help="how documents are cut, for both sides"
    )
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--batches", type=int, metavar="MEGABYTES", help="instead: random batches from a corpus of this size"
    )
    parser.add_argument("--json", type=Path, help="keep the results in this file")
    parser.add_argument(
        "--from", dest="earlier", type=Path, nargs="+", help="no measurement: take these results"
    )
    parser.add_argument("--write", action="store_true", help="write the table into benchmarks/README.md")
    args = parser.parse_args()
    runs = [json.loads(path.read_text()) for path in args.earlier] if args.earlier else [measured(args)]
    if args.json:
        args.json.write_text(json.dumps(runs[0], indent=1))
    if args.write:
        contest.write_between(README, table.BEGIN, table.END, table.markdown(runs))
    missed = [what for found in runs for what in table.missed(found)]
    for what in missed:
        print(f"missed: {what}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
