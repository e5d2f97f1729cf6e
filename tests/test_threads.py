"""What docs/threads.md promises: models in threads, a model that several threads use, forks."""

import json
import os
import re
import subprocess
import sys
import textwrap
import threading

import numpy as np
import plmcore as plm
import pytest
from plmcore import models, optim, train
from small_models import TEXT

THREADS = 4
CONFIG = dict(model_type="gpt2", vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=2)  # dropout 0.1
TIMES = ("seconds", "tokens_per_second")


def together(work, count=THREADS):
    """work(k) in as many threads at once, and what each returned."""
    found, raised, start = [None] * count, [], threading.Barrier(count)

    def body(k):
        try:
            start.wait()
            found[k] = work(k)
        except BaseException as e:
            raised.append(e)

    threads = [threading.Thread(target=body, args=(k,)) for k in range(count)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not raised, raised
    return found


def ids(k, step=0):
    return np.random.default_rng([k, step]).integers(0, 50, (4, 16))


def bits(model):
    return b"".join(t.numpy().tobytes() for t in model.state_dict().values())


def test_own_loops_get_the_bits_of_one_alone():
    """Weights, dropout and recomputation draw random numbers."""

    def work(k):
        plm.seed(k)
        model = models.build(models.config_from_dict(CONFIG), "causal-lm")
        opt = optim.AdamW(model.parameters(), lr=1e-3)
        for step in range(15):
            opt.zero_grad()
            x = plm.Tensor(ids(k, step))
            model(x, labels=x).loss.backward()
            opt.step()
        return bits(model)

    alone = [work(k) for k in range(THREADS)]
    assert len(set(alone)) == THREADS and together(work) == alone


class Rows:
    def __init__(self, k):
        self.k = k

    def __getitem__(self, step):
        return {"input_ids": ids(self.k, step), "labels": ids(self.k, step)}


def trainer(k, steps=15, model=None, **options):
    if model is None:
        with plm.Generator(k):
            model = models.build(models.config_from_dict(CONFIG), "causal-lm")
    return train.Trainer(
        model, Rows(k), optim.AdamW(model.parameters(), lr=1e-3), steps=steps, seed=k, **options
    )


def test_trainers_get_the_bits_of_one_alone_and_leave_the_threads_random_numbers():
    def work(k):
        plm.seed(100 + k)
        t = trainer(k)
        t.run()
        assert plm.random_state() == [100 + k, 0]
        return bits(t.model)

    alone = [work(k) for k in range(THREADS)]
    assert together(work) == alone


def test_runs_of_the_command_get_the_bits_of_one_alone(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(
        "".join(f"{a} {b} sat on the mat and saw {a * b}.\n" for a in range(30) for b in range(30))
    )
    fast = [
        "data.vocab=300",
        "model.n_layer=1",
        "model.n_embd=16",
        "model.n_head=2",
        "data.length=16",
        "model.n_positions=16",
        "train.evaluate_batches=1",
        "train.log_every=2",
    ]

    def run(name, k):
        out = tmp_path / f"{name}{k}"
        before = plm.random_state()
        plm.pretrain("gpt2", text=[text], out=out, steps=6, save_every=3, seed=k, quiet=True, changes=fast)
        assert plm.random_state() == before
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        for line in lines:
            [line.pop(name, None) for name in TIMES]
        return (out / "final" / "model.safetensors").read_bytes(), lines

    alone = [run("alone", k) for k in range(THREADS)]
    assert together(lambda k: run("together", k)) == alone


# ---- one model in several threads ----


@pytest.fixture(scope="module")
def tokenizer():
    return plm.train_tokenizer(texts=[TEXT], kind="byte-bpe", vocab_size=300)


@pytest.fixture
def lm(tokenizer):
    config = CONFIG | dict(vocab_size=tokenizer.vocab_size, n_positions=64)
    plm.seed(1)
    lm = plm.from_config(config, "causal-lm", resid_pdrop=0.5, embd_pdrop=0.5)
    lm.tokenizer = tokenizer
    return lm


USES = {
    "encode": lambda lm: lm.encode([TEXT[:40], TEXT[4:30]]).tobytes(),
    "generate": lambda lm: lm.generate("the cat", max_new_tokens=8),
    "stream": lambda lm: list(lm.stream("the cat", max_new_tokens=8)),
    "score": lambda lm: lm.score(TEXT[:40])[0].tobytes(),
    "perplexity": lambda lm: str(lm.perplexity(TEXT[:40])),
    "attention": lambda lm: lm.attention(TEXT[:30]).weights.tobytes(),
}


@pytest.mark.parametrize("use", [*USES, "export"])
def test_inference_computes_as_in_eval_mode_and_switches_no_mode(lm, use, monkeypatch, tmp_path):
    def export(lm):
        plm.export(lm, tmp_path / "model.plm")
        # Fresh sizes are numbered, which the checksum and the length of the header see.
        return re.sub(rb"N#\d+", b"N", (tmp_path / "model.plm").read_bytes()[24:])

    ask = USES.get(use, export)
    want = ask(lm.eval())
    lm.train()
    switched = []
    train_mode = plm.nn.Module.train
    monkeypatch.setattr(
        plm.nn.Module, "train", lambda self, mode=True: (switched.append(mode), train_mode(self, mode))[1]
    )
    assert ask(lm) == want
    assert not switched and all(m.training for m in lm.model.modules())


def test_training_is_not_disturbed_by_inference_on_the_same_model(lm):
    """The trained thread gets the bits of one alone, the others whole answers."""
    stop, errors, answers = threading.Event(), [], 0

    def use(name):
        nonlocal answers
        try:
            while not stop.is_set():
                found = USES[name](lm)
                assert found is not None
                answers += 1
        except BaseException as e:
            errors.append((name, e))

    start = {name: np.array(t.numpy()) for name, t in lm.model.state_dict().items()}

    def train_it():
        lm.model.load_state_dict(start)
        lm.model.train()
        t = trainer(3, steps=40, model=lm.model)
        t.run()
        return bits(lm.model)

    alone = train_it()
    threads = [
        threading.Thread(target=use, args=(name,)) for name in ("encode", "generate", "score", "attention")
    ]
    [t.start() for t in threads]
    try:
        beside = train_it()
    finally:
        stop.set()
        [t.join() for t in threads]
    assert not errors, errors
    assert answers and beside == alone


def test_gradients_are_recorded_by_thread():
    inside, go_on = threading.Event(), threading.Event()

    def infer():
        with plm.nn.inference():
            inside.set()
            go_on.wait(60)

    thread = threading.Thread(target=infer)
    thread.start()
    inside.wait(60)
    try:
        assert plm.grad_enabled() and plm.nn.Dropout(0.5).training
        with plm.nn.inference():
            assert not plm.grad_enabled() and not plm.nn.Dropout(0.5).training
        assert plm.grad_enabled()
    finally:
        go_on.set()
        thread.join()


# ---- saving ----


def test_threads_save_one_directory(tmp_path):
    def make(k):
        plm.seed(k)
        return plm.from_config(CONFIG, "causal-lm")

    made = [make(k) for k in range(THREADS)]
    known = {bits(lm.model) for lm in made}

    def save(k):
        for i in range(6):
            made[k].save(tmp_path / "one", max_shard_bytes=None if (i + k) % 2 else 20_000)
            made[k].save(tmp_path / f"own{k}")

    together(save)
    assert bits(plm.load(tmp_path / "one").model) in known
    assert all(bits(plm.load(tmp_path / f"own{k}").model) == bits(made[k].model) for k in range(THREADS))
    assert not list(tmp_path.rglob("*.tmp"))


# ---- forks ----


def test_a_child_forked_beside_training_threads_trains():
    code = """
        import os, sys, threading, time, warnings
        sys.path.insert(0, {tests!r})
        import plmcore as plm
        import test_threads

        def work(k):
            t = test_threads.trainer(k, steps=10)
            t.run()
            return test_threads.bits(t.model)

        alone = [work(k) for k in range(3)]
        stop = threading.Event()
        def busy(k):
            while not stop.is_set():
                assert work(k) == alone[k]
        threads = [threading.Thread(target=busy, args=(k,)) for k in range(2)]
        [t.start() for t in threads]
        good = []
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                right = False
                try:
                    right = work(2) == alone[2]
                finally:
                    os._exit(0 if right else 1)
            end = time.time() + 120
            while time.time() < end and not (done := os.waitpid(pid, os.WNOHANG))[0]:
                time.sleep(0.01)
            if not done[0]:
                os.kill(pid, 9)
                done = os.waitpid(pid, 0)
            good.append(done[1] == 0)
        stop.set()
        [t.join() for t in threads]
        assert all(good), good
    """
    source = textwrap.dedent(code).format(tests=os.path.dirname(__file__))
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=500, env=os.environ
    )
    assert done.returncode == 0, done.stderr


def test_fine_tuning_gets_the_bits_of_one_alone_and_its_own_notes(tmp_path, tokenizer):
    """What loading says, that a head is new, goes into the log of the run that said it."""
    plm.seed(0)
    lm = plm.from_config(CONFIG | dict(vocab_size=tokenizer.vocab_size, n_positions=64), "base")
    lm.save(tmp_path / "body")
    tokenizer.save(tmp_path / "body")
    table = tmp_path / "train.tsv"
    table.write_text("text\tlabel\n" + "".join(f"the cat {n}\t{'ab'[n % 2]}\n" for n in range(20)))

    def run(name, k):
        out = tmp_path / f"{name}{k}"
        plm.finetune(
            tmp_path / "body",
            "classification",
            out=out,
            train=table,
            steps=4,
            seed=k,
            quiet=True,
            changes=["data.batch=4"],
        )
        log = [line[20:] for line in (out / "log.txt").read_text().splitlines()]
        return (out / "final" / "model.safetensors").read_bytes(), log

    alone = [run("alone", k) for k in range(THREADS)]
    assert all(sum("drawn at random" in line for line in log) == 1 for _, log in alone)
    assert together(lambda k: run("together", k)) == alone
