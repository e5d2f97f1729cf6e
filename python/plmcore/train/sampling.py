from __future__ import annotations

import numpy as np

from plmcore import draws, nn
from plmcore._core import Tensor
from plmcore.autograd import no_grad


def continuation(
    model: nn.Module, prompt: np.ndarray, count: int, *, temperature: float = 0.8, seed: int = 0
) -> np.ndarray:
    """`count` tokens drawn after `prompt` (ids [T]); the model sees as many before each as it has positions."""
    ids = [int(i) for i in prompt]
    most, was_training = model.config.longest or 512, model.training
    model.eval()
    with no_grad():
        for n in range(count):
            logits = model(Tensor(np.array([ids[-most:]], np.int64))).logits.numpy()[0, -1].astype(np.float64)
            chance = draws.uniform(seed, n, np.arange(len(logits)))
            ids.append(int((logits / temperature - np.log(-np.log(chance + 1e-12))).argmax()))  # Gumbel's trick
    model.train(was_training)
    return np.array(ids[len(prompt) :], np.int64)
