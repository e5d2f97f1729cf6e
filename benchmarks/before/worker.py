"""One checkout in its own process: answers ("load", case) with outputs and ("time", seconds) with processor
seconds per call.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(sys.argv[1]) / "python"))
import contest
import plmcore

from before.cases import CASES


class Checkout:
    def __init__(self):
        if not Path(plmcore.__file__).is_relative_to(sys.argv[1]):
            raise SystemExit(f"{sys.argv[1]} is not the checkout that was imported: {plmcore.__file__}")
        plmcore.set_num_threads(int(sys.argv[2]))

    def load(self, name: str) -> list:
        plmcore.seed(0)
        self.call = CASES[name]()
        return [contest.sample(x.numpy()) for x in self.call()]

    def time(self, seconds: float) -> float:
        count, start = 0, time.process_time()
        while (spent := time.process_time() - start) < seconds or count < 2:
            self.call()
            count += 1
        return spent / count


if __name__ == "__main__":
    checkout = Checkout()
    contest.serve({"load": checkout.load, "time": checkout.time})
