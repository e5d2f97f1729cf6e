"""Transformer-XL reads a text of a million tokens: does time grow with the text, and memory not at all?

    python benchmarks/families/growth.py

Each length runs in a process of its own. The time is the processor's, on one thread.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

LENGTHS = (125_000, 250_000, 500_000, 1_000_000)
MEMORY, WINDOW, WORDS = 256, 256, 200
MOST_TIME, MOST_MEMORY = 1.1, 1.1  # per token, and of the peak without the ids themselves


def measure(tokens: int) -> dict[str, float]:
    """Processor seconds of the evaluation, and the growth of the peak, in bytes, beyond 8 for each id."""
    import numpy as np
    import plmcore as plm
    from models.worker import peak_memory
    from plmcore.models.transfo_xl import TransfoXLConfig

    plm.set_num_threads(1)
    plm.seed(0)
    config = TransfoXLConfig(
        vocab_size=WORDS, cutoffs=(), div_val=1, d_model=64, d_embed=64, n_head=2, d_head=32, d_inner=128,
        n_layer=2, mem_len=MEMORY, same_length=False, clamp_len=-1,
    )  # fmt: skip
    lm = plm.from_config(config, "causal-lm").eval()
    ids = np.random.default_rng(0).integers(0, WORDS, tokens)
    lm.perplexity(ids[: 4 * WINDOW], window=WINDOW)
    before, start = peak_memory(), time.process_time()
    found = lm.perplexity(ids, window=WINDOW)
    seconds = time.process_time() - start
    if found.tokens != tokens - 1:
        raise SystemExit(f"{found.tokens} of {tokens} tokens were scored")
    return {"seconds": seconds, "peak": peak_memory(), "grown": peak_memory() - before}


def main() -> int:
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]))))
        return 0
    results = {}
    for tokens in LENGTHS:
        done = subprocess.run(
            [sys.executable, __file__, str(tokens)], check=True, stdout=subprocess.PIPE, text=True
        )
        found = results[tokens] = json.loads(done.stdout)
        each = 1e6 * found["seconds"] / tokens
        print(
            f"{tokens:>9,} tokens: {found['seconds']:6.2f} s, {each:5.2f} us a token, peak "
            f"{found['peak'] / 2**20:.0f} MB, {found['grown'] / 2**20:.1f} of it in the evaluation",
            flush=True,
        )
    first, last = (results[n] for n in (LENGTHS[0], LENGTHS[-1]))
    slower = last["seconds"] / LENGTHS[-1] / (first["seconds"] / LENGTHS[0])
    larger = (last["peak"] - 8 * LENGTHS[-1]) / (first["peak"] - 8 * LENGTHS[0])
    print(
        f"a token of the longest takes {slower:.2f} x as long, and the peak without the ids is {larger:.2f} x"
    )
    return 0 if slower <= MOST_TIME and larger <= MOST_MEMORY else 1


if __name__ == "__main__":
    raise SystemExit(main())
