"""This checkout beside another one, for changes that must not make anything slower:

    git worktree add ../before COMMIT     # and the fast build of CONTRIBUTING.md in it
    python benchmarks/before ../before [--only linear GPT-2] [--rounds 5] [--json before.json]

Both run in processes of their own, one thread each, in alternating rounds. The time is that of the processor,
so that other work on the machine counts little. Outputs are compared first: they must have the same bits,
but for those that --tolerance allows.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

from before.cases import CASES

HERE = Path(__file__).resolve().parent
NOW = HERE.parents[1]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("before", type=Path, help="the other checkout, built in place")
    parser.add_argument("--only", nargs="+", default=[], help="cases whose name has one of these")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of one case in a round")
    parser.add_argument("--target", type=float, default=0.98, help="time before / time now")
    parser.add_argument("--tolerance", type=float, default=0.0, help="between the two outputs")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    chosen = [name for name in CASES if not args.only or any(text in name for text in args.only)]
    before, now = str(args.before.resolve()), str(NOW)
    rows = []
    with contest.field(HERE / "worker.py", [now, before], 1) as sides:
        for name in chosen:
            outputs = {side: sides[side].ask("load", name) for side in sides}
            contest.compare(name, outputs[now], outputs[before], args.tolerance, ("this", "the other"))
            times = contest.alternate(
                [now, before],
                args.rounds,
                0.0,
                lambda side: sides[side].ask("time", args.seconds),
                undecided=lambda t: (
                    contest.verdict(contest.ratios(t[now], t[before]), args.target) == contest.TIE
                ),
            )
            found = contest.ratios(times[now], times[before])
            found |= {"case": name, "verdict": contest.verdict(found, args.target), "rounds": len(times[now])}
            rows.append(found)
            print(
                f"{name:<34} {found['ratio']:.3f}  {found['low']:.3f} to {found['high']:.3f}  "
                f"{found['rounds']:>2} rounds  {found['verdict']}",
                flush=True,
            )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    return 1 if any(row["verdict"] == contest.MISSED for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
