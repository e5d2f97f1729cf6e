"""One contestant: recurrent translation by plmcore, or the same weights by a loop in torch."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

BEAMS, TOKENS = 4, 30


def plmcore_search(folder: str) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    import plmcore as plm

    lm = plm.load(folder)

    def run(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rules = dict(num_beams=BEAMS, max_new_tokens=TOKENS, eos_token_id=None, length_penalty=0.0)
        found = lm.generate(ids, output_scores=True, **rules)
        return found.sequences[:, 1:], found.scores

    return run


def plmcore_scores(folder: str, ids: np.ndarray, sentences: np.ndarray) -> np.ndarray:
    """The log-probabilities of given sentences, in one pass over each."""
    import plmcore as plm

    lm = plm.load(folder)
    start = np.full((len(ids), 1), lm.config.decoder_start_token_id)
    with plm.no_grad():
        out = lm(input_ids=ids, decoder_input_ids=np.concatenate([start, sentences[:, :-1]], 1))
        each = plm.ops.log_softmax(out.logits).numpy()
    return np.take_along_axis(each, sentences[:, :, None], 2).sum((1, 2))


def torch_search(folder: str, threads: int) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Beams of all sentences in one batch, a step at a time, as tutorials and OpenNMT-py have it."""
    import json

    import torch
    from safetensors.torch import load_file

    torch.set_num_threads(threads)
    config = json.loads((Path(folder) / "config.json").read_text())
    w = load_file(Path(folder) / "model.safetensors")
    kind = torch.nn.LSTM if config["cell"] == "lstm" else torch.nn.GRU
    both, attention = config["bidirectional"], config["attention"]
    H, L = config["d_hidden"], config["decoder_layers"]
    fed = (2 if both else 1) * H if attention == "bahdanau" else H * config["input_feeding"]

    def network(name: str, inputs: int, layers: int, both: bool) -> Any:
        made = kind(inputs, H, layers, batch_first=True, bidirectional=both)
        own = {k.removeprefix(name): t for k, t in w.items() if k.startswith(name)}
        made.load_state_dict(own)
        return made.eval()

    encoder = network("encoder.rnn.", config["d_embed"], config["encoder_layers"], both)
    decoder = network("decoder.rnn.", config["d_embed"] + fed, L, False)

    def keys_of(h: Any) -> Any:
        return h @ w["attn.W_a"].T if attention == "general" else h @ w["attn.U_a"].T

    def look(s: Any, keys: Any, h: Any) -> Any:
        """[N, H], [N, S, .] -> context [N, W]"""
        if attention == "general":
            scores = torch.bmm(keys, s[:, :, None])[:, :, 0]
        else:
            scores = torch.tanh((s @ w["attn.W_a"].T)[:, None] + keys) @ w["attn.v_a"]
        return torch.bmm(torch.softmax(scores, 1)[:, None], h)[:, 0]

    @torch.inference_mode()
    def run(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ids = torch.from_numpy(array)
        B, V = len(ids), len(w["out.b_s"])
        h, state = encoder(torch.nn.functional.embedding(ids, w["encoder.embedding.weight"]))
        state = state if isinstance(state, tuple) else (state,)
        if both:
            state = tuple(
                torch.stack([torch.tanh(t[2 * i + 1] @ w[f"bridge.{n}.{i}.weight"].T) for i in range(L)])
                for n, t in zip("hc", state)
            )
        state = tuple(t.repeat_interleave(BEAMS, 1) for t in state)
        h = h.repeat_interleave(BEAMS, 0)
        keys = keys_of(h)
        feed = torch.zeros(B * BEAMS, H)
        tokens = torch.full((B * BEAMS,), config["decoder_start_token_id"])
        written = torch.zeros(B * BEAMS, 0, dtype=torch.long)
        total = torch.full((B, BEAMS), float("-inf"))
        total[:, 0] = 0.0
        for _ in range(TOKENS):
            x = torch.nn.functional.embedding(tokens, w["decoder.embedding.weight"])
            if attention == "bahdanau":
                context = look(state[0][-1], keys, h)
                x = torch.cat([x, context], 1)
            elif config["input_feeding"]:
                x = torch.cat([x, feed], 1)
            y, state = decoder(x[:, None], state if len(state) == 2 else state[0])
            state = state if isinstance(state, tuple) else (state,)
            s = y[:, 0]
            if attention == "general":
                context = look(s, keys, h)
            feed = torch.tanh(torch.cat([context, s], 1) @ w["attn.W_c"].T)
            logits = torch.nn.functional.linear(feed, w["out.W_s"], w["out.b_s"])
            scores = total.reshape(-1, 1) + torch.log_softmax(logits, 1)
            total, best = scores.reshape(B, BEAMS * V).topk(BEAMS, 1)
            parents = (best // V + torch.arange(B)[:, None] * BEAMS).reshape(-1)
            tokens = (best % V).reshape(-1)
            written = torch.cat([written[parents], tokens[:, None]], 1)
            state = tuple(t[:, parents] for t in state)
            feed = feed[parents]
        return written.reshape(B, BEAMS, TOKENS)[:, 0].numpy(), total[:, 0].numpy()

    return run


def main() -> None:
    library, threads = sys.argv[1], int(sys.argv[2])
    loaded: dict[str, Callable] = {}

    def load(folder: str) -> None:
        loaded["run"] = plmcore_search(folder) if library == "plmcore" else torch_search(folder, threads)

    def output(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return loaded["run"](ids)

    def seconds(ids: np.ndarray) -> float:
        """Of the processor, all threads."""
        start = time.process_time()
        loaded["run"](ids)
        return time.process_time() - start

    contest.serve({"load": load, "output": output, "scores": plmcore_scores, "seconds": seconds})


if __name__ == "__main__":
    main()
