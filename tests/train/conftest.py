"""Puts this folder on the path: tests import the small model as `small`."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
