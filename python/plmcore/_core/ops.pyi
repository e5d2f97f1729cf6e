"""Every op as a function; shapes and maths are in each docstring."""

from collections.abc import Sequence
from typing import Literal, overload

from numpy.typing import DTypeLike
from plmcore._core import Dim, Tensor, TensorLike

def full(
    shape: int | Dim | Sequence[int | Dim],
    value: float,
    dtype: DTypeLike = "float32",
    device: str | None = None,
    like: TensorLike | None = None,
) -> Tensor:
    """Every element is `value`. like: a tensor on whose device it is made."""

def arange(
    start: int | Dim,
    stop: int | Dim,
    dtype: DTypeLike = "int64",
    device: str | None = None,
    like: TensorLike | None = None,
) -> Tensor:
    """
    start, start + 1, ..., stop - 1. like: a tensor on whose device it is made.
    """

def one_hot(ids: TensorLike, size: int | Dim, dtype: DTypeLike = "float32") -> Tensor:
    """1 at ids[...] of a new last axis of `size`, 0 elsewhere."""

def cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """
    x in another dtype. Float to integer truncates; anything to bool is x != 0.
    """

def rng_advance(state: TensorLike, by: int | Dim) -> Tensor:
    """(seed, offset) -> (seed, offset + by). state int64 [2]."""

def copy(x: TensorLike) -> Tensor:
    """x in new memory."""

def add(a: TensorLike, b: TensorLike) -> Tensor:
    """a + b, broadcasting."""

def sub(a: TensorLike, b: TensorLike) -> Tensor:
    """a - b, broadcasting."""

def mul(a: TensorLike, b: TensorLike) -> Tensor:
    """a * b, broadcasting."""

def div(a: TensorLike, b: TensorLike) -> Tensor:
    """a / b, broadcasting; floats."""

def pow(a: TensorLike, b: TensorLike) -> Tensor:
    """a to the power b, broadcasting; floats."""

def maximum(a: TensorLike, b: TensorLike) -> Tensor:
    """The larger of a and b, broadcasting; NaN where either is NaN."""

def minimum(a: TensorLike, b: TensorLike) -> Tensor:
    """The smaller of a and b, broadcasting; NaN where either is NaN."""

def affine(x: TensorLike, scale: float = 1.0, shift: float = 0.0) -> Tensor:
    """x * scale + shift with two numbers."""

def equal(a: TensorLike, b: TensorLike) -> Tensor:
    """a == b as bool, broadcasting."""

def not_equal(a: TensorLike, b: TensorLike) -> Tensor:
    """a != b as bool, broadcasting."""

def less(a: TensorLike, b: TensorLike) -> Tensor:
    """a < b as bool, broadcasting."""

def less_equal(a: TensorLike, b: TensorLike) -> Tensor:
    """a <= b as bool, broadcasting."""

def greater(a: TensorLike, b: TensorLike) -> Tensor:
    """a > b as bool, broadcasting."""

def greater_equal(a: TensorLike, b: TensorLike) -> Tensor:
    """a >= b as bool, broadcasting."""

def logical_and(a: TensorLike, b: TensorLike) -> Tensor:
    """a and b, bool, broadcasting."""

def logical_or(a: TensorLike, b: TensorLike) -> Tensor:
    """a or b, bool, broadcasting."""

def logical_not(a: TensorLike) -> Tensor:
    """not a, bool."""

def where(condition: TensorLike, a: TensorLike, b: TensorLike) -> Tensor:
    """a where the bool condition holds, else b; the three broadcast."""

def masked_fill(x: TensorLike, mask: TensorLike, value: float) -> Tensor:
    """value where the bool mask holds, else x; the mask broadcasts to x."""

def sum_to(x: TensorLike, shape: int | Dim | Sequence[int | Dim]) -> Tensor:
    """x summed over the axes along which `shape` would broadcast to it."""

def broadcast_to(x: TensorLike, shape: int | Dim | Sequence[int | Dim]) -> Tensor:
    """x repeated along axes of size 1 and new leading axes."""

def exp(x: TensorLike) -> Tensor:
    """e^x."""

def log(x: TensorLike) -> Tensor:
    """ln x; -inf at 0, NaN below."""

def sqrt(x: TensorLike) -> Tensor:
    """The square root of x."""

def rsqrt(x: TensorLike) -> Tensor:
    """1 / sqrt(x)."""

def abs(x: TensorLike) -> Tensor:
    """|x|."""

def tanh(x: TensorLike) -> Tensor:
    """tanh x."""

def sigmoid(x: TensorLike) -> Tensor:
    """1 / (1 + e^-x)."""

def relu(x: TensorLike) -> Tensor:
    """max(x, 0)."""

def gelu(x: TensorLike, tanh_form: bool = False) -> Tensor:
    """x P(x) with the normal distribution function P, or its tanh form."""

def silu(x: TensorLike) -> Tensor:
    """x sigmoid(x)."""

def sum(x: TensorLike, axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The sum over some axes, or all; integers and bool add up in int64."""

def mean(x: TensorLike, axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The mean over some axes, or all."""

def max(x: TensorLike, axis: int = -1, keepdims: bool = False) -> Tensor:
    """The largest element along an axis; NaN where there is one."""

def min(x: TensorLike, axis: int = -1, keepdims: bool = False) -> Tensor:
    """The smallest element along an axis; NaN where there is one."""

def argmax(x: TensorLike, axis: int = -1, keepdims: bool = False) -> Tensor:
    """
    The position of the largest element along an axis, int64; the first of equals.
    """

def cumsum(x: TensorLike, axis: int = -1) -> Tensor:
    """Running sums along an axis."""

def topk(x: TensorLike, k: int | Dim) -> tuple[Tensor, Tensor]:
    """
    The k largest elements of the last axis, descending, and their positions: [..., n] -> [..., k] and int64 [..., k].
    """

def softmax(x: TensorLike) -> Tensor:
    """e^x / sum e^x over the last axis."""

def log_softmax(x: TensorLike) -> Tensor:
    """x - ln sum e^x over the last axis."""

def matmul(a: TensorLike, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """
    op(a) op(b) over the last two axes, leading axes broadcast. a [..., M, K], b [..., K, N].
    """

def linear(
    x: TensorLike, weight: TensorLike, bias: TensorLike | None = None, activation: str = "none"
) -> Tensor:
    """activation(x W^T + bias). x [..., K]; weight [N, K]; bias [N]."""

def pack_weight(weight: TensorLike) -> Tensor:
    """
    A weight [N, K] in the layout of this processor's inner loop, for linear_packed.
    """

def linear_packed(
    x: TensorLike,
    packed: TensorLike,
    bias: TensorLike | None = None,
    *,
    N: int | Dim,
    activation: str = "none",
) -> Tensor:
    """
    linear with a weight [N, K] that pack_weight has laid out. x [..., K] -> [..., N]; no gradient.
    """

def linear_quantized(
    x: TensorLike,
    weight: TensorLike,
    scale: TensorLike | None = None,
    bias: TensorLike | None = None,
    activation: str = "none",
    bits: int = 13,
) -> Tensor:
    """
    linear with a weight int8 [N, K] and a scale [N], or bfloat16 [N, K]; the rest float32. x [..., K] -> [..., N]; no gradient. bits: of x's rounded values beside int8, 13 or 8.
    """

def reshape(x: TensorLike, shape: int | Dim | Sequence[int | Dim]) -> Tensor:
    """
    The same elements in the same order under another shape; shares memory.
    """

def narrow(x: TensorLike, start: int | Dim, length: int | Dim) -> Tensor:
    """x[start : start + length] along the first axis; shares memory."""

def transpose(x: TensorLike, order: int | Sequence[int] | None) -> Tensor:
    """The axes of x in another order."""

def concat(tensors: Sequence[TensorLike | None], axis: int = 0) -> Tensor:
    """The tensors one after the other along an axis."""

def split(x: TensorLike, sizes: Sequence[int | Dim], axis: int = 0) -> tuple[Tensor, ...]:
    """
    Pieces of the given sizes along an axis; along the first they share memory.
    """

def slice(x: TensorLike, axis: int, start: int | Dim, stop: int | Dim, step: int = 1) -> Tensor:
    """
    Every step-th element of [start, stop) along an axis; a negative step begins at the end of the range.
    """

def pad(x: TensorLike, before: Sequence[int | Dim], after: Sequence[int | Dim], value: float = 0.0) -> Tensor:
    """
    x with before[a] and after[a] elements of `value` around it along each axis a.
    """

def gather(x: TensorLike, index: TensorLike, axis: int) -> Tensor:
    """
    x at the index along an axis, like numpy.take_along_axis; index has x's sizes but there.
    """

def index_select(x: TensorLike, index: TensorLike, axis: int = 0) -> Tensor:
    """
    Slices of x by number along an axis: [..., n, ...] and an index of shape S give [..., S, ...].
    """

def scatter_add(x: TensorLike, index: TensorLike, updates: TensorLike) -> Tensor:
    """x [n, ...] with updates[j] added to its row index[j]; repeats add up."""

def embedding(weight: TensorLike, ids: TensorLike, sparse: bool = False) -> Tensor:
    """
    weight[ids]. weight [V, C]; ids int [...] -> [..., C]. sparse: the gradient holds only the rows that occur.
    """

def embedding_quantized(weight: TensorLike, ids: TensorLike, scale: TensorLike | None = None) -> Tensor:
    """
    weight[ids] as float32, of a weight int8 [V, C] with a scale [V], or bfloat16 [V, C]; no gradient.
    """

def merge_rows(a: TensorLike, b: TensorLike) -> Tensor:
    """The sum of two row-sparse tensors."""

def add_rows(dense: TensorLike, sparse: TensorLike) -> Tensor:
    """dense + a row-sparse tensor."""

def to_dense(sparse: TensorLike) -> Tensor:
    """The dense form of a row-sparse tensor."""

def layer_norm(x: TensorLike, gamma: TensorLike, beta: TensorLike, eps: float = 1e-05) -> Tensor:
    """
    (x - mean) / sqrt(var + eps) * gamma + beta over the last axis. x [..., C]; gamma, beta [C].
    """

def rms_norm(x: TensorLike, gamma: TensorLike, eps: float = 1e-06) -> Tensor:
    """
    x / sqrt(mean(x^2) + eps) * gamma over the last axis. x [..., C]; gamma [C].
    """

def residual_layer_norm(
    x: TensorLike, residual: TensorLike, gamma: TensorLike, beta: TensorLike, eps: float = 1e-05
) -> tuple[Tensor, Tensor]:
    """
    s = x + residual, y = layer_norm(s, gamma, beta). Returns (y, s). x, residual [..., C]; gamma, beta [C].
    """

def dropout(x: TensorLike, p: float, locked: bool = False) -> Tensor:
    """
    x / (1 - p) where kept, 0 with probability p. locked: one mask over all positions of axis 1 of x [B, T, C].
    """

def uniform(
    shape: int | Dim | Sequence[int | Dim],
    low: float = 0.0,
    high: float = 1.0,
    dtype: DTypeLike = "float32",
    device: str | None = None,
    like: TensorLike | None = None,
) -> Tensor:
    """Uniform random numbers in [low, high)."""

def normal(
    shape: int | Dim | Sequence[int | Dim],
    mean: float = 0.0,
    std: float = 1.0,
    dtype: DTypeLike = "float32",
    device: str | None = None,
    like: TensorLike | None = None,
) -> Tensor:
    """Normal random numbers."""

@overload
def attention(
    q: TensorLike,
    k: TensorLike | None = None,
    v: TensorLike | None = None,
    lengths: TensorLike | None = None,
    mask: TensorLike | None = None,
    bias: TensorLike | None = None,
    offsets: TensorLike | None = None,
    causal: bool = False,
    band: int = 0,
    stride: int = 0,
    prefix: TensorLike | None = None,
    start: TensorLike | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    weights: Literal[False] = False,
) -> Tensor:
    """
    softmax(scale q k^T + bias) v over the keys a query may see. q [B, T, H, D]; k, v [B, S, H, D] -> [B, T, H, D].
    Packed: q = qkv [B, T, 3, H, D] alone, or k = kv [B, S, 2, H, D] without v. With offsets [B + 1]: rows [N, ...] of B sequences.
    lengths [B] keys of each sequence; mask bool [B|1, H|1, T|1, S], true may be seen; bias [B|1, H|1, T, S].
    causal: query i is at key position start[b] + i (S - T without start) and sees the keys up to there; of these the last
    `band`, each `stride`-th back, and the first prefix[b]. scale None: 1 / sqrt(D). weights: also returns them, [B, H, T, S].
    """

@overload
def attention(
    q: TensorLike,
    k: TensorLike | None = None,
    v: TensorLike | None = None,
    lengths: TensorLike | None = None,
    mask: TensorLike | None = None,
    bias: TensorLike | None = None,
    offsets: TensorLike | None = None,
    causal: bool = False,
    band: int = 0,
    stride: int = 0,
    prefix: TensorLike | None = None,
    start: TensorLike | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    *,
    weights: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@overload
def attention(
    q: TensorLike,
    k: TensorLike | None = None,
    v: TensorLike | None = None,
    lengths: TensorLike | None = None,
    mask: TensorLike | None = None,
    bias: TensorLike | None = None,
    offsets: TensorLike | None = None,
    causal: bool = False,
    band: int = 0,
    stride: int = 0,
    prefix: TensorLike | None = None,
    start: TensorLike | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    *,
    weights: bool,
) -> Tensor | tuple[Tensor, Tensor]: ...
def rel_shift(x: TensorLike, S: int | Dim) -> Tensor:
    """
    y[..., i, j] = x[..., i, j + T - 1 - i], 0 beyond the last column. x [..., T, L] -> [..., T, S].
    """

def lstm(
    x: TensorLike,
    weight: TensorLike,
    h: TensorLike,
    c: TensorLike,
    projection: TensorLike | None = None,
    lengths: TensorLike | None = None,
    reverse: bool = False,
    cell_clip: float = 0.0,
    projection_clip: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """
    i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of x_t + h W^T; c = f c + i g; h = o tanh c, or (o tanh c) W_p^T.
    x [B, T, 4 H], the part of the input with its biases; weight [4 H, P]; h [B, P]; c [B, H]; projection [P, H]
    -> y [B, T, P], and h and c after the last step. lengths [B]: y is 0 behind them. reverse: each sequence from its end.
    cell_clip, projection_clip: bounds of c and of h; 0: none.
    """

def gru(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None,
    h: TensorLike,
    lengths: TensorLike | None = None,
    reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    """
    r, z = sigmoid of x_t + h W^T; n = tanh(x_t + r (h W_n^T + bias)); h = (1 - z) n + z h.
    x [B, T, 3 H]; weight [3 H, H]; bias [H] or None; h [B, H] -> y [B, T, H], and h after the last step. lengths, reverse: see lstm.
    """

def rnn(
    x: TensorLike,
    weight: TensorLike,
    h: TensorLike,
    lengths: TensorLike | None = None,
    reverse: bool = False,
    activation: str = "tanh",
) -> tuple[Tensor, Tensor]:
    """
    h = activation(x_t + h W^T), tanh or relu. x [B, T, H]; weight [H, H]; h [B, H] -> y [B, T, H], and h after the last step. lengths, reverse: see lstm.
    """

def conv1d(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None, padding: int = 0) -> Tensor:
    """
    y[b, t] = sum over w of weight[:, :, w] x[b, t + w - padding] + bias; x is 0 outside. x [B, T, C]; weight [O, C, W]; bias [O] -> [B, T + 2 padding - W + 1, O].
    """

def pack_rows(x: TensorLike, mask: TensorLike) -> tuple[Tensor, Tensor]:
    """
    (rows [N, ...], index int64 [N]): the rows of x [B, T, ...] where mask bool [B, T] is true, and their numbers b * T + t.
    """

def unpack_rows(rows: TensorLike, index: TensorLike, B: int | Dim, T: int | Dim) -> Tensor:
    """
    The reverse of pack_rows: rows [N, ...] in their places in [B, T, ...], zeros elsewhere.
    """

def select_labelled(
    x: TensorLike, labels: TensorLike, ignore_index: int = -100
) -> tuple[Tensor, Tensor, Tensor]:
    """
    (x [N, ...], labels [N], index int64 [N]): the rows of x [B, T, ...] and labels [B, T] whose label is not ignore_index.
    """

def cross_entropy(
    logits: TensorLike,
    labels: TensorLike,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    smoothing: str = "pytorch",
    reduction: str = "mean",
) -> Tensor:
    """
    -log softmax(logits)[labels], mean over the labels that are not ignore_index. logits [..., V]; labels int [...] or soft targets float [..., V].
    """

def beam_step(logits: Tensor, scores: Tensor, n: int | Dim) -> tuple[Tensor, Tensor, Tensor]:
    """
    (scores [B, n], beams int64 [B, n], tokens int64 [B, n]): the n best of scores [B, K] + log_softmax(logits [B * K, V]), per batch row.
    """

def gather_beams(x: TensorLike, beams: TensorLike) -> Tensor:
    """y[b, j] = x[b, beams[b, j]]. x [B, K, ...]; beams int [B, n]."""

def cache_append(cache: Tensor, rows: Tensor, position: int | Dim) -> None:
    """
    Writes rows [B, T, ...] into cache [B, P, ...] at a position of axis 1, in place.
    """

def attend_cached(
    qkv: Tensor,
    cache: Tensor,
    position: int | Dim,
    lengths: Tensor | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """
    A step of decoding: keys and values of qkv [B, n, 3 H D] go to the slots of the cache [B, P, 2, H, D] from `position` on, and the
    tokens look at the cache as in `attention`. -> [B, n, H D]
    """

def sgd_step(
    param: Tensor,
    grad: Tensor,
    velocity: Tensor | None = None,
    *,
    lr: float,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    lazy: bool = False,
    scale: Tensor | None = None,
) -> None:
    """
    In place: g = scale * grad + weight_decay * param; velocity = momentum * velocity + g; param -= lr * velocity (lr * g without velocity).
    """

def adam_step(
    param: Tensor,
    grad: Tensor,
    m: Tensor,
    v: Tensor,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-08,
    weight_decay: float = 0.0,
    step: int = 1,
    lazy: bool = False,
    scale: Tensor | None = None,
) -> None:
    """
    In place: Adam with weight decay inside the gradient; m, v [shape of param], float32.
    """

def adamw_step(
    param: Tensor,
    grad: Tensor,
    m: Tensor,
    v: Tensor,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-08,
    weight_decay: float = 0.01,
    step: int = 1,
    lazy: bool = False,
    scale: Tensor | None = None,
) -> None:
    """
    In place: Adam with decoupled weight decay; m, v [shape of param], float32.
    """

def bert_adam_step(
    param: Tensor,
    grad: Tensor,
    m: Tensor,
    v: Tensor,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-06,
    weight_decay: float = 0.01,
    step: int = 1,
    lazy: bool = False,
    scale: Tensor | None = None,
) -> None:
    """
    In place: AdamW without bias correction, as BERT was trained; m, v [shape of param], float32.
    """

def lamb_step(
    param: Tensor,
    grad: Tensor,
    m: Tensor,
    v: Tensor,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-06,
    weight_decay: float = 0.01,
    step: int = 1,
    adapt: bool = True,
    scale: Tensor | None = None,
) -> None:
    """
    In place: LAMB, AdamW with steps as long as the tensor, unless adapt is false; step 0: without bias correction; m, v [shape of param], float32.
    """

def adafactor_step(
    param: Tensor,
    grad: Tensor,
    v: Tensor,
    m: Tensor | None = None,
    *,
    lr: float,
    eps: float = 1e-30,
    weight_decay: float = 0.0,
    power: float = 0.8,
    floor: float = 0.001,
    threshold: float = 1.0,
    relative: bool = True,
    step: int = 1,
    scale: Tensor | None = None,
) -> None:
    """
    In place: Adafactor; of a matrix [..., C] the means m [...] and v [C], of a vector v alone, float32.
    """

def adagrad_step(
    param: Tensor,
    grad: Tensor,
    v: Tensor,
    *,
    lr: float,
    eps: float = 1e-10,
    weight_decay: float = 0.0,
    lazy: bool = False,
    scale: Tensor | None = None,
) -> None:
    """
    In place: Adagrad with weight decay inside the gradient; v, the sum of squares [shape of param], float32.
    """

def adadelta_step(
    param: Tensor,
    grad: Tensor,
    m: Tensor,
    v: Tensor,
    *,
    lr: float = 1.0,
    rho: float = 0.95,
    eps: float = 1e-06,
    weight_decay: float = 0.0,
    lazy: bool = False,
    scale: Tensor | None = None,
) -> None:
    """
    In place: Adadelta with weight decay inside the gradient; m, v, the means of squared updates and gradients [shape of param], float32.
    """

def ema_step(average: Tensor, param: Tensor, decay: float) -> None:
    """In place: average += (1 - decay) * (param - average)."""

def global_norm(list: Sequence[TensorLike | None]) -> Tensor:
    """
    sqrt of the sum of squares over all tensors, float32 []; None is left out.
    """

def clip_scale(norm: TensorLike, max_norm: float) -> Tensor:
    """min(1, max_norm / norm), float32 []."""
