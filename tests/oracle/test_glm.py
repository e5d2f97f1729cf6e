"""GLM against a torch re-expression of its arithmetic: pre-norm blocks, two tables of positions, and a dense
mask of what each token may see.
"""

import json
import subprocess
import sys

import numpy as np
import plmcore as plm
import pytest
from oracle import parity  # skips where torch and transformers are not installed
from plmcore import safetensors

torch = parity.torch
pytestmark = pytest.mark.oracle

OFF = dict(embedding_dropout_prob=0.0, attention_dropout_prob=0.0, output_dropout_prob=0.0)
CONFIGS = {
    "odd": dict(vocab_size=53, hidden_size=15, num_layers=3, num_attention_heads=3, max_sequence_length=13),
    "one head": dict(
        vocab_size=40, hidden_size=32, num_layers=2, num_attention_heads=1, max_sequence_length=40
    ),
    "inner": dict(
        vocab_size=70,
        hidden_size=20,
        num_layers=2,
        num_attention_heads=5,
        max_sequence_length=16,
        intermediate_size=9,
    ),
    "deep": dict(vocab_size=61, hidden_size=24, num_layers=6, num_attention_heads=4, max_sequence_length=24),
}
B, T = 4, 11


class Layer(torch.nn.Module):
    def __init__(self, C, heads, inner):
        super().__init__()
        self.heads = heads
        self.input_layernorm, self.post_attention_layernorm = torch.nn.LayerNorm(C), torch.nn.LayerNorm(C)
        self.attention = torch.nn.ModuleDict(
            dict(query_key_value=torch.nn.Linear(C, 3 * C), dense=torch.nn.Linear(C, C))
        )
        self.mlp = torch.nn.ModuleDict(
            dict(dense_h_to_4h=torch.nn.Linear(C, inner), dense_4h_to_h=torch.nn.Linear(inner, C))
        )

    def forward(self, x, seen):
        n, t, C = x.shape
        qkv = self.attention["query_key_value"](self.input_layernorm(x)).chunk(3, -1)
        q, k, v = (z.view(n, t, self.heads, C // self.heads).transpose(1, 2) for z in qkv)
        scores = q @ k.transpose(-1, -2) / (C // self.heads) ** 0.5
        scores = scores * seen + (-65504.0) * (1 - seen)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, C)
        x = x + self.attention["dense"](y)
        h = self.mlp["dense_h_to_4h"](self.post_attention_layernorm(x))
        h = torch.nn.functional.gelu(h, approximate="tanh")
        return x + self.mlp["dense_4h_to_h"](h)


class Reference(torch.nn.Module):
    """Named as the published files are."""

    def __init__(self, vocab_size, hidden_size, num_layers, num_attention_heads, max_sequence_length, **more):
        super().__init__()
        C, rows = hidden_size, max_sequence_length + 1
        inner = more.get("intermediate_size") or 4 * C
        self.word_embeddings = torch.nn.Embedding(vocab_size, C)
        self.transformer = torch.nn.ModuleDict(
            dict(
                position_embeddings=torch.nn.Embedding(rows, C),
                block_position_embeddings=torch.nn.Embedding(rows, C),
                layers=torch.nn.ModuleList(Layer(C, num_attention_heads, inner) for _ in range(num_layers)),
                final_layernorm=torch.nn.LayerNorm(C),
            )
        )

    def forward(self, input_ids, position_ids, block_position_ids, source_lengths, attention_mask=None):
        n, t = input_ids.shape
        stack = self.transformer
        x = self.word_embeddings(input_ids) + stack["position_embeddings"](position_ids)
        x = x + stack["block_position_embeddings"](block_position_ids)
        source = torch.arange(t)[None] < source_lengths[:, None]  # [B, T]
        seen = torch.ones(t, t, dtype=torch.bool).tril()[None] | source[:, None]
        if attention_mask is not None:
            seen = seen & (attention_mask[:, None] != 0)
        self.states = [x]
        for layer in stack["layers"]:
            x = layer(x, seen[:, None].to(x.dtype))
            self.states.append(x)
        x = self.states[-1] = stack["final_layernorm"](x)
        return x, x @ self.word_embeddings.weight.T


def both(config, folder, head="causal-lm", dtype=torch.float32):
    """The reference, and ours of a directory with its weights under the published names."""
    torch.manual_seed(3)
    theirs = Reference(**config).to(dtype).eval()
    parity.widen(theirs)
    prefix = "glm." if head == "causal-lm" else ""
    folder.mkdir(exist_ok=True)
    tensors = {prefix + name: p.detach().numpy() for name, p in theirs.named_parameters()}
    safetensors.write(folder / "model.safetensors", tensors)
    name = "GLMForConditionalGeneration" if prefix else "GLMModel"
    keys = dict(config, **OFF, model_type="glm", block_position_encoding=True, architectures=[name])
    (folder / "config.json").write_text(json.dumps(keys))
    return theirs, plm.load(folder)


def batch_of(rng, config, sources="drawn"):
    """Part A and part B of drawn lengths, one piece after the other, padded on the right."""
    lengths = rng.integers(4, T + 1, B)
    lengths[0] = T
    source = dict(drawn=rng.integers(1, lengths), whole=lengths, none=np.zeros(B, np.int64))[sources]
    column = np.arange(T)[None]
    in_b = column >= source[:, None]
    places = np.where(in_b, rng.integers(0, np.maximum(source, 1))[:, None], column)
    blocks = np.where(in_b, column - source[:, None] + 1, 0)
    if sources == "none":
        places, blocks = np.broadcast_to(column, (B, T)), np.zeros((B, T), np.int64)
    ids = rng.integers(0, config["vocab_size"], (B, T))
    mask = (column < lengths[:, None]).astype(np.int64)
    labels = np.where(in_b & (mask == 1), rng.integers(0, config["vocab_size"], (B, T)), -100)
    labels[:, 1] = 2
    given = dict(
        input_ids=ids,
        position_ids=places,
        block_position_ids=blocks,
        source_lengths=source,
        attention_mask=mask,
    )
    return given, labels


def near(what, ours, theirs, tolerance):
    ours, theirs = np.asarray(ours), theirs.detach().numpy()
    scale = max(1.0, float(np.abs(theirs).max()))
    assert np.abs(ours - theirs).max() <= tolerance * scale, (what, np.abs(ours - theirs).max())


def loss_of(logits, labels):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(labels).flatten())


@pytest.mark.parametrize("sources", ["drawn", "whole", "none"])
@pytest.mark.parametrize("name", CONFIGS)
def test_logits_loss_gradients_and_a_step(name, sources, tmp_path):
    config, rng = CONFIGS[name], np.random.default_rng(5)
    theirs, lm = both(config, tmp_path / "dir")
    for masked in (True, False):
        given, labels = batch_of(rng, config, sources)
        if not masked:
            del given["attention_mask"]
        shown = given.get("attention_mask", np.ones((B, T)))[..., None]
        hidden, logits = theirs(**{k: torch.tensor(v) for k, v in given.items()})
        near("logits", lm(**given).logits.numpy() * shown, logits * torch.tensor(shown), 1e-5)
        out = lm(**given, labels=labels)
        expected = loss_of(logits, labels)
        near("loss", out.loss.numpy(), expected, 1e-5)
        for i, state in enumerate(lm(**given, output_hidden_states=True).hidden_states):
            near(f"state {i}", state.numpy() * shown, theirs.states[i] * torch.tensor(shown), 1e-5)
        for p in theirs.parameters():
            p.grad = None
        for q in lm.parameters():
            q.grad = None
        expected.backward()
        out.loss.backward()
        parity.same_gradients(lm, torch.nn.ModuleDict({"glm": theirs}), 1e-5)
    plm.optim.SGD(lm.parameters(), lr=0.1).step()
    torch.optim.SGD(theirs.parameters(), lr=0.1).step()
    parity.same_parameters(lm, torch.nn.ModuleDict({"glm": theirs}), 1e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_float64(name, tmp_path):
    config, rng = CONFIGS[name], np.random.default_rng(6)
    theirs, lm = both(config, tmp_path / "dir", dtype=torch.float64)
    given, _ = batch_of(rng, config)
    del given["attention_mask"]
    near(name, lm(**given).logits.numpy(), theirs(**{k: torch.tensor(v) for k, v in given.items()})[1], 1e-12)


def test_the_body_alone(tmp_path):
    config = CONFIGS["odd"]
    theirs, lm = both(config, tmp_path / "dir", "base")
    given, _ = batch_of(np.random.default_rng(7), config)
    hidden, _ = theirs(**{k: torch.tensor(v) for k, v in given.items()})
    shown = given["attention_mask"][..., None]
    near("hidden", lm(**given).last_hidden_state.numpy() * shown, hidden * torch.tensor(shown), 1e-5)


def test_classification(tmp_path):
    """tanh of a dense layer on the first token, which sees the whole row."""
    config = CONFIGS["odd"]
    theirs, _ = both(config, tmp_path / "dir", "base")
    C = config["hidden_size"]
    dense, out = torch.nn.Linear(C, C), torch.nn.Linear(C, 3)
    tensors = {f"glm.{name}": p.detach().numpy() for name, p in theirs.named_parameters()}
    for name, layer in (("dense", dense), ("out_proj", out)):
        tensors |= {f"{name}.{part}": p.detach().numpy() for part, p in layer.named_parameters()}
    safetensors.write(tmp_path / "dir" / "model.safetensors", tensors)
    keys = json.loads((tmp_path / "dir" / "config.json").read_text())
    keys |= dict(architectures=["GLMForSequenceClassification"], num_labels=3)
    (tmp_path / "dir" / "config.json").write_text(json.dumps(keys))
    given, _ = batch_of(np.random.default_rng(9), config, "whole")
    hidden, _ = theirs(**{k: torch.tensor(v) for k, v in given.items()})
    expected = out(torch.tanh(dense(hidden[:, 0])))
    lm = plm.load(tmp_path / "dir")
    near("logits", lm(**given).logits.numpy(), expected, 1e-5)
    del given["source_lengths"]
    near("logits", lm(**given).logits.numpy(), expected, 1e-5)


def test_saved_names_are_the_published_ones(tmp_path):
    theirs, lm = both(CONFIGS["odd"], tmp_path / "dir")
    lm.save(tmp_path / "copy")
    found, _ = safetensors.read(tmp_path / "copy" / "model.safetensors")
    assert set(found) == {f"glm.{name}" for name, _ in theirs.named_parameters()}


def test_a_megatron_file(tmp_path):
    """As GLM's program writes it, and without the number of heads an error."""
    config = CONFIGS["odd"]
    theirs, lm = both(config, tmp_path / "dir")
    state = {"module": theirs.state_dict(), "iteration": 7, "csr_tensor_module_names": set()}
    torch.save(state, tmp_path / "mp_rank_00_model_states.pt")
    command = [sys.executable, "-m", "plmcore", "convert", "mp_rank_00_model_states.pt", "out"]
    command += ["--family", "glm"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 1 and "num_attention_heads must be" in made.stderr
    command += ["--set", "num_attention_heads=3"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    given, _ = batch_of(np.random.default_rng(8), config)
    found = plm.load(tmp_path / "out", **OFF)
    assert found.head == "causal-lm"
    assert found(**given).logits.numpy().tobytes() == lm(**given).logits.numpy().tobytes()
