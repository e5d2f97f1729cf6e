"""Text and rows of token ids, for plmcore.data and plmcore.objectives."""

from collections.abc import Sequence

import numpy

def documents(data: bytes, continues: bool) -> list[str]:
    """
    What lies between the blank lines of UTF-8. continues: the first is the rest of a document, from a line break on, or empty.
    """

def sentences(text: str) -> list[str]:
    """
    The sentences of a text; put together they are the text. plmcore.data.sentences has the rule.
    """

def take(
    ids: numpy.ndarray,
    ends: numpy.ndarray | None,
    separator: int,
    starts: numpy.ndarray,
    lengths: numpy.ndarray,
    fill: int,
    out: numpy.ndarray,
) -> None:
    """
    out[b, t] = what stands at starts[b] + t in documents on end, with a separator before each of `ends`; `fill` from lengths[b] on.  ids uint16 or uint32 [tokens], others int64, out [B, T]
    """

def join(rows: list[numpy.ndarray], vocabulary: int, out: numpy.ndarray) -> None:
    """
    The ids of all rows on end; each must be below the size of the vocabulary.  rows int32 or int64 [n] each, out uint16 or uint32
    """

def lay_out(
    texts: Sequence[numpy.ndarray | int],
    lengths: Sequence[numpy.ndarray],
    fixed: Sequence[Sequence[int]],
    right: bool,
    fill: int,
    out: numpy.ndarray,
) -> None:
    """
    Each row of out [B, T] is fixed[0], lengths[0][b] of the first text [B, width] (or of a number), fixed[1], ..., at the left or right, and `fill` elsewhere.
    """

def uniform(keys: numpy.ndarray, out: numpy.ndarray) -> None:
    """
    out[b, t] = plmcore.draws.uniform(keys[b], t), or out[b] = plmcore.draws.uniform(keys[b]).  keys uint64 [B], out float64 [B, T] or [B]
    """

def hide(
    ids: numpy.ndarray,
    chosen: numpy.ndarray,
    u: numpy.ndarray,
    below: float,
    mask_share: float,
    random_share: float,
    mask: int,
    vocabulary: int,
    ignored: int,
    hidden: numpy.ndarray,
    labels: numpy.ndarray,
) -> None:
    """
    hidden: ids, but the chosen ones become by u / below in [0, 1) the mask, any token or stay; labels: the chosen ids, `ignored` elsewhere.  chosen bool, u float64, others int64, all [B, T]
    """

def mark_spans(
    sizes: numpy.ndarray,
    shifts: numpy.ndarray,
    above: int,
    below: int,
    begins: numpy.ndarray,
    lengths: numpy.ndarray,
    out: numpy.ndarray,
) -> None:
    """
    out: the tokens of spans, one after the other, each with a stretch of above / below as many tokens of its own in which it begins `shifts` later, at the next place of `begins`.  sizes, shifts int64 [B, K]; begins, out bool [B, T]; lengths int64 [B]
    """

def choose_units(
    starts: numpy.ndarray, able: numpy.ndarray, keys: numpy.ndarray, counts: numpy.ndarray, out: numpy.ndarray
) -> None:
    """
    out: the able tokens of units in the order of their keys, as long as a unit fits into what is left of counts [B].  starts, able, out bool, keys float64 of the k-th unit, all [B, T]
    """

def permutation_mask(rank: numpy.ndarray, plain: numpy.ndarray, targets: numpy.ndarray, out: numpy.ndarray) -> None:
    """
    out[b, i, j] = 1 where i may not see j: where rank[i] <= rank[j], a plain j taken for half lower; i sees itself unless it is a target.  rank float64, plain and targets bool [B, T], out float32 [B, T, T]
    """
