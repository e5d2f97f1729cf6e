"""One contestant in its own process. Answers ("load", case, folder[, weights]), ("outputs",), ("time", seconds), ("memory",), ("bandwidth",), ("scores",)."""

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
        rules = dict(max_new_tokens=case.new, num_beams=case.beams, eos_token_id=None, forced_eos_token_id=None)
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
        model = getattr(self.transformers, ARCHITECTURES[case.size]).from_pretrained(folder / "transformers").eval()
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


def has_encoder(case: Case) -> bool:
    return case.size in ("t5-small", "bart-base")


LIBRARIES = {"plmcore": Plmcore, "transformers": Transformers, "ctranslate2": CTranslate2}


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
        """Bytes per second of a plain read of 512 MB by this library's threads: what a product of one row can reach at most."""
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
