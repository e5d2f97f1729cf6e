"""What a step of GPT-2 costs outside of its kernels: the search, the Python of the model, masks, allocations,
dispatch.

A model of the same twelve blocks that is sixteen numbers wide runs the same calls, and its kernels have next
to nothing to do: the processor time of its step is what the calls cost, and the share of it in a step of the
real size is an upper bound. Processor time, so that a busy machine does no harm.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

ROUNDS, TOKENS = 5, 64


def seconds_per_step(lm) -> float:
    """Of batch 1, over the steps after the prompt."""
    ids = np.arange(10, 42)[None]
    rules = dict(eos_token_id=None, num_beams=1)
    times = []
    for _ in range(ROUNDS):
        spent = []
        for new in (1, 1 + TOKENS):
            start = time.process_time()
            lm.generate(ids, max_new_tokens=new, **rules)
            spent.append(time.process_time() - start)
        times.append((spent[1] - spent[0]) / TOKENS)
    return statistics.median(times)


def measure() -> dict[str, float]:
    """Seconds: of a step, and of the calls in it."""
    import plmcore
    from plmcore.models.gpt2 import GPT2Config

    plmcore.set_num_threads(1)
    small = plmcore.from_config(GPT2Config(n_embd=16, n_head=1, vocab_size=64), "causal-lm").eval()
    calls = seconds_per_step(small)
    return {"calls": calls, "step": seconds_per_step(plmcore.from_config(GPT2Config(), "causal-lm").eval())}
