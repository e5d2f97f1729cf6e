"""rnn-seq2seq against torch.nn.LSTM and GRU and the formulas of attention written in torch: logits,
alignments, states, loss and gradients, from the file that plmcore saved.
"""

import itertools

import numpy as np
import plmcore as plm
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
torch.set_num_threads(1)

KINDS = ("none", "bahdanau", "dot", "general", "concat")
CASES = [
    dict(cell=cell, attention=kind, input_feeding=feeding, bidirectional=both, reverse_source=reverse)
    for cell, kind, feeding, both, reverse in itertools.product(
        ("lstm", "gru"), KINDS, (False, True), (False, True), (False, True)
    )
    if not (feeding and kind in ("none", "bahdanau")) and not (both and kind == "dot")
]
LENGTHS = [7, 3, 5]


class Reference:
    """One sentence at a time, without padding."""

    def __init__(self, config, weights):
        self.c, self.w = config, weights
        self.encoder = self.network("encoder.rnn", config.d_embed, config.d_hidden, config.encoder_layers)
        beside = {"bahdanau": config.source_width}.get(
            config.attention, config.width if config.input_feeding else 0
        )
        self.decoder = self.network(
            "decoder.rnn", config.d_embed + beside, config.width, config.decoder_layers
        )

    def network(self, name, inputs, hidden, layers):
        both = self.c.bidirectional and name.startswith("encoder")
        kind = torch.nn.LSTM if self.c.cell == "lstm" else torch.nn.GRU
        made = kind(inputs, hidden, layers, batch_first=True, bidirectional=both).double()
        return lambda x, state: torch.func.functional_call(
            made, {k.removeprefix(f"{name}."): w for k, w in self.w.items() if k.startswith(name)}, (x, state)
        )

    def __call__(self, source, target):
        c, w = self.c, self.w
        x = w["encoder.embedding.weight"][torch.tensor(source)][None]
        h, final = self.encoder(x.flip(1) if c.reverse_source else x, None)
        h = h.flip(1) if c.reverse_source else h
        final = final if isinstance(final, tuple) else (final,)
        if c.bidirectional:
            bridged = lambda name, i, t: torch.tanh(t @ w[f"bridge.{name}.{i}.weight"].T)
            final = tuple(
                torch.stack([bridged(name, i, t[2 * i + 1]) for i in range(len(t) // 2)])
                for name, t in zip("hc", final)
            )
        state = final if len(final) == 2 else final[0]
        top = final[0][-1]
        fed = torch.zeros(1, c.width, dtype=torch.float64)
        states, rows, alignments = [top], [], []
        for token in target:
            e = w["decoder.embedding.weight"][token][None]
            if c.attention == "bahdanau":
                context, alpha = self.look(top, h)
                e = torch.cat([e, context], 1)
            elif c.input_feeding:
                e = torch.cat([e, fed], 1)
            y, state = self.decoder(e[None], state)
            top = found = y[:, 0]
            if c.attention not in ("none", "bahdanau"):
                context, alpha = self.look(top, h)
            if c.attention != "none":
                found = torch.tanh(torch.cat([context, top], 1) @ w["attn.W_c"].T)
                alignments.append(alpha)
            fed = found
            states.append(top)
            rows.append(found @ w["out.W_s"].T + w["out.b_s"])
        aligned = torch.cat(alignments) if alignments else None
        return torch.cat(rows), aligned, torch.cat(states), h[0]

    def look(self, s, h):
        w = self.w
        if self.c.attention == "dot":
            scores = h[0] @ s[0]
        elif self.c.attention == "general":
            scores = h[0] @ (s[0] @ w["attn.W_a"])
        elif self.c.attention == "concat":
            joined = torch.cat([s.expand(h.shape[1], -1), h[0]], 1)
            scores = torch.tanh(joined @ w["attn.W_a"].T) @ w["attn.v_a"]
        else:
            scores = torch.tanh(s @ w["attn.W_a"].T + h[0] @ w["attn.U_a"].T) @ w["attn.v_a"]
        alpha = torch.softmax(scores, 0)[None]
        return alpha @ h[0], alpha


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c.values())))
def test_torch(case, tmp_path):
    rng = np.random.default_rng(len(str(case)))
    config = dict(
        model_type="rnn-seq2seq", vocab_size=21, target_vocab_size=17, d_embed=5, d_hidden=6,
        encoder_layers=2, decoder_layers=2, init_range=0.6,
    )  # fmt: skip
    lm = plm.from_config({**config, **case}, head="seq2seq-lm").eval()
    lm.save(tmp_path)
    tensors, _ = plm.safetensors.read(tmp_path)
    weights = {k: torch.tensor(t.numpy().astype(np.float64), requires_grad=True) for k, t in tensors.items()}
    reference = Reference(lm.config, weights)
    S, T = max(LENGTHS), 4
    ids, labels = rng.integers(3, 21, (3, S)), rng.integers(3, 17, (3, T))
    labels[1, 2:] = -100
    mask = (np.arange(S) < np.array(LENGTHS)[:, None]).astype(np.int64)
    start = np.concatenate([np.full((3, 1), 2), np.where(labels < 0, 1, labels)[:, :-1]], 1)
    out = lm(input_ids=ids, attention_mask=mask, labels=labels)
    near = dict(atol=1e-5, rtol=1e-5)
    total = 0.0
    for b, n in enumerate(LENGTHS):
        logits, aligned, states, h = reference(ids[b, :n], start[b])
        total = total + torch.nn.functional.cross_entropy(logits, torch.tensor(labels[b]), reduction="sum")
        np.testing.assert_allclose(out.logits.numpy()[b], logits.detach(), **near)
        np.testing.assert_allclose(out.decoder_states.numpy()[b], states.detach(), **near)
        np.testing.assert_allclose(out.encoder_last_hidden_state.numpy()[b, :n], h.detach(), **near)
        if aligned is None:
            assert out.alignments is None
        else:
            np.testing.assert_allclose(out.alignments.numpy()[b, :, :n], aligned.detach(), **near)
            assert not out.alignments.numpy()[b, :, n:].any()
    loss = total / (labels >= 0).sum()
    np.testing.assert_allclose(out.loss.item(), loss.item(), rtol=1e-5)
    out.loss.backward()
    loss.backward()
    ours = dict(lm.model.named_parameters())
    assert set(ours) == set(weights)
    for name, p in ours.items():
        expected = weights[name].grad
        np.testing.assert_allclose(
            p.grad.numpy(), expected, atol=1e-5 * max(1.0, expected.abs().max().item()), err_msg=name
        )
