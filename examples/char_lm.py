"""A character language model from scratch: python examples/char_lm.py FILE

Reads a text file (without one, the manual inside Python), trains a small Transformer to guess the next
character and lets it write.
Shapes: B batch, T length, C width, V characters.
"""

import pathlib
import sys

import numpy as np
import plmcore as plm
from plmcore import losses, nn, ops, optim

B, T, C, H, LAYERS, STEPS = 8, 64, 64, 4, 2, int(sys.argv[2]) if len(sys.argv) > 2 else 300


class Block(nn.Module):
    def __init__(self):
        self.norm1 = nn.LayerNorm(C)
        self.attn = nn.SelfAttention(C, H, causal=True, dropout=0.1)
        self.norm2 = nn.LayerNorm(C)
        self.mlp = nn.MLP(C, 4 * C, act="gelu_tanh", dropout=0.1)

    def __call__(self, x):
        x = x + self.attn(self.norm1(x))  # [B, T, C]
        return x + self.mlp(self.norm2(x))


class CharLM(nn.Module):
    def __init__(self, V):
        self.tokens = nn.Embedding(V, C)
        self.positions = nn.Embedding(T, C)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(C)

    def __call__(self, ids):
        x = self.tokens(ids) + self.positions(ops.arange(0, ids.shape[1], "int64"))  # [B, T, C]
        for block in self.blocks:
            x = block(x)
        return ops.linear(self.norm(x), self.tokens.weight)  # [B, T, V]: the output shares the input's table


if len(sys.argv) > 1:
    text = pathlib.Path(sys.argv[1]).read_text()
else:
    from pydoc_data.topics import topics

    text = "\n\n".join(topics.values())
characters = sorted(set(text))
ids = np.array([characters.index(c) for c in text])

plm.seed(0)
rng = np.random.default_rng(0)
model = CharLM(len(characters))
opt = optim.AdamW(model.parameters(), lr=3e-3)
for step in range(STEPS):
    windows = ids[rng.integers(0, len(ids) - T, B)[:, None] + np.arange(T + 1)]
    loss = losses.cross_entropy(model(plm.Tensor(windows[:, :-1])), plm.Tensor(windows[:, 1:]))
    opt.zero_grad()
    loss.backward()
    opt.step(clip_norm=1.0)
    if step % 50 == 0 or step == STEPS - 1:
        print(f"step {step}: {loss.item():.3f}")

model.eval()
out = list(ids[:10])
with plm.no_grad():
    for _ in range(200):
        logits = model(plm.Tensor(np.array([out[-T:]]))).numpy()[0, -1]
        out.append(int((logits / 0.8 + rng.gumbel(size=len(characters))).argmax()))
print("".join(characters[i] for i in out))
