"""Learning experiments with a published result: does training reach what it should?

    python benchmarks/learning                       # all of them; PLM_DATA names the data folder
    python benchmarks/learning shakespeare --write   # and keeps the result in results.json

shakespeare: nanoGPT's setting for one processor (4 layers, 4 heads, width 128, block 64, batch 12, 2000 steps, no dropout) on the characters of Tiny Shakespeare, with
random windows and the last tenth held out. Its validation loss is 1.88; what counts here is 1.80 to 1.95.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import tempfile
import time

import plmcore as plm
from plmcore.train import run_directory

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results.json"


def data(*names: str) -> pathlib.Path:
    path = pathlib.Path(os.environ.get("PLM_DATA", HERE.parents[2] / "shared" / "data"), *names)
    if not path.exists():
        raise SystemExit(f"'{path}' is missing: PLM_DATA must name the data folder")
    return path


def shakespeare(out: pathlib.Path, seed: int) -> dict[str, float]:
    changes = ["data.held_out=0.1", "objective.stride=1", "train.evaluate_batches=200", "train.evaluate_every=500"]
    text = data("tinyshakespeare", "input.txt")
    plm.pretrain(
        "gpt2", text=[text], out=out, size="tiny", tokenizer="characters", steps=2000, seed=seed, changes=changes
    )
    losses = [m["eval_loss"] for m in run_directory.read_metrics(out / run_directory.METRICS) if "eval_loss" in m]
    return {"validation loss": round(losses[-1], 4), "from": 1.80, "to": 1.95}


EXPERIMENTS = {"shakespeare": shakespeare}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EXPERIMENTS)} (default: all)")
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--write", action="store_true", help="keep the results in results.json")
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in EXPERIMENTS]:
        parser.error(f"there is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}")
    results, missed = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}, []
    for name in args.names or EXPERIMENTS:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = EXPERIMENTS[name](pathlib.Path(folder, "run"), args.seed)
        results[name] = found | {
            "seed": args.seed, "minutes": round((time.monotonic() - start) / 60, 1), "threads": plm.num_threads(), "machine": platform.machine(),
        }  # fmt: skip
        value = next(iter(found.values()))
        print(f"{name}: {results[name]}", flush=True)
        missed += [name] if not found["from"] <= value <= found["to"] else []
    if args.write:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
