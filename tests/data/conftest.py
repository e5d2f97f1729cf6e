"""Puts this folder on the path: worker processes import the fake tokenizer from it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
