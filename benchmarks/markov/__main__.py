"""Prints the best possible scores of a chain: python benchmarks/markov [--states 20] [--seed 0]"""

from __future__ import annotations

import argparse
import math
import pathlib
import sys

if __package__ in (None, ""):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from markov import Chain, optimum


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--states", type=int, default=20)
    arguments.add_argument("--concentration", type=float, default=0.3)
    arguments.add_argument("--seed", type=int, default=0)
    args = arguments.parse_args()
    chain = Chain.random(args.states, args.concentration, args.seed)
    unigram = -sum(p * math.log(p) for p in chain.start)
    gap = optimum.expected_gap(chain, 3)
    accuracy, loss = optimum.expected_next_sentence(chain)
    order, order_loss = optimum.expected_sentence_order(chain, 10, 10)
    print(f"guessing                     {math.log(args.states):.4f} nats")
    print(f"token frequencies            {unigram:.4f}")
    print(f"causal LM                    {optimum.expected_lm(chain):.4f}")
    print(f"one masked token             {optimum.expected_gap(chain)[0]:.4f}")
    print(f"three missing, left to right {', '.join(f'{x:.4f}' for x in gap)} (mean {gap.mean():.4f})")
    print(f"next sentence                {loss:.4f}, accuracy {accuracy:.4f}")
    print(f"sentence order, 10 + 10      {order_loss:.4f}, accuracy {order:.4f}")


if __name__ == "__main__":
    main()
