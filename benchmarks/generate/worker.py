"""One contestant in its own process.

Answers ("load", case, folder[, weights]), ("outputs",), ("time", seconds), ("memory",), ("bandwidth",),
("scores",).
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest
from models.worker import peak_memory

from generate.cases import ARCHITECTURES, CASES, Case


class Plmcore:
    def __init__(self, threads: int):
        import plmcore

        plmcore.set_num_threads(threads)
        self.plm = plmcore

    def load(self, case: Case, folder: Path):
        lm = self.lm = self.plm.load(folder / ("transformers" if case.weights == "float32" else "int8/model"))
        if not case.new:
            return lambda: self.states(case.ids())
        rules = dict(
            max_new_tokens=case.new, num_beams=case.beams, eos_token_id=None, forced_eos_token_id=None
        )
        return lambda: lm.generate(case.ids(), **rules)[:, -case.new :]

    def states(self, ids: np.ndarray) -> np.ndarray:
        with self.plm.no_grad():
            return self.lm(ids).last_hidden_state.numpy()

    def scores(self, case: Case) -> np.ndarray:
        """Of the case's probe: log-probabilities of its tokens, or an encoder's states."""
        source, target = case.probe()
        if not case.new:
            return self.states(source[None])[0]
        return self.lm.score([source], [target])[0] if has_encoder(case) else self.lm.score([source])[0]


class Transformers:
    def __init__(self, threads: int):
        import torch
        import transformers

        torch.set_num_threads(threads)
        transformers.utils.logging.set_verbosity_error()
        self.torch, self.transformers = torch, transformers

    def load(self, case: Case, folder: Path):
        model = (
            getattr(self.transformers, ARCHITECTURES[case.size])
            .from_pretrained(folder / "transformers")
            .eval()
        )
        model.generation_config.eos_token_id = model.generation_config.forced_eos_token_id = None
        ids = self.torch.tensor(case.ids())
        mask = self.torch.ones_like(ids)

        def run():
            out = model.generate(
                ids,
                attention_mask=mask,
                max_new_tokens=case.new,
                min_new_tokens=case.new,
                num_beams=case.beams,
                do_sample=False,
            )
            return out.numpy()[:, -case.new :]

        return run


class CTranslate2:
    def __init__(self, threads: int):
        import ctranslate2

        self.ct2, self.threads = ctranslate2, threads

    def load(self, case: Case, folder: Path):
        options = dict(device="cpu", compute_type=case.weights, inter_threads=1, intra_threads=self.threads)
        path = str(folder / "ctranslate2" / "model")
        prompts = [[f"w{i}" for i in row] for row in case.ids()]
        rules = dict(beam_size=case.beams, max_batch_size=case.batch)
        ids = lambda tokens: [int(t[1:]) for t in tokens]
        if not case.new:
            model = self.model = self.ct2.Encoder(path, **options)
            return lambda: self.states(case.ids())
        if case.size == "gpt2":
            model = self.model = self.ct2.Generator(path, **options)
            rules |= dict(max_length=case.new, min_length=case.new, include_prompt_in_result=False)
            return lambda: np.array([ids(r.sequences[0]) for r in model.generate_batch(prompts, **rules)])
        model = self.model = self.ct2.Translator(path, **options)
        rules |= dict(max_decoding_length=case.new, min_decoding_length=case.new, max_input_length=0)
        return lambda: np.array([ids(r.hypotheses[0]) for r in model.translate_batch(prompts, **rules)])

    def states(self, ids: np.ndarray) -> np.ndarray:
        arrays = [ids.astype(np.int32), np.full(len(ids), ids.shape[1], np.int32)]
        views = [self.ct2.StorageView.from_array(a) for a in arrays]  # they borrow the arrays' memory
        return np.array(self.model.forward_batch(*views).last_hidden_state)

    def scores(self, case: Case) -> np.ndarray:
        source, target = case.probe()
        if not case.new:
            return self.states(source[None])[0]
        words = lambda row: [f"w{i}" for i in row]
        if not has_encoder(case):
            return np.array(self.model.score_batch([words(source)])[0].log_probs)
        scored = self.model.score_batch([words(source)], [words(target)], max_input_length=0)[0]
        return np.array(scored.log_probs)[: len(target)]  # an end token follows


class LlamaCpp:
    """Greedy decoding by llama.cpp's own functions: all sequences of a batch in one call for each token."""

    def __init__(self, threads: int):
        import llama_cpp

        self.lib, self.threads = llama_cpp, threads
        self.silent = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.silent, None)

    def load(self, case: Case, folder: Path):
        lib, longest = self.lib, case.prompt + case.new
        kind = "F32" if case.weights == "float32" else "Q8_0"
        path = folder / "llama.cpp" / "model" / f"{kind}.gguf"
        self.model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_seq_max = case.batch * longest, case.batch
        params.n_batch = params.n_ubatch = max(case.batch * case.prompt, len(case.probe()[0]))
        params.n_threads = params.n_threads_batch = self.threads
        self.context = lib.llama_init_from_model(self.model, params)
        if not self.context:
            raise RuntimeError(f"llama.cpp cannot run '{path}'")
        self.vocabulary = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self.model))
        self.batch = lib.llama_batch_init(params.n_batch, 0, 1)
        return lambda: self.generate(case.ids(), case.new)

    def decode(self, ids: np.ndarray, first: int, wanted: str) -> np.ndarray:
        """Runs ids [B, T] at the positions from `first` on.  -> logits [B, V] after the last ones, or [B T,
        V]
        """
        lib, b, (B, T) = self.lib, self.batch, ids.shape
        b.n_tokens = B * T
        for i in range(B):
            for t in range(T):
                k = i * T + t
                b.token[k], b.pos[k], b.n_seq_id[k], b.seq_id[k][0] = int(ids[i, t]), first + t, 1, i
                b.logits[k] = wanted == "all" or t == T - 1
        if status := lib.llama_decode(self.context, b):
            raise RuntimeError(f"llama_decode: {status}")
        rows = range(B * T) if wanted == "all" else range(T - 1, B * T, T)
        found = [lib.llama_get_logits_ith(self.context, k) for k in rows]
        return np.stack([np.ctypeslib.as_array(p, (self.vocabulary,)) for p in found])

    def clear(self) -> None:
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.context), True)

    def generate(self, prompts: np.ndarray, new: int) -> np.ndarray:
        self.clear()
        tokens = [self.decode(prompts, 0, "last").argmax(1)]
        for k in range(new - 1):
            tokens.append(self.decode(tokens[-1][:, None], prompts.shape[1] + k, "last").argmax(1))
        return np.stack(tokens, 1)

    def scores(self, case: Case) -> np.ndarray:
        self.clear()
        source, _ = case.probe()
        logits = self.decode(source[None], 0, "all")[:-1].astype(np.float64)
        logits -= logits.max(1, keepdims=True)
        return logits[np.arange(len(logits)), source[1:]] - np.log(np.exp(logits).sum(1))


def has_encoder(case: Case) -> bool:
    return case.size in ("t5-small", "bart-base")


LIBRARIES = {
    "plmcore": Plmcore,
    "transformers": Transformers,
    "ctranslate2": CTranslate2,
    "llama.cpp": LlamaCpp,
}


class Worker:
    def __init__(self, library: str, threads: int):
        self.side = LIBRARIES[library](threads)

    def load(self, name: str, folder: Path, weights: str | None = None) -> None:
        self.case = replace(CASES[name], weights=weights or CASES[name].weights)
        self.run = self.side.load(self.case, folder)

    def scores(self) -> np.ndarray:
        return self.side.scores(self.case)

    def outputs(self) -> np.ndarray:
        return self.run()

    def time(self, seconds: float) -> float:
        return contest.measure(self.run, seconds, warm=False)

    def memory(self) -> int:
        return peak_memory()

    def bandwidth(self) -> float:
        """Bytes per second of a plain read of 512 MB by this library's threads: what a product of one row can
        reach at most.
        """
        plm = self.side.plm
        x = plm.ones((128 << 20,))
        best = 0.0
        with plm.no_grad():
            for _ in range(5):
                start = time.perf_counter()
                plm.ops.sum(x).numpy()
                best = max(best, x.nbytes / (time.perf_counter() - start))
        return best


if __name__ == "__main__":
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    contest.serve(
        {name: getattr(worker, name) for name in ("load", "outputs", "time", "memory", "bandwidth", "scores")}
    )
