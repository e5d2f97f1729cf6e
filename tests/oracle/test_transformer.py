"""The Transformer against torch.nn.Transformer, and Marian against transformers."""

import numpy as np
import plmcore as plm
import pytest
from oracle import parity, seq2seq_inputs  # skips where torch and transformers are not installed
from plmcore.models.transformer import TransformerConfig

torch = parity.torch
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:enable_nested_tensor")]

SMALL = dict(dropout=0.0, use_cache=False)
MARIAN = {
    "odd": dict(
        vocab_size=53,
        d_model=15,
        encoder_layers=3,
        decoder_layers=2,
        encoder_attention_heads=3,
        decoder_attention_heads=5,
        encoder_ffn_dim=22,
        decoder_ffn_dim=31,
        max_position_embeddings=13,
        pad_token_id=52,
        decoder_start_token_id=52,
        **SMALL,
    ),
    "scaled": dict(
        vocab_size=40,
        d_model=32,
        encoder_layers=1,
        decoder_layers=3,
        encoder_attention_heads=1,
        decoder_attention_heads=4,
        encoder_ffn_dim=9,
        decoder_ffn_dim=64,
        max_position_embeddings=40,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=39,
        decoder_start_token_id=39,
        **SMALL,
    ),
}


# ---- Marian ----


@pytest.mark.parametrize("name", ["MarianModel", "MarianMTModel"])
@pytest.mark.parametrize("size", MARIAN)
def test_marian(size, name, tmp_path):
    rng = np.random.default_rng(len(name) + len(size))
    batches = seq2seq_inputs.batches(rng, MARIAN[size], name, copies=False)
    parity.check(name, MARIAN[size], batches, tmp_path, hidden_by=seq2seq_inputs.HIDDEN_BY)


@pytest.mark.parametrize("side", [None, "right", "left"])
def test_marian_causal_lm(side, tmp_path):
    batches = seq2seq_inputs.causal(np.random.default_rng(8), MARIAN["odd"], side)
    parity.check("MarianForCausalLM", MARIAN["odd"], batches, tmp_path, hidden_by=seq2seq_inputs.CAUSAL)


@pytest.mark.parametrize("name", ["MarianModel", "MarianMTModel"])
def test_marian_with_two_vocabularies(name, tmp_path):
    rng = np.random.default_rng(9)
    config = {**MARIAN["odd"], "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 61}
    batches = seq2seq_inputs.batches(rng, config, name, copies=False)[-2:]
    parity.check(name, config, batches, tmp_path, hidden_by=seq2seq_inputs.HIDDEN_BY)


@pytest.mark.parametrize("side", [None, "right", "left"])
def test_marian_trace(side, tmp_path):
    rng = np.random.default_rng(13)
    parity.reference("MarianMTModel", MARIAN["odd"], tmp_path)
    seq2seq_inputs.check_trace(rng, plm.load(tmp_path), MARIAN["odd"], "MarianMTModel", side)


# ---- Vaswani's ----

VASWANI = {
    "odd": TransformerConfig(
        vocab_size=37,
        d_model=15,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=3,
        decoder_attention_heads=3,
        encoder_ffn_dim=22,
        decoder_ffn_dim=22,
        max_position_embeddings=20,
        dropout=0.0,
    ),
    "even": TransformerConfig(
        vocab_size=50,
        d_model=32,
        encoder_layers=3,
        decoder_layers=1,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=40,
        decoder_ffn_dim=40,
        max_position_embeddings=20,
        dropout=0.0,
    ),
}


class Reference(torch.nn.Module):
    """torch.nn.Transformer between embeddings and a tied output layer, as in the paper. torch's has a norm
    after each stack, the paper's none.
    """

    def __init__(self, cfg, state):
        super().__init__()
        self.core = torch.nn.Transformer(
            cfg.d_model,
            cfg.encoder_attention_heads,
            cfg.encoder_layers,
            cfg.decoder_layers,
            cfg.encoder_ffn_dim,
            cfg.dropout,
            batch_first=True,
        )
        self.core.to(torch.tensor(state["body.shared.weight"]).dtype)
        self.core.encoder.norm = self.core.decoder.norm = None
        self.tokens = torch.nn.Parameter(torch.tensor(state["body.shared.weight"]))
        self.pad = cfg.pad_token_id
        half = torch.arange(0, cfg.d_model, 2, dtype=torch.float64)
        self.frequencies = torch.exp(-half / cfg.d_model * np.log(10000.0))
        core = {}
        for side in ("encoder", "decoder"):
            for i in range(getattr(cfg, f"{side}_layers")):
                ours, theirs = f"body.{side}.blocks.{i}", f"{side}.layers.{i}"
                pairs = {
                    "attn.out": "self_attn.out_proj",
                    "mlp.up": "linear1",
                    "mlp.down": "linear2",
                    "cross.out": "multihead_attn.out_proj",
                }
                for leaf in ("weight", "bias"):
                    core[f"{theirs}.self_attn.in_proj_{leaf}"] = state[f"{ours}.attn.qkv.{leaf}"]
                    if side == "decoder":
                        parts = [state[f"{ours}.cross.{part}.{leaf}"] for part in ("q", "kv")]
                        core[f"{theirs}.multihead_attn.in_proj_{leaf}"] = np.concatenate(parts)
                    for a, b in pairs.items():
                        if f"{ours}.{a}.{leaf}" in state:
                            core[f"{theirs}.{b}.{leaf}"] = state[f"{ours}.{a}.{leaf}"]
                for n in range(1, 4 if side == "decoder" else 3):
                    core[f"{theirs}.norm{n}.weight"] = state[f"{ours}.norm{n}.gamma"]
                    core[f"{theirs}.norm{n}.bias"] = state[f"{ours}.norm{n}.beta"]
        self.core.load_state_dict({k: torch.tensor(v) for k, v in core.items()})

    def embed(self, ids):
        d = self.tokens.shape[1]
        angles = torch.arange(ids.shape[1], dtype=torch.float64)[:, None] * self.frequencies
        table = torch.stack([angles.sin(), angles.cos()], -1).reshape(ids.shape[1], -1)[:, :d]
        return torch.nn.functional.embedding(ids, self.tokens, self.pad) * d**0.5 + table.float().to(
            self.tokens.dtype
        )

    def forward(self, source, mask, target):
        T = target.shape[1]
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        y = self.core(
            self.embed(source),
            self.embed(target),
            tgt_mask=future,
            src_key_padding_mask=~mask,
            memory_key_padding_mask=~mask,
        )
        return y @ self.tokens.T


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-9)])
@pytest.mark.parametrize("side", ["right", "left", "holes"])
@pytest.mark.parametrize("size", VASWANI)
def test_vaswani_against_torch(size, side, dtype, tolerance):
    cfg, rng = VASWANI[size], np.random.default_rng(3)
    plm.seed(4)
    lm = plm.from_config(cfg, "seq2seq-lm", dtype=dtype).eval()
    lm.model.load_state_dict(
        {n: rng.standard_normal(p.shape) * 0.4 + n.endswith("gamma") for n, p in lm.named_parameters()},
        strict=False,
    )
    theirs = Reference(cfg, {n: p.numpy() for n, p in lm.named_parameters()})
    source, target = rng.integers(0, cfg.vocab_size, (4, 9)), rng.integers(2, cfg.vocab_size, (4, 6))
    mask = parity.mask(rng, 4, 9, side)
    shifted = np.concatenate([np.full((4, 1), 2), target[:, :-1]], 1)
    expected = theirs(torch.tensor(source), torch.tensor(mask).bool(), torch.tensor(shifted))
    out = lm(input_ids=source, attention_mask=mask, labels=target)
    parity.near("logits", out.logits.numpy(), expected.detach().numpy(), tolerance)

    loss = torch.nn.functional.cross_entropy(expected.flatten(0, 1), torch.tensor(target).flatten())
    parity.near("loss", out.loss.detach().numpy(), loss.detach().numpy(), tolerance)
    loss.backward()
    out.loss.backward()
    grads = {n: p.grad.numpy() for n, p in lm.named_parameters()}
    for ours, published in (
        ("body.shared.weight", theirs.tokens),
        ("body.encoder.blocks.0.attn.qkv.weight", theirs.core.encoder.layers[0].self_attn.in_proj_weight),
        ("body.decoder.blocks.0.norm2.gamma", theirs.core.decoder.layers[0].norm2.weight),
    ):
        scale = published.grad.abs().max().item()
        parity.near(
            ours, grads[ours] / scale, published.grad.numpy() / scale, 1e-4 if dtype == "float32" else 1e-8
        )
