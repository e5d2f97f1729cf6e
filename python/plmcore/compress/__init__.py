"""Models made smaller: weights of fewer bits. docs/compression.md"""

from plmcore.compress.comparing import Comparison, compare
from plmcore.compress.quantizing import quantize
from plmcore.compress.rounding import round_rows, row_scales

__all__ = ["Comparison", "compare", "quantize", "round_rows", "row_scales"]
