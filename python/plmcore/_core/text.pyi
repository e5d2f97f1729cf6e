"""Text and rows of token ids, for plmcore.data and plmcore.objectives."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

def documents(data: bytes, continues: bool) -> list[str]:
    """
    What lies between the blank lines of UTF-8. continues: the first is the rest of a document, from a line break on, or empty.
    """

def sentences(text: str) -> list[str]:
    """
    The sentences of a text; put together they are the text. plmcore.data.sentences has the rule.
    """

def take(
    ids: NDArray[Any],
    ends: NDArray[Any] | None,
    separator: int,
    starts: NDArray[Any],
    lengths: NDArray[Any],
    fill: int,
    out: NDArray[Any],
) -> None:
    """
    out[b, t] = what stands at starts[b] + t in documents on end, with a separator before each of `ends`; `fill` from lengths[b] on.  ids uint16 or uint32 [tokens], others int64, out [B, T]
    """

def join(rows: list[NDArray[Any]], vocabulary: int, out: NDArray[Any]) -> None:
    """
    The ids of all rows on end; each must be below the size of the vocabulary.  rows int32 or int64 [n] each, out uint16 or uint32
    """

def lay_out(
    texts: Sequence[NDArray[Any] | int],
    lengths: Sequence[NDArray[Any]],
    fixed: Sequence[Sequence[int]],
    right: bool,
    fill: int,
    out: NDArray[Any],
) -> None:
    """
    Each row of out [B, T] is fixed[0], lengths[0][b] of the first text [B, width] (or of a number), fixed[1], ..., at the left or right, and `fill` elsewhere.
    """

def uniform(keys: NDArray[Any], out: NDArray[Any]) -> None:
    """
    out[b, t] = plmcore.runtime.draws.uniform(keys[b], t), or out[b] = plmcore.runtime.draws.uniform(keys[b]).  keys uint64 [B], out float64 [B, T] or [B]
    """

def hide(
    ids: NDArray[Any],
    chosen: NDArray[Any],
    u: NDArray[Any],
    below: float,
    mask_share: float,
    random_share: float,
    mask: int,
    random: NDArray[Any],
    ignored: int,
    hidden: NDArray[Any],
    labels: NDArray[Any],
) -> None:
    """
    hidden: ids, but the chosen ones become by u / below in [0, 1) the mask, one of `random` or stay; labels: the chosen ids, `ignored` elsewhere.  chosen bool, u float64, random int64 [V], others int64, all [B, T]
    """

def mark_spans(
    sizes: NDArray[Any],
    shifts: NDArray[Any],
    above: int,
    below: int,
    begins: NDArray[Any],
    lengths: NDArray[Any],
    out: NDArray[Any],
) -> None:
    """
    out: the tokens of spans, one after the other, each with a stretch of above / below as many tokens of its own in which it begins `shifts` later, at the next place of `begins`.  sizes, shifts int64 [B, K]; begins, out bool [B, T]; lengths int64 [B]
    """

def choose_units(
    starts: NDArray[Any], able: NDArray[Any], keys: NDArray[Any], counts: NDArray[Any], out: NDArray[Any]
) -> None:
    """
    out: the able tokens of units in the order of their keys, as long as a unit fits into what is left of counts [B].  starts, able, out bool, keys float64 of the k-th unit, all [B, T]
    """

def permutation_mask(
    rank: NDArray[Any], plain: NDArray[Any], targets: NDArray[Any], out: NDArray[Any]
) -> None:
    """
    out[b, i, j] = 1 where i may not see j: where rank[i] <= rank[j], a plain j taken for half lower; i sees itself unless it is a target.  rank float64, plain and targets bool [B, T], out float32 [B, T, T]
    """
