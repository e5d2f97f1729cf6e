"""Exported models from C++ beside Python's eager path and CTranslate2, with random weights of real sizes.

    python benchmarks/embed --threads 1 2 --json embed.json --folder models

The C++ program (timer.cpp) is built against the installed package with CMake. Each contestant runs in a
process of its own, in alternating rounds. Ids are compared before anything is timed. Of two sessions at once,
each on a thread of its own, the speed next to one session is shown.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest
import numpy as np
import plmcore
from generate.cases import CASES, Case

HERE = Path(__file__).resolve().parent
GENERATE = HERE.parent / "generate"
EAGER, PEER = "plmcore", "ctranslate2"
TARGETS = {EAGER: 1.0, PEER: 1.1}
NAMES = {"GPT-2 124M, batch 1, prompt 32 + 128": "float32", "BERT-base, forward 8x128, int8": "float32"}


class Cpp:
    """timer.cpp, with the calls of a contest.Contestant."""

    def __init__(self, timer: Path, model: Path, case: Case, folder: Path, threads: int):
        ids = folder / "ids.bin"
        ids.write_bytes(case.ids().astype(np.int64).tobytes())
        command = [timer, model, threads, ids, case.batch, case.prompt, case.new]
        pipe: dict[str, Any] = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process = subprocess.Popen([str(c) for c in command], **pipe)

    def ask(self, what: str, *_: object) -> Any:
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        values = [float(x) for x in self.process.stdout.readline().split()]
        if not values:
            raise contest.ContestError(f"timer ended with status {self.process.wait()} on {what}")
        return np.array(values) if what == "outputs" else values[0]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def build(folder: Path) -> Path:
    package = Path(plmcore.__file__).parent
    options = [f"-Dplmcore_ROOT={package / 'cmake'}", "-DCMAKE_BUILD_TYPE=Release"]
    subprocess.run(["cmake", "-S", HERE, "-B", folder, *options], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder], check=True, stdout=subprocess.DEVNULL)
    return folder / "timer"


def write(case: Case, base: Path) -> Path:
    folder = base / case.size
    if not (folder / PEER).exists():
        command = [sys.executable, GENERATE / "write.py", case.size, folder, "0", PEER]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    if not (folder / "model.plm").exists():
        plmcore.export(plmcore.load(folder / "transformers"), folder / "model.plm")
    return folder


def same(case: Case, ours: np.ndarray, eager: np.ndarray) -> bool:
    if case.new:
        return bool((ours == eager.reshape(-1)).all())
    return bool(np.allclose(ours, eager.reshape(-1)[::7919], atol=1e-4))


def run_case(case: Case, folder: Path, timer: Path, threads: int, args: argparse.Namespace) -> dict[str, Any]:
    with contest.field(GENERATE / "worker.py", [EAGER, PEER], threads) as sides:
        for side in sides.values():
            side.ask("load", case.name, folder, NAMES[case.name])
        cpp = Cpp(timer, folder / "model.plm", case, folder, threads)
        everybody: dict[str, Any] = {**sides, "c++": cpp}
        outputs = {name: side.ask("outputs") for name, side in everybody.items()}
        if not same(case, outputs["c++"], outputs[EAGER]):
            raise contest.ContestError(f"{case.name}: C++ and Python differ")
        times = contest.alternate(
            list(everybody), args.rounds, args.pause, lambda name: everybody[name].ask("time", 0.0)
        )
        found: dict[str, Any] = {"case": case.name, "threads": threads, "times": times}
        if threads > 1:
            ask = lambda name: cpp.ask(name)
            found["sessions"] = contest.alternate(["one", "two"], args.rounds, args.pause, ask)
        cpp.close()
    return found


def lines(result: dict[str, Any]) -> list[str]:
    times, shown = result["times"], []
    for peer, target in TARGETS.items():
        found = contest.ratios(times["c++"], times[peer])
        mark = contest.verdict(found, target)
        who = "eager" if peer == EAGER else peer
        ours, count = np.median(times["c++"]), contest.count_of(result["threads"])
        shown.append(
            f"{result['case']:<40} {count}: C++ {ours:.3f} s, "
            f"{found['ratio']:.2f} x {who} ({found['low']:.2f}-{found['high']:.2f}), {target} {mark}"
        )
    if "sessions" in result:
        one, two = (np.array(result["sessions"][k]) for k in ("one", "two"))
        shown.append(f"{result['case']:<40} two sessions: {np.median(2 * one / two):.2f} x one")
    return shown


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pause", type=float, default=0.2)
    parser.add_argument("--folder", type=Path, help="where the models are kept (default: a temporary folder)")
    parser.add_argument("--json", type=Path, help="write all times to this file")
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        timer = build(Path(temporary) / "build")
        for name in NAMES:
            case = replace(CASES[name], weights=NAMES[name])
            folder = write(case, args.folder or Path(temporary))
            for threads in args.threads:
                results.append(run_case(case, folder, timer, threads, args))
                print("\n".join(lines(results[-1])), flush=True)
    if args.json:
        machine = contest.machine_line(("plmcore", PEER))
        args.json.write_text(json.dumps({"machine": machine, "results": results}))


if __name__ == "__main__":
    main()
