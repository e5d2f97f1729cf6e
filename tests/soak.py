"""Generations without end: memory must stay flat, whatever the options, and whatever goes wrong in between.

python tests/soak.py --count 10000
"""

import argparse
import gc
import itertools
import os
import pathlib
import sys

import numpy as np
import plmcore as plm
from generating_models import EOS, PAD, V, model

FAMILIES = ("gpt2", "gpt3", "t5", "xlnet")
RULES = (
    dict(),
    dict(num_beams=4, num_return_sequences=2),
    dict(num_beams=4, num_beam_groups=2, diversity_penalty=0.5, no_repeat_ngram_size=2),
    dict(do_sample=True, num_return_sequences=3, top_p=0.9),
    dict(repetition_penalty=1.3, output_scores=True),
    dict(num_beams=2, trace=True),
    dict(prefix_allowed_tokens_fn=lambda prompt, ids: range(3, V)),
)


def fails(prompt, ids):
    raise KeyError("inside")


WRONG = (  # what is refused before the search, in its midst, and by a callback
    (dict(max_new_tokens=0), ValueError),
    (dict(num_beams=2, do_sample=True), ValueError),
    (dict(bad_words_ids=[[t] for t in range(V)], eos_token_id=None, forced_eos_token_id=None), ValueError),
    (dict(prefix_allowed_tokens_fn=fails), KeyError),
)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def soak(count: int, report=None) -> tuple[int, int]:
    """(growth of resident memory, growth of the tensors in use) in bytes, from the first fifth of `count`
    generations to the last.
    """
    rng = np.random.default_rng(3)
    models = [model(family) for family in FAMILIES]
    turns = itertools.cycle(itertools.product(models, RULES))
    for lm in models:  # the first run with more than eight rows packs the weights
        lm.generate([[3] * 8] * 5, max_new_tokens=8, num_beams=4)
    before = None
    for i in range(count):
        lm, rules = next(turns)
        prompts = [list(rng.integers(3, V, rng.integers(1, 9))) for _ in range(rng.integers(1, 5))]
        lm.generate(
            prompts,
            max_new_tokens=int(rng.integers(1, 9)),
            eos_token_id=EOS,
            pad_token_id=PAD,
            seed=i,
            **rules,
        )
        if i % 5 == 0:
            wrong, error = WRONG[i // 5 % len(WRONG)]
            try:
                lm.generate(prompts, **wrong)
            except error:
                pass
            else:
                raise AssertionError(f"{wrong} was not refused")
        if i == count // 5:
            before = settled()
        if report is not None and i % 500 == 0:
            report(i)
    after = settled()
    return after[0] - before[0], after[1] - before[1]


def settled() -> tuple[int, int]:
    gc.collect()
    return resident(), plm.memory_stats()["in_use"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--most", type=float, default=4.0, help="MB that resident memory may grow by")
    args = parser.parse_args()
    grown, tensors = soak(args.count, lambda i: print(f"{i:6d}  {resident() / 1e6:.1f} MB", flush=True))
    print(
        f"{args.count} generations: resident memory grew by {grown / 1e6:.2f} MB, tensors by {tensors} bytes"
    )
    sys.exit(grown > args.most * 1e6 or tensors != 0)
