"""plmcore's models against transformers (eager, sdpa), ONNX Runtime and CTranslate2 (float32) on the CPU,
with random weights.

    python benchmarks/models --threads 2 1 --json models.json
    python benchmarks/models --only BERT-base --threads 2
    python benchmarks/models --from models.json again.json --write

Each library runs in a process of its own, same thread count, in alternating rounds with a pause; outputs are
compared before anything is timed. Training is against eager PyTorch with its fused AdamW, in fresh processes
whose peak memory is reported; loading is timed in fresh processes, from the call that loads to the first
output, imports not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

from models import table
from models.cases import CASES, PACKAGES, Case, Forward, Load, Train

HERE = Path(__file__).resolve().parent
WORKER = HERE / "worker.py"
README = HERE.parent / "README.md"
VERSIONS = ("plmcore", "torch", "transformers", "onnxruntime", "ctranslate2", "numpy")


def installed() -> tuple[list[str], list[str]]:
    """The peers that can run, and a line for each that cannot."""
    present, lines = [], []
    for peer, modules in PACKAGES.items():
        missing = [pip for module, pip in modules.items() if importlib.util.find_spec(module) is None]
        if missing:
            lines.append(f"{table.TITLES[peer]} is skipped: pip install {' '.join(missing)}")
        else:
            present.append(peer)
    return present, lines


class Models:
    """The models that the cases need, written on first use into a folder."""

    def __init__(self, folder: Path, layers: int, present: list[str]):
        self.folder, self.layers, self.present = folder, layers, present

    def __call__(self, case: Case) -> Path:
        folder = self.folder / (case.size + (f"-{self.layers}-layers" if self.layers else ""))
        peers = [p for p in case.peers if p in self.present]
        if not all((folder / p).exists() for p in ("transformers", *peers)):
            print(f"writing {case.size} for {', '.join(peers)}", file=sys.stderr, flush=True)
            command = [
                sys.executable,
                str(HERE / "write.py"),
                case.size,
                str(folder),
                str(self.layers),
                *peers,
            ]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                raise contest.ContestError(f"{case.size} could not be written:\n{done.stdout[-3000:]}")
        return folder


def compare_all(case: Case, outputs_of: Callable[[str], list], libraries: list[str], args) -> float:
    """The largest difference of plmcore from a peer.

    Once in a run: plmcore's bits are the same for any number of threads.
    """
    if case.name in args.compared:
        return args.compared[case.name]
    outputs = {name: outputs_of(name) for name in libraries}
    ours, errors = outputs["plmcore"], [0.0]
    for peer, theirs in outputs.items():
        if peer != "plmcore":
            for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
                tolerance = case.tolerance if i < 2 else case.step_tolerance
                errors.append(contest.compare(case.name, [a], [b], tolerance, ("plmcore", peer)))
    args.compared[case.name] = max(errors)
    return max(errors)


@contextlib.contextmanager
def loaded(case: Forward | Train, folder: Path, libraries: list[str], threads: int):
    """The contestants, with the case's model."""
    with contest.field(WORKER, libraries, threads) as sides:
        for side in sides.values():
            side.ask("load", case.name, folder)
        yield sides


def pairs_of(times: dict[str, list]) -> dict[str, dict]:
    return {
        peer: {"ours": times["plmcore"], "theirs": theirs}
        for peer, theirs in times.items()
        if peer != "plmcore"
    }


def targets_of(case: Case) -> list[tuple[str, float]]:
    return [(t.peer, t.ratio) for t in case.targets]


def alternate(case: Case, args, names: Sequence[str], timed) -> dict[str, dict]:
    """The times of plmcore and of each peer, with more rounds while a target is neither met nor missed."""
    tied = lambda times: table.is_tied({"pairs": pairs_of(times), "targets": targets_of(case)})
    return pairs_of(contest.alternate(names, args.rounds, args.pause, timed, args.limit, tied))


def run_forward(case: Forward, folder: Path, libraries: list[str], threads: int, args) -> dict:
    with loaded(case, folder, libraries, threads) as sides:
        error = compare_all(case, lambda name: sides[name].ask("outputs"), libraries, args)
        rotations = [("plmcore", peer) for peer in libraries[1:]] if args.pairs else [libraries]
        pairs = {}
        for names in rotations:
            pairs |= alternate(case, args, names, lambda n: sides[n].ask("time", args.seconds))
    return {"error": error, "pairs": pairs}


def run_train(case: Train, folder: Path, libraries: list[str], threads: int, args) -> dict:
    """Compares in processes of their own: those that are timed do nothing but train, so that their peak
    memory is that of training.
    """
    error = args.compared.get(case.name)
    if error is None:
        with loaded(case, folder, libraries, threads) as sides:
            error = compare_all(case, lambda name: sides[name].ask("outputs"), libraries, args)
    with loaded(case, folder, libraries, threads) as sides:
        step = lambda name: sides[name].ask("time", 0.0)
        for name in libraries:
            step(name)  # the first allocates
        pairs = alternate(case, args, libraries, step)
        memory = {name: side.ask("memory") for name, side in sides.items()}
    return {"error": error, "pairs": pairs, "memory": memory, "memory_target": case.memory}


def run_load(case: Case, folder: Path, libraries: list[str], threads: int, args) -> dict:
    def fresh(name: str) -> tuple[list, float]:
        with contest.field(WORKER, [name], threads) as sides:
            return sides[name].ask("first", case.name, folder)

    # Also brings the file into memory.
    error = compare_all(case, lambda name: fresh(name)[0], libraries, args)
    return {"error": error, "pairs": alternate(case, args, libraries, lambda name: fresh(name)[1])}


RUN = {Forward: ("forward", run_forward), Train: ("train", run_train), Load: ("load", run_load)}


def run_case(case: Case, models: Models, threads: int, args) -> dict:
    libraries = ["plmcore", *(p for p in case.peers if p in models.present)]
    kind, run = RUN[type(case)]
    result = {"case": case.name, "kind": kind, "threads": threads, "targets": targets_of(case)}
    return result | run(case, models(case), libraries, threads, args)


def run_all(args, models: Models, run: dict) -> list[str]:
    """Adds the results to the run; returns what failed."""
    results, failed = run["results"], []
    for threads in args.threads:
        kind = None
        for case in CASES.values():
            if args.only and not any(text.lower() in case.name.lower() for text in args.only):
                continue
            try:
                result = run_case(case, models, threads, args)
            except contest.ContestError as e:
                failed.append(f"{case.name}, {contest.count_of(threads)}: {e}")
                print(f"FAILED {failed[-1]}", flush=True)
                continue
            results.append(result)
            if result["kind"] != kind:
                kind = result["kind"]
                print(f"\n{table.KINDS[kind]}, {contest.count_of(threads)}\n{table.top(kind)}")
            for texts in table.cells(result):
                print(table.line(texts, kind), f" error {result['error']:.0e}", flush=True)
            if args.json:
                Path(args.json).write_text(json.dumps(run, indent=1))
    return failed


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/models", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=[], help="run the cases whose name contains one of these"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--limit",
        type=float,
        default=30.0,
        help=f"seconds of a case after which no new round begins (two are run in any case); {contest.MORE} "
        "times as many for a tie",
    )
    parser.add_argument("--seconds", type=float, default=0.5, help="time per measurement of a forward case")
    parser.add_argument(
        "--pause", type=float, default=0.4, help="seconds between contestants, for spinning threads to end"
    )
    parser.add_argument(
        "--pairs", action="store_true", help="plmcore and one peer at a time instead of the whole field"
    )
    parser.add_argument(
        "--torch-adamw", choices=("fused", "default"), default="fused", help="which AdamW of torch's"
    )
    parser.add_argument("--folder", type=Path, help="keep the models here instead of in a temporary folder")
    parser.add_argument("--json", help="write the results here, after each case")
    parser.add_argument("--write", action="store_true", help="write the tables to benchmarks/README.md")
    parser.add_argument(
        "--from", nargs="+", dest="runs", metavar="JSON", help="show earlier results, run nothing"
    )
    # To try the benchmark itself.
    parser.add_argument("--layers", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.compared = {}  # case -> error
    if args.write and (args.layers or args.only):
        parser.error(
            "--write wants all cases at their full size; to mend single rows, --json each run and "
            "--from them all"
        )
    return args


def settings(args, skipped: list[str]) -> list[str]:
    """What a reader of the table must know beside the machine."""
    remarks = [f"{text}." for text in skipped]
    if args.torch_adamw != "fused":
        remarks.append("PyTorch trains with its default AdamW, not the fused one.")
    if args.pairs:
        remarks.append("plmcore ran with one peer at a time.")
    return remarks


def measure(args) -> tuple[dict, list[str]]:
    """A run, and what failed in it."""
    present, skipped = installed()
    run = {
        "machine": contest.machine_line(VERSIONS),
        "layers": args.layers,
        "remarks": settings(args, skipped),
        "results": [],
    }
    print("\n".join([run["machine"], *run["remarks"]]), flush=True)
    if "transformers" not in present:
        raise SystemExit("the models are written by transformers: there is nothing to run without it")
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    os.environ["BENCHMARK_TORCH_ADAMW"] = args.torch_adamw
    place = contextlib.nullcontext(args.folder) if args.folder else tempfile.TemporaryDirectory()
    with place as folder:
        failed = run_all(args, Models(Path(folder), args.layers, present), run)
    return run, failed


def main() -> None:
    args = arguments()
    if args.runs:
        run, failed = table.merge([json.loads(Path(path).read_text()) for path in args.runs]), []
        print(table.markdown(run["machine"], run["results"], run["remarks"]))
    else:
        run, failed = measure(args)
    print(f"\n{table.summary(run['results'])}, {len(failed)} failed")
    if failed:
        raise SystemExit("\n".join(failed))
    if args.write:
        table.publish(README, run)


if __name__ == "__main__":
    main()
