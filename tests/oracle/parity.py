"""Whether a family equals its class in transformers: weights and config go through a model directory, so that
names and layout are tested together with the arithmetic.

    batches = [dict(input_ids=..., attention_mask=..., labels=...), ...]
    parity.check("BertForMaskedLM", dict(hidden_size=12, ...), batches, tmp_path)

compares every field of the output, with and without hidden states and attentions, in float32 and float64,
gradients, one step of SGD and AdamW, and what transformers makes of the directory that plmcore saves.
"""

import copy
from unittest import mock

import numpy as np
import plmcore as plm
import pytest
from plmcore import models
from plmcore.models import names

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
torch.set_num_threads(1)  # the models are tiny
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

PER_POSITION = (
    "logits",
    "last_hidden_state",
    "prediction_logits",
    "hidden_states",
    "attentions",
)  # hidden by attention_mask
EXTRAS = dict(output_hidden_states=True, output_attentions=True)


# ---- the two models ----


def reference(name, config, folder, seed=0):
    """A transformers model in eval mode with widened random weights, saved in `folder`."""
    kind = getattr(transformers, name)
    torch.manual_seed(seed)
    settings = kind.config_class(**config)
    settings._attn_implementation = "eager"
    model = kind(settings).eval()
    widen(model)
    model.save_pretrained(folder)
    return model


def widen(model):
    """Weights of a size at which a wrong formula shows; biases and norms that are not 0 and 1."""
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    with torch.no_grad():
        fixed = [(n, b) for n, b in model.named_buffers() if n == "final_logits_bias"]
        for name, p in [*((n, p) for n, p in model.named_parameters() if p.requires_grad), *fixed]:
            r = torch.randn_like(p)
            if id(p) in embeddings:
                p.copy_(0.7 * r)
            elif p.ndim > 1:
                p.copy_(1.3 * r / p.shape[-1] ** 0.5)
                if name.endswith(
                    "Attention.q.weight"
                ):  # T5 has smaller queries instead of scores divided by sqrt(D)
                    p.div_(model.config.d_kv**0.5)
            else:
                p.copy_(1 + 0.3 * r if name.endswith("weight") else 0.3 * r)


def theirs(model, inputs, **options):
    """Its output.

    What it rounds to float32 by .float() (the loss of causal models) stays float64 in a float64 model.
    """
    rounded = torch.Tensor.float
    with mock.patch.object(torch.Tensor, "float", lambda t: t if t.dtype == torch.float64 else rounded(t)):
        return model(**{k: torch.tensor(v) for k, v in inputs.items()}, **options)


# ---- inputs ----


def ids(rng, config, B, T, low=1):
    """Tokens [B, T]; 0, mostly the padding token, does not occur."""
    return rng.integers(low, config["vocab_size"], (B, T))


def mask(rng, B, T, side):
    """An attention mask [B, T]: unequal lengths padded "right" or "left", or "holes". One row is whole."""
    lengths = rng.integers(1, T + 1, B)
    lengths[rng.integers(B)] = T
    right = (np.arange(T) < lengths[:, None]).astype(np.int64)
    if side == "holes":
        m = (rng.random((B, T)) < 0.6).astype(np.int64)
        m[:, rng.integers(T)] = 1
        return m
    return right if side == "right" else right[:, ::-1].copy()


def labels(rng, size, shape, share=0.4):
    """Labels with -100 at the other positions, one at least."""
    found = np.where(rng.random(shape) < share, rng.integers(0, size, shape), -100)
    found[..., 0] = rng.integers(0, size, shape[:-1])
    return found


# ---- comparisons ----


def arrays(value):
    """Of a tensor, or of tuples of them, within one another (XLNet's attentions of two streams)."""
    return (
        [a for v in value for a in arrays(v)]
        if isinstance(value, (tuple, list))
        else [value.detach().numpy()]
    )


def near(what, ours, expected, tolerance):
    """max |difference| <= tolerance * max(1, scale)."""
    assert ours.shape == expected.shape, f"{what}: {ours.shape}, expected {expected.shape}"
    error = np.abs(ours.astype(np.float64) - expected).max(initial=0.0)
    limit = tolerance * max(1.0, np.abs(expected).max(initial=0.0))
    assert error <= limit, f"{what}: differs by {error:.2e}, allowed {limit:.2e}"


def fields(output):
    """But the caches, and what comes empty."""
    return [
        name
        for name in output
        if name != "past_key_values" and not (isinstance(output[name], tuple) and not output[name])
    ]


def same_output(ours, expected, inputs, tolerance, hidden_by=None):
    """Every field that transformers returns.

    `hidden_by`: field -> the input whose zeros hide its positions, beside PER_POSITION.
    """
    hidden_by = {**dict.fromkeys(PER_POSITION, "attention_mask"), **(hidden_by or {})}
    compared = fields(expected)
    assert compared and set(compared) <= set(ours), f"{set(compared) - set(ours)} are missing"
    for field in compared:
        visible = inputs.get(hidden_by.get(field, ""))
        pairs = list(zip(arrays(ours[field]), arrays(expected[field]), strict=True))
        for i, (a, e) in enumerate(pairs):
            if visible is not None and a.ndim > 2:
                # [B, T]; multiple choice has [B, K, T]
                seen = visible.reshape(-1, visible.shape[-1]).astype(bool)
                at_queries = field.endswith("attentions")
                seen = seen[:, None, :, None] if at_queries else seen.reshape(*a.shape[:-1], 1)
                assert not np.any(np.where(seen, 0, a)), f"{field} {i}: not 0 where the mask hides"
                e = np.where(seen, e, 0)
            near(f"{field} {i}" if len(pairs) > 1 else field, a, e, tolerance)


def gradients(lm):
    """By published names, as transformers has them."""
    found = {n: p.grad for n, p in lm.named_parameters() if p.grad is not None}
    return names.published(models.family(lm.config), lm.model, found)


def named_parameters(model, preferred):
    """As of transformers; a shared one comes once, under a name of `preferred` where it has one."""
    found = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        if id(p) not in found or name in preferred:
            found[id(p)] = name, p
    return found.values()


def same_gradients(lm, model, tolerance, exact=None):
    """Relative to each tensor; one that is nothing but rounding (the keys' bias) to a hundredth of the
    largest.

    Under a question-answering head all positions compete, and where they are nearly alike most of a gradient
    cancels: what is left may be off by more in the reference itself. There `exact`, the same model in
    float64, decides: ours must be no farther from it than the reference.
    """
    ours = gradients(lm)
    expected = {n: p.grad.numpy() for n, p in named_parameters(model, ours) if p.grad is not None}
    largest = max(np.abs(g).max() for g in expected.values())
    assert set(ours) == {n for n in expected if n in ours or np.abs(expected[n]).max() > 0}
    true = (
        {}
        if exact is None
        else {n: p.grad.numpy() for n, p in named_parameters(exact, ours) if p.grad is not None}
    )
    rounding = max((np.abs(expected[n] - g).max() for n, g in true.items()), default=0.0)
    for name, g in ours.items():
        error = np.abs(g.numpy() - expected[name]).max()
        scale = max(np.abs(expected[name]).max(), 1e-2 * largest)
        if error > tolerance * scale and name in true:
            error, scale = np.abs(g.numpy() - true[name]).max(), max(scale, rounding / tolerance)
        assert error <= tolerance * scale, f"gradient of {name}: differs by {error:.2e}, size {scale:.2e}"


def same_parameters(lm, model, tolerance):
    ours = names.published(models.family(lm.config), lm.model)
    for name, p in named_parameters(model, ours):
        near(f"{name} after the step", ours[name].numpy(), p.detach().numpy(), tolerance)


def one_step(folder, model, inputs, ours, theirs_, dtype, tolerance, step_tolerance):
    lm, model = plm.load(folder, dtype=dtype), copy.deepcopy(model).to(getattr(torch, dtype))
    batch = typed(inputs, dtype)
    optimisers = ours(lm.parameters()), theirs_(model.parameters())
    total_loss(lm(**batch)).backward()
    total_loss(theirs(model, batch)).backward()
    exact = None
    if dtype == "float32":
        exact = copy.deepcopy(model).double()
        exact.zero_grad()
        total_loss(theirs(exact, typed(inputs, "float64"))).backward()
    same_gradients(lm, model, tolerance, exact)
    for o in optimisers:
        o.step()
    same_parameters(lm, model, step_tolerance)


def total_loss(output):
    """Double heads have two."""
    found = [output[name] for name in ("loss", "mc_loss") if name in output]
    return found[0] + found[1] if len(found) == 2 else found[0]


def typed(inputs, dtype):
    return {k: v.astype(dtype) if v.dtype.kind == "f" else v for k, v in inputs.items()}


def load_reference(name, folder):
    model, info = getattr(transformers, name).from_pretrained(
        folder, attn_implementation="eager", output_loading_info=True, dtype="auto"
    )
    problems = {k: v for k, v in info.items() if v}
    assert not problems, f"transformers does not load {folder} cleanly: {problems}"
    return model.eval()


def check(
    name,
    config,
    batches,
    tmp_path,
    *,
    head=None,
    float64=1e-9,
    gradient64=1e-7,
    hidden_by=None,
    extras=EXTRAS,
    seed=0,
):
    """All of it, for one transformers class, one config and some batches of inputs (dicts of arrays).

    Returns the loaded model.

    float64: the tolerance there, for references with float32 inside.
    extras: what asks for hidden states and attentions.
    """
    model = reference(name, config, tmp_path / "published", seed)
    lm = plm.load(tmp_path / "published")
    if head is not None:
        assert lm.head == head
    assert lm.config.architectures == (name,) and not lm.model.training
    # Tables of sinusoids are not trained.
    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert lm.model.num_parameters() == models.count_parameters(lm.config, lm.head) == count

    for dtype, tolerance in (("float32", 1e-5), ("float64", float64)):
        one = lm if dtype == "float32" else plm.load(tmp_path / "published", dtype=dtype)
        other = model.to(getattr(torch, dtype))
        for inputs in batches:
            inputs = typed(inputs, dtype)
            for options in ({}, extras):
                with torch.no_grad(), plm.no_grad():
                    same_output(
                        one(**inputs, **options),
                        theirs(other, inputs, **options),
                        inputs,
                        tolerance,
                        hidden_by,
                    )
    model.float()

    for inputs in batches:
        if any("label" in k or "positions" in k for k in inputs):
            sgd = (lambda p: plm.optim.SGD(p, lr=0.01)), (lambda p: torch.optim.SGD(p, lr=0.01))
            adam = (
                lambda p: plm.optim.AdamW(p, lr=1e-3, weight_decay=0.01),
                lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01),
            )
            published = tmp_path / "published"
            one_step(published, model, inputs, *sgd, "float32", 1e-4, 1e-6)
            one_step(published, model, inputs, *adam, "float64", gradient64, 1e-6)

    lm.save(tmp_path / "saved")
    back, again = load_reference(name, tmp_path / "saved"), plm.load(tmp_path / "saved")
    kept = dict(back.named_parameters())
    assert all(torch.equal(p, kept[n]) for n, p in model.named_parameters())
    for inputs in batches:
        with torch.no_grad(), plm.no_grad():
            a, b = theirs(back, inputs), theirs(model, inputs)
            for field in fields(b):
                for x, y in zip(arrays(a[field]), arrays(b[field]), strict=True):
                    # torch's sums depend on where memory begins.
                    near(f"{field} of the saved model", x, y, 1e-6)
            same_output(again(**inputs), lm(**inputs), inputs, 0.0, hidden_by)
    return lm


def check_trace(lm, batches, fields, tolerance=1e-6):
    """A program traced with symbolic sizes gives what the model gives, for batches of several sizes.

    Sizes that differ in the first batch get symbols of their own: B, T, then others.
    """
    symbols = {}
    first = batches[0]

    def spec(array):
        return plm.spec(
            str(array.dtype), *(symbols.setdefault(n, f"{'BTSPQR'[len(symbols)]}") for n in array.shape)
        )

    specs = {name: spec(array) for name, array in first.items()}
    with plm.no_grad():
        program = plm.trace(
            lambda **inputs: {f: lm.model(**inputs)[f] for f in fields},
            weights=dict(lm.named_parameters()),
            **specs,
        )
        for inputs in batches:
            got, want = program(**inputs), lm(**inputs)
            for field in fields:
                near(field, got[field].numpy(), want[field].numpy(), tolerance)
