"""CVT's body, heads, losses and gradients, written again with torch."""

import numpy as np
import plmcore as plm
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
torch.set_num_threads(1)

CONFIG = dict(
    model_type="cvt",
    vocab_size=40,
    d_embed=10,
    d_char=6,
    char_filters=[[2, 5], [3, 4], [4, 3]],
    d_uni=12,
    d_bi=9,
    d_projection=7,
    num_labels=5,
)


def made(head, seed, dtype):
    plm.seed(seed)
    lm = plm.from_config(CONFIG, head).eval().to(dtype)
    rng = np.random.default_rng(seed)
    # What float32 cannot hold is no error of ours.
    state = {k: (rng.standard_normal(v.shape) * 0.4).astype(dtype) for k, v in lm.model.state_dict().items()}
    lm.model.load_state_dict(state)
    ids = rng.integers(4, 40, (3, 8))
    ids[:, 0] = 2
    for row, n in enumerate((8, 6, 4)):
        ids[row, n - 1 :] = 0
        ids[row, n - 1] = 3
    chars = rng.integers(1, 109, (3, 8, 20))
    chars[..., 12:] = 0
    labels = rng.integers(0, 5, (3, 8) if head == "token-classification" else 3)
    if labels.ndim == 2:
        labels[ids < 4] = -100
    return lm, {k: torch.tensor(v, dtype=torch.float64) for k, v in state.items()}, ids, chars, labels


class InTorch:
    """The formulas over a dict of parameters."""

    def __init__(self, p, ids, chars):
        self.p = {k: v.clone().requires_grad_() for k, v in p.items()}
        self.ids, self.read = torch.tensor(ids), torch.tensor(ids != 0)
        self.words = torch.tensor((ids != 0) & (ids != 2) & (ids != 3))
        word = self.p["body.tokens.weight"][self.ids] * self.p["body.scale"]
        spelled = self.p["body.chars.weight"][torch.tensor(chars)]  # [B, T, W, C]
        B, T, W, C = spelled.shape
        flat = spelled.reshape(B * T, W, C).transpose(1, 2)
        found = [
            torch.relu(
                torch.nn.functional.conv1d(
                    flat, self.p[f"body.convs.{i}.weight"], self.p[f"body.convs.{i}.bias"]
                )
            )
            .amax(2)
            .reshape(B, T, -1)
            for i in range(3)
        ]
        self.uni = self.lstm("uni", torch.cat([word, *found], 2))
        self.bi = self.lstm("bi", self.uni)
        self.rows = torch.cat([self.uni, self.bi], 2)

    def lstm(self, name, x):
        return torch.cat([self.direction(f"body.{name}", end, x) for end in ("l0", "l0_reverse")], 2)

    def direction(self, name, end, x):
        weight_ih, weight_hh, bias_ih, bias_hh, weight_hr = (
            self.p[f"{name}.{kind}_{end}"]
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        )
        B, T, _ = x.shape
        h, c = x.new_zeros(B, weight_hr.shape[0]), x.new_zeros(B, weight_hr.shape[1])
        out = [None] * T
        for t in range(T) if end == "l0" else reversed(range(T)):
            i, f, g, o = (x[:, t] @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh).chunk(4, 1)
            cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            hidden = (torch.sigmoid(o) * torch.tanh(cell)) @ weight_hr.T
            there = self.read[:, t, None]
            h, c = torch.where(there, hidden, h), torch.where(there, cell, c)
            out[t] = torch.where(there, hidden, torch.zeros_like(hidden))
        return torch.stack(out, 1)

    def head(self, name, x, activation=torch.relu):
        p, at = self.p, f"heads.0.{name}"
        hidden = activation(x @ p[f"{at}.hidden.weight"].T + p[f"{at}.hidden.bias"])
        return hidden @ p[f"{at}.out.weight"].T + p[f"{at}.out.bias"]

    def mean(self, x, words):
        share = words.to(x.dtype)
        return (x * share[..., None]).sum(1) / share.sum(1, keepdim=True)

    def primary(self, head):
        if head == "token-classification":
            return self.head("primary", self.rows)
        return self.head("primary", self.mean(self.rows, self.words))

    def unlabelled(self, head):
        target = torch.softmax(self.primary(head), -1).detach()
        P, same = 7, lambda x: x
        forward, backward = self.uni[..., :P], self.uni[..., P:]
        views = dict(
            full=(self.rows, same), forward=(forward, torch.relu), backward=(backward, torch.relu),
            future=(forward, torch.relu), past=(backward, torch.relu),
        )  # fmt: skip
        total = 0.0
        for name, (x, activation) in views.items():
            words = self.words
            if head == "token-classification":
                logits, wanted = self.head(f"auxiliary.{name}", x, activation), target
                if name == "future":
                    logits, wanted, words = logits[:, :-1], target[:, 1:], words[:, 1:] & words[:, :-1]
                if name == "past":
                    logits, wanted, words = logits[:, 1:], target[:, :-1], words[:, 1:] & words[:, :-1]
            else:
                place, n = words.cumsum(1), words.sum(1, keepdim=True)
                if name == "future":
                    words = words & (place <= (n + 1) // 2)
                if name == "past":
                    words = words & (place > n // 2)
                logits, wanted = self.head(f"auxiliary.{name}", self.mean(x, words), activation), target
                words = torch.ones(len(x), dtype=torch.bool)
            apart = (wanted * (wanted.log() - torch.log_softmax(logits, -1))).sum(-1)
            total = total + apart[words].mean()
        return total

    def labelled(self, head, labels):
        logits = self.primary(head)
        return torch.nn.functional.cross_entropy(
            logits.reshape(-1, 5), torch.tensor(labels).reshape(-1), label_smoothing=0.1
        )


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("float64", 1e-12)])
@pytest.mark.parametrize("head", ["token-classification", "sequence-classification"])
def test_body_heads_and_losses(head, dtype, tolerance, seed):
    lm, state, ids, chars, labels = made(head, seed, dtype)
    theirs = InTorch(state, ids, chars)

    def near(what, ours, expected, times=1.0):
        expected = expected.detach().numpy()
        error = np.abs(np.asarray(ours, np.float64) - expected).max()
        scale = max(1.0, np.abs(expected).max())
        assert error <= times * tolerance * scale, f"{what}: off by {error:.2e}"

    encoded = lm.model.body.encode(plm.Tensor(ids), plm.Tensor(chars))
    near("body", encoded.layout.unpack(encoded.rows).numpy(), theirs.rows)
    logits = theirs.primary(head)
    if head == "token-classification":
        logits = torch.where(theirs.read[..., None], logits, torch.zeros_like(logits))
    near("logits", lm(input_ids=ids, char_ids=chars).logits.numpy(), logits)

    for ours, expected in (
        (lm.model.labelled_loss(ids, chars, labels), theirs.labelled(head, labels)),
        (lm.model.unlabelled_loss(ids, chars), theirs.unlabelled(head)),
    ):
        near("loss", ours.numpy(), expected)
        lm.model.zero_grad()
        ours.backward()
        gradients = torch.autograd.grad(
            expected, list(theirs.p.values()), allow_unused=True, retain_graph=True
        )
        for (name, p), g in zip(lm.model.named_parameters(), gradients, strict=True):
            assert (p.grad is None) == (g is None), name
            if g is not None:
                near(name, plm.ops.to_dense(p.grad).numpy(), g, 10)
