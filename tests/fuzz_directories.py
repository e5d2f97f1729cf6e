"""Damages model directories, tokenizers, indexes, run directories and settings at random: python
tests/fuzz_directories.py --seconds 600 --seed 1.

What users call must work or end in an error of plmcore's own, or of the system. Anything else is reported
with the seed of its case: an error of another kind, a call that takes more than --limit seconds of
a processor or ten times as many by the clock, or a process that dies. Cases run in a child process with
limited memory.
"""

import argparse
import contextlib
import copy
import io
import json
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

import plmcore as plm
from plmcore import safetensors
from plmcore.cli import main
from plmcore.tokenizers.guard import TokenizerError
from plmcore.train import NonFiniteError, run_settings
from plmcore.train.nonfinite import DivergedError

GOLDEN = pathlib.Path(__file__).parent / "golden" / "models"
TYPED = (
    plm.ArgumentError,
    plm.ShapeError,
    plm.IndexRangeError,
    plm.DTypeError,
    plm.DeviceError,
    plm.GraphError,
    plm.TraceError,
    plm.FormatError,
    plm.OutOfMemoryError,
    OSError,
    ImportError,
    DivergedError,
    NonFiniteError,
    TokenizerError,
)
TEXT = (
    "the cat sat on the mat and the dog ran far away.\n\nshe sat there. he ran home to see the cat.\n\n" * 12
)
ODD = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    7,
    100,
    10_000,
    2**31 - 1,
    2**31,
    2**63,
    10**40,
    0.5,
    -0.0,
    1e300,
    1e-300,
    float("inf"),
    float("nan"),
    "",
    "a",
    "é猫\ud800",
    "none",
    "float16",
    "../x",
    "/dev/null",
    "\0",
    [],
    [1],
    ["a"],
    [[]],
    {},
    {"a": 1},
    {"type": "Lowercase"},
    {"String": "a"},
    "a" * 5000,
]
MEMORY = 10 << 30


class Slow(BaseException):
    """A case took too long."""


def damaged(value, rng: random.Random):
    """The same JSON with one to three places changed."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        value = changed(value, rng)
    return value


def odd(rng):
    """One of ODD; a copy, as later changes may go into it."""
    return copy.deepcopy(rng.choice(ODD))


def changed(value, rng):
    if not isinstance(value, (dict, list)) or not value or rng.random() < 0.15:
        kind = rng.random()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and kind < 0.3:
            return rng.choice([value + 1, value - 1, -value, value * 1000, float(value)])
        if isinstance(value, str) and kind < 0.3:
            return rng.choice([value[::-1], value * 3, value[:-1], value.upper()])
        return odd(rng)
    key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    action = rng.random()
    if action < 0.1:
        del value[key]
    elif action < 0.15:
        if isinstance(value, dict):
            value[rng.choice(["x", "type", "layers", *value])] = odd(rng)
        else:
            value.insert(key, copy.deepcopy(rng.choice([*ODD, value[key]])))
    elif action < 0.18 and isinstance(value, list):
        value[:] = [copy.deepcopy(v) for _ in range(rng.choice([2, 50])) for v in value]
    else:
        value[key] = changed(value[key], rng)
    return value


def damaged_file(path: pathlib.Path, rng: random.Random) -> None:
    """A JSON file at its values, any file at its bytes, or something else in its place."""
    kind = rng.random()
    data = bytearray(path.read_bytes())
    if path.suffix == ".json" and kind < 0.75:
        with contextlib.suppress(ValueError):  # it may be damaged already
            path.write_text(json.dumps(damaged(json.loads(data), rng)))
            return
    if kind < 0.9 and data:
        for _ in range(rng.choice([1, 2, 8])):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
        path.write_bytes(data)
    elif kind < 0.95:
        path.write_bytes(data[: rng.randrange(len(data) + 1)])
    else:
        path.unlink()
        rng.choice(
            [lambda: None, path.mkdir, lambda: path.symlink_to(path.name), lambda: path.write_bytes(b"")]
        )()


# ---- the subjects: a function of a folder to prepare, and one of a case ----


class Subject:
    def __init__(self, folder: pathlib.Path):
        self.folder, self.case = folder, folder / "case"

    def fresh(self, source: pathlib.Path) -> pathlib.Path:
        shutil.rmtree(self.case, ignore_errors=True)
        return pathlib.Path(shutil.copytree(source, self.case))


class Config(Subject):
    def __call__(self, rng):
        folder = self.fresh(rng.choice(sorted(p for p in GOLDEN.iterdir() if p.is_dir())))
        damaged_file(folder / "config.json", rng)
        if rng.random() < 0.2:
            (folder / "generation_config.json").write_text(
                json.dumps(
                    damaged(
                        {"num_beams": 2, "max_new_tokens": 3, "eos_token_id": [1], "do_sample": False}, rng
                    )
                )
            )
        with contextlib.suppress(*TYPED):
            plm.from_config(folder, rng.choice(["base", "causal-lm", "sequence-classification"]))
        main(["info", str(folder)])
        lm = plm.load(folder, strict=rng.random() < 0.9)
        with contextlib.suppress(*TYPED):
            lm(input_ids=[[1, 2, 3]])
        with contextlib.suppress(*TYPED):
            lm.generate([[1, 2]], max_new_tokens=rng.choice([2, None]))
        lm.save(self.folder / "saved")


class Tokenizer(Subject):
    def __init__(self, folder):
        super().__init__(folder)
        (folder / "text.txt").write_text(TEXT)
        self.sources = []
        for kind in ("wordpiece", "bpe", "byte-bpe", "unigram", "words", "characters"):
            with contextlib.suppress(*TYPED):
                plm.train_tokenizer([folder / "text.txt"], kind=kind, vocab_size=300).save(folder / kind)
                self.sources.append(folder / kind)

    def __call__(self, rng):
        folder = self.fresh(rng.choice(self.sources))
        for _ in range(rng.choice([1, 1, 2])):
            damaged_file(rng.choice(sorted(p for p in folder.iterdir() if p.is_file())), rng)
        tokenizer = plm.load_tokenizer(folder)
        with contextlib.suppress(*TYPED):
            batch = tokenizer(["the cat sat", "", "é 猫 " * 20], pair=rng.choice([None, ["a", "b", "c"]]))
            tokenizer.decode([row.tolist() for row in batch.input_ids])
        tokenizer.save(self.folder / "saved")


class Index(Subject):
    def __init__(self, folder):
        super().__init__(folder)
        tensors, metadata = safetensors.read(GOLDEN / "bert")
        (folder / "source").mkdir()
        safetensors.write(folder / "source", tensors, metadata, max_shard_bytes=4000)

    def __call__(self, rng):
        folder = self.fresh(self.folder / "source")
        files = sorted(folder.iterdir())
        damaged_file(rng.choice([folder / "model.safetensors.index.json", *files]), rng)
        tensors, _ = safetensors.read(folder, mapped=rng.random() < 0.5)
        for tensor in tensors.values():
            tensor.numpy().sum()


class Run(Subject):
    def __init__(self, folder):
        super().__init__(folder)
        (folder / "text.txt").write_text(TEXT)
        self.options = dict(
            quiet=True,
            changes=[
                "model.n_layer=1",
                "model.n_embd=8",
                "model.n_head=2",
                "data.length=16",
                "data.batch=2",
                "train.evaluate_every=2",
            ],
        )
        plm.pretrain(
            "gpt2", text=[folder / "text.txt"], steps=2, save_every=1, out=folder / "run", **self.options
        )

    def __call__(self, rng):
        folder = self.fresh(self.folder / "run")
        shutil.rmtree(folder / "final", ignore_errors=True)
        files = sorted(p for p in folder.rglob("*") if p.is_file())
        for _ in range(rng.choice([1, 1, 2])):
            damaged_file(rng.choice([p for p in files if p.exists() and p.is_file()]), rng)
        if rng.random() < 0.3:
            for path in sorted((folder / "checkpoints").glob("step-*"))[1:]:
                shutil.rmtree(path, ignore_errors=True)  # so that there is something left to do
        plm.pretrain(out=folder, resume=True, quiet=True)


class Settings(Subject):
    FAMILIES = {
        "gpt2": ["model.n_layer=1", "model.n_embd=8", "model.n_head=2"],
        "bert": ["model.num_hidden_layers=1", "model.hidden_size=8", "model.num_attention_heads=2"],
        "t5": ["model.num_layers=1", "model.d_model=8"],
        "bart": ["model.encoder_layers=1", "model.decoder_layers=1"],
        "xlnet": ["model.n_layer=1"],
    }
    VALUES = [
        "none",
        "0",
        "1",
        "-1",
        "2",
        "1.5",
        "1e300",
        "-1e300",
        "1e-300",
        "inf",
        "nan",
        "true",
        "false",
        "text",
        "",
        "[]",
        "[1]",
        "[0.5, 0.5, 0]",
        '["a"]',
        "{a = 1}",
        "2147483648",
        "9223372036854775807",
        "1" * 400,
        "'é'",
        "[[",
        "1979-05-27",
    ]
    ENDLESS = (
        "train.steps",
        "train.epochs",
        "data.accumulate",
        "data.ramp",
    )  # many steps are what was asked for

    def __init__(self, folder):
        super().__init__(folder)
        (folder / "text.txt").write_text(TEXT)
        (folder / "table.tsv").write_text("text\tlabel\n" + "the cat sat\tgood\nthe dog ran\tbad\n" * 4)
        shutil.copytree(GOLDEN / "bert", folder / "bert")
        words = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat dog ran ##s far away home".split()
        (folder / "bert" / "vocab.txt").write_text("\n".join(words))

    def __call__(self, rng):
        shutil.rmtree(self.case, ignore_errors=True)
        if rng.random() < 0.4:
            self.finetune(rng)
        else:
            self.pretrain(rng)

    def assignments(self, names, rng, usual=()):
        chosen = {}
        for name in rng.sample(names, rng.choice([1, 1, 2, 3])):
            values = [v for v in self.VALUES if name not in self.ENDLESS or len(v) < 8]
            chosen[name] = rng.choice(values)
        return [f"{k}={v}" for k, v in chosen.items()] + [
            u for u in usual if u.partition("=")[0] not in chosen
        ]

    def pretrain(self, rng):
        family = rng.choice(list(self.FAMILIES))
        names = [f"{s}.{k}" for s, t in run_settings.defaults_of(family, "tiny").items() for k in t]
        small = [*self.FAMILIES[family], "data.length=16", "data.batch=2", "train.steps=1"]
        plm.pretrain(
            family,
            text=[self.folder / "text.txt"],
            out=self.case,
            quiet=True,
            changes=self.assignments(names, rng, small),
        )

    def finetune(self, rng):
        from plmcore.tasks import task_settings

        model, table = self.folder / "bert", self.folder / "table.tsv"
        names = [
            f"{s}.{k}" for s, t in task_settings.defaults("classification", str(model)).items() for k in t
        ]
        changes = self.assignments(
            [n for n in names if n not in ("run.model", "run.task")], rng, ["train.steps=1"]
        )
        plm.finetune(
            model, task="classification", train=table, dev=table, out=self.case, quiet=True, changes=changes
        )


SUBJECTS = {"config": Config, "tokenizer": Tokenizer, "index": Index, "run": Run, "settings": Settings}


# ---- cases ----


def too_slow(*_):
    raise Slow


def case(subject: Subject, seed: str, limit: int) -> str | None:
    """What went wrong, if anything. The processor's time counts, which other work on the machine does not
    change; the clock finds what waits for ever.
    """
    for name in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(name, too_slow)
    signal.setitimer(signal.ITIMER_PROF, limit)
    signal.alarm(10 * limit)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            subject(random.Random(seed))
    except TYPED as e:
        if not str(e):
            return f"an empty message: {type(e).__name__}"
    except Slow:
        return f"took more than {limit} seconds of a processor, or {10 * limit} by the clock"
    except Exception:
        return traceback.format_exc(limit=-6)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    return None


def child(name: str, seed: int, first: int, count: int, seconds: float, limit: int) -> None:
    """Runs cases; prints the number of each before it begins, and what went wrong."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        subject = SUBJECTS[name](pathlib.Path(folder))
        for number in range(first, first + count):
            if time.monotonic() > end:
                return
            print(json.dumps({"case": number}), flush=True)
            if problem := case(subject, f"{name}-{seed}-{number}", limit):
                print(json.dumps({"case": number, "problem": problem}), flush=True)


def fuzz(
    name: str, seed: int, count: int, seconds: float, limit: int, first: int = 0
) -> tuple[int, list[str]]:
    """Cases that ran, and what went wrong. A child that dies is started again after its last case."""
    problems, done, end = [], first, time.monotonic() + seconds
    while done < first + count and (left := end - time.monotonic()) > 0:
        command = [
            sys.executable,
            __file__,
            "--child",
            name,
            "--seed",
            seed,
            "--first",
            done,
            "--count",
            first + count - done,
            "--seconds",
            left,
            "--limit",
            limit,
        ]
        process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        out, err = process.communicate()
        at = done
        for line in out.splitlines():
            told = json.loads(line)
            at = told["case"]
            if "problem" in told:
                problems.append(f"{name} case {at}: {told['problem']}")
        if process.returncode == 0:
            return at + 1 - first, problems
        problems.append(f"{name} case {at}: the process ended with {process.returncode}: {err[-1500:]}")
        done = at + 1
        if not out:
            break
    return done - first, problems


def run(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subject", choices=[*SUBJECTS, "all"], default="all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--count", type=int, default=10**9, help="cases of each subject")
    parser.add_argument("--seconds", type=float, default=1e9, help="for all subjects together")
    parser.add_argument("--limit", type=int, default=60, help="seconds of a processor that one case may take")
    parser.add_argument("--child", choices=SUBJECTS)
    args = parser.parse_args(argv)
    if args.child:
        child(args.child, args.seed, args.first, args.count, args.seconds, args.limit)
        return 0
    chosen = list(SUBJECTS) if args.subject == "all" else [args.subject]
    failed = 0
    for name in chosen:
        ran, problems = fuzz(name, args.seed, args.count, args.seconds / len(chosen), args.limit, args.first)
        failed += len(problems)
        print(f"{name}: {ran} cases, {len(problems)} problems", *problems, sep="\n", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run())
