"""One contestant in its own process: `worker.py SIDE THREADS`.

Answers ("load", case, folder), ("outputs",), ("time", seconds, clock), ("memory",).
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest
from models.worker import peak_memory

from families import cases
from families.cases import BART, CASES, CUTOFFS, DIV, FULL, GPT2, ROWS, TORCH, WIDTH, WORDS, XL, Case

LR, DECAY, SEGMENTS = 1e-4, 0.01, 3
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
Sides = tuple[Callable[[], object], Callable[[], list]]  # what is timed; what is compared, asked once before


class Plmcore:
    def __init__(self, threads: int):
        import plmcore

        plmcore.set_num_threads(threads)
        self.plm = plmcore

    # ---- Transformer-XL ----

    def xl_step(self, case: Case, folder: Path) -> Sides:
        """Segments follow one another, each over the memory of the one before."""
        lm = self.plm.load(folder / "xl").train()
        ids = self.plm.Tensor(case.ids(20_000))
        optimizer = self.plm.optim.AdamW(lm.parameters(), lr=LR, weight_decay=DECAY)
        memory: list = [None]

        def step() -> float:
            optimizer.zero_grad()
            out = lm.model(input_ids=ids, mems=memory[0], labels=ids)
            out.loss.backward()
            optimizer.step()
            memory[0] = out.mems
            return float(out.loss.numpy())

        return step, lambda: [np.array([step() for _ in range(SEGMENTS)])]

    def xl_forward(self, case: Case, folder: Path) -> Sides:
        lm = self.plm.load(folder / "xl")
        ids = self.plm.Tensor(case.ids(20_000))
        with self.plm.no_grad():
            mems = lm.model(input_ids=ids).mems

        def forward() -> np.ndarray:
            with self.plm.no_grad():
                return lm.model(input_ids=ids, mems=mems).logits.numpy()

        return forward, lambda: [contest.sample(forward())]

    def xl_greedy(self, case: Case, folder: Path) -> Sides:
        lm = self.plm.load(folder / "xl", mem_len=case.mem_len)
        made = lambda: lm.generate(case.ids(20_000), max_new_tokens=case.new, eos_token_id=None)
        return made, lambda: [made()]

    # ---- the adaptive softmax ----

    def softmax(self):
        nn, given = self.plm.nn, cases.words()
        softmax = nn.AdaptiveSoftmax(WIDTH, WORDS, CUTOFFS, DIV)
        weights = {"others.weight": given["others"], "projections.0.weight": np.eye(WIDTH, dtype=np.float32)}
        for i in range(len(CUTOFFS) + 1):
            weights[f"tables.{i}.weight"] = given[f"table{i}"]
            if i:
                weights[f"projections.{i}.weight"] = np.ascontiguousarray(given[f"projection{i}"].T)
        for name, p in softmax.named_parameters():
            p.numpy()[...] = weights.get(name, 0.0)
        hidden = self.plm.Tensor(given["hidden"], requires_grad=True)
        return softmax, hidden, self.plm.Tensor(given["labels"])

    def softmax_step(self, case: Case, folder: Path) -> Sides:
        softmax, hidden, labels = self.softmax()
        parameters = list(softmax.parameters())

        def step() -> float:
            for p in (hidden, *parameters):
                p.grad = None
            loss = softmax(hidden, labels).loss
            loss.backward()
            return float(loss.numpy())

        return step, lambda: [np.array([step()]), contest.sample(hidden.grad.numpy())]

    def softmax_loss(self, case: Case, folder: Path) -> Sides:
        softmax, hidden, labels = self.softmax()

        def loss() -> float:
            with self.plm.no_grad():
                return float(softmax(hidden, labels).loss.numpy())

        return loss, lambda: [np.array([loss()])]

    # ---- GLM and MASS ----

    def trained(self, folder: Path, inputs: dict[str, np.ndarray]) -> Sides:
        """Steps of AdamW on one batch."""
        lm = self.plm.load(folder).train()
        batch = {name: self.plm.Tensor(a) for name, a in inputs.items()}
        optimizer = self.plm.optim.AdamW(lm.parameters(), lr=LR, weight_decay=DECAY)

        def step() -> float:
            optimizer.zero_grad()
            out = lm.model(**batch)
            out.loss.backward()
            optimizer.step()
            return float(out.loss.numpy())

        return step, lambda: [np.array([step() for _ in range(SEGMENTS)])]

    def glm_step(self, case: Case, folder: Path) -> Sides:
        return self.trained(folder / "glm", case.blanks())

    def glm_fill(self, case: Case, folder: Path) -> Sides:
        from plmcore._core import Search
        from plmcore.generate.blanks import Blanks, BlankSteps
        from plmcore.generate.settings import Settings
        from plmcore.models.blanks import Pieces

        lm = self.plm.load(folder / "glm")
        ids, start, end = case.ids(30_000)[0], 1, 2
        text = Blanks(ids, np.array([len(ids) // 2]), (True,))
        settings = Settings.of(lm.config, None, dict(max_new_tokens=1, eos_token_id=None))

        def fill() -> None:
            with self.plm.nn.inference():
                steps = BlankSteps(lm.model, [text], Pieces(start, end, case.new))
                rules = settings.search_options(1, len(steps.prompts[0]), None, False)
                rules.max_new_tokens = case.new
                search = Search([p.tolist() for p in steps.prompts], rules)
                while not search.done:
                    search.accept(steps(search))

        return fill, lambda: []

    def mass_step(self, case: Case, folder: Path) -> Sides:
        return self.trained(folder / self.stacks, self.pair(case))

    def mass_beams(self, case: Case, folder: Path) -> Sides:
        lm = self.plm.load(folder / self.stacks)
        rules = dict(max_new_tokens=case.new, num_beams=4, eos_token_id=None, forced_eos_token_id=None)
        made = lambda: lm.generate(case.ids(30_000), **rules)
        return made, lambda: [made()]

    stacks = "mass"

    @staticmethod
    def pair(case: Case) -> dict[str, np.ndarray]:
        ids = case.ids(30_000)
        return {"input_ids": ids, "labels": ids[:, ::-1].copy()}


class Beside(Plmcore):
    """plmcore's own GPT-2 and BART, which do the same work as GLM and MASS."""

    stacks = "bart"

    def glm_step(self, case: Case, folder: Path) -> Sides:
        """As many labels as GLM has."""
        given = case.blanks()
        labels = np.where(
            np.arange(case.length) >= given["source_lengths"][:, None], given["input_ids"], -100
        )
        return self.trained(folder / "gpt2", {"input_ids": given["input_ids"], "labels": labels})

    def glm_fill(self, case: Case, folder: Path) -> Sides:
        lm = self.plm.load(folder / "gpt2")
        made = lambda: lm.generate(case.ids(30_000), max_new_tokens=case.new, eos_token_id=None)
        return made, lambda: []


class Torch:
    """Eager PyTorch with its fused AdamW."""

    def __init__(self, threads: int):
        import torch

        torch.set_num_threads(threads)
        self.torch = torch

    def steps(self, model, loss: Callable) -> Callable[[], float]:
        optimizer = self.torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=DECAY, fused=True)

        def step() -> float:
            optimizer.zero_grad()
            value = loss()
            value.backward()
            optimizer.step()
            return value.item()

        return step

    def glm_step(self, case: Case, folder: Path) -> Sides:
        from plmcore import safetensors

        from families.glm_reference import GLM

        tensors, _ = safetensors.read(folder / "glm" / "model.safetensors")
        model = GLM(cases.GLM)
        model.load_state_dict(
            {n.removeprefix("glm."): self.torch.tensor(np.asarray(t)) for n, t in tensors.items()}
        )
        batch = {name: self.torch.from_numpy(a) for name, a in case.blanks().items()}
        step = self.steps(model, lambda: model(**batch))
        return step, lambda: [np.array([step() for _ in range(SEGMENTS)])]

    def softmax(self):
        torch, given = self.torch, {k: self.torch.from_numpy(v) for k, v in cases.words().items()}
        softmax = torch.nn.AdaptiveLogSoftmaxWithLoss(WIDTH, WORDS, CUTOFFS, div_value=DIV)
        with torch.no_grad():
            softmax.head.weight.copy_(torch.cat([given["table0"], given["others"]]))
            for i, (down, out) in enumerate(softmax.tail, 1):
                down.weight.copy_(given[f"projection{i}"])
                out.weight.copy_(given[f"table{i}"])
        hidden = given["hidden"].requires_grad_()
        return list(softmax.parameters()), hidden, lambda: softmax(hidden, given["labels"]).loss

    def softmax_step(self, case: Case, folder: Path) -> Sides:
        parameters, hidden, loss = self.softmax()

        def step() -> float:
            for p in (hidden, *parameters):
                p.grad = None
            value = loss()
            value.backward()
            return value.item()

        return step, lambda: [np.array([step()]), contest.sample(hidden.grad.numpy())]

    def softmax_loss(self, case: Case, folder: Path) -> Sides:
        _, _, loss = self.softmax()

        def run() -> float:
            with self.torch.inference_mode():
                return loss().item()

        return run, lambda: [np.array([run()])]


class AllWords(Torch):
    """A linear layer over all words and cross-entropy. It is another model: its loss is that of nothing."""

    def softmax(self):
        torch, F = self.torch, self.torch.nn.functional
        weight = (0.02 * torch.randn(WORDS, WIDTH)).requires_grad_()
        hidden = torch.randn(ROWS, WIDTH, requires_grad=True)
        labels = torch.from_numpy(cases.words()["labels"])
        return [weight], hidden, lambda: F.cross_entropy(F.linear(hidden, weight), labels)


class Transformers4(Torch):
    """transformers 4.35.2, the last whose Transformer-XL runs: PLM_TRANSFORMERS_4 names its directory."""

    def __init__(self, threads: int):
        sys.path.insert(0, os.environ["PLM_TRANSFORMERS_4"])
        warnings.simplefilter("ignore")  # that release is older than this torch
        import transformers

        if transformers.__version__ != "4.35.2":
            raise ValueError(f"PLM_TRANSFORMERS_4 has transformers {transformers.__version__}, not 4.35.2")
        transformers.utils.logging.set_verbosity_error()
        self.transformers = transformers
        super().__init__(threads)

    def xl(self, folder: Path, **changes):
        return self.transformers.TransfoXLLMHeadModel.from_pretrained(folder / "xl", **changes)

    def xl_step(self, case: Case, folder: Path) -> Sides:
        model = self.xl(folder).train()
        ids = self.torch.from_numpy(case.ids(20_000))
        memory: list = [None]

        def loss():
            out = model(ids, mems=memory[0], labels=ids)
            memory[0] = out.mems
            return out.loss

        step = self.steps(model, loss)
        return step, lambda: [np.array([step() for _ in range(SEGMENTS)])]

    def xl_forward(self, case: Case, folder: Path) -> Sides:
        model = self.xl(folder).eval()
        ids = self.torch.from_numpy(case.ids(20_000))
        with self.torch.inference_mode():
            mems = model(ids).mems

        def forward() -> np.ndarray:
            with self.torch.inference_mode():
                return model(ids, mems=mems).prediction_scores.numpy()

        return forward, lambda: [contest.sample(forward())]

    def xl_greedy(self, case: Case, folder: Path) -> Sides:
        model = self.xl(folder, mem_len=case.mem_len).eval()
        ids = self.torch.from_numpy(case.ids(20_000))
        rules = dict(max_new_tokens=case.new, do_sample=False, eos_token_id=None, pad_token_id=0)

        def made() -> np.ndarray:
            with self.torch.inference_mode():
                return model.generate(ids, **rules).numpy()

        return made, lambda: [made()]


SIDES = {
    "plmcore": Plmcore,
    GPT2: Beside,
    BART: Beside,
    TORCH: Torch,
    FULL: AllWords,
    XL: Transformers4,
}


class Worker:
    def __init__(self, side: str, threads: int):
        self.side = SIDES[side](threads)

    def load(self, name: str, folder: Path) -> None:
        case = CASES[name]
        self.run, self.check = getattr(self.side, case.kind)(case, folder)

    def outputs(self) -> list[np.ndarray]:
        return self.check()

    def time(self, seconds: float, clock: str) -> float:
        return contest.measure(self.run, seconds, warm=False, clock=CLOCKS[clock])

    def memory(self) -> int:
        return peak_memory()


if __name__ == "__main__":
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    contest.serve({name: getattr(worker, name) for name in ("load", "outputs", "time", "memory")})
