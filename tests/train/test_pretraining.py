import json
import os
import shutil
import signal
import subprocess
import sys
import time

import installed
import plmcore as plm
import pytest
from killing import Stop, stop_at
from plmcore import cli, train
from plmcore.cli import demo
from plmcore.train import recipes, run_settings, settings

FAST = [
    "data.vocab=300",
    "model.n_layer=1",
    "model.n_embd=32",
    "model.n_head=2",
    "data.length=32",
    "model.n_positions=32",
    "train.evaluate_batches=2",
]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "manual.txt"
    path.write_text(demo.manual()[:60_000])
    return path


def run(text, out, *, steps=6, changes=(), **options):
    return plm.pretrain(
        "gpt2",
        text=[text],
        out=out,
        steps=steps,
        save_every=2,
        quiet=True,
        changes=[*FAST, *changes],
        **options,
    )


@pytest.fixture(scope="module")
def finished(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "a"
    run(text, out)
    return out


def bits(folder):
    return (folder / "final" / "model.safetensors").read_bytes()


def test_the_directory_of_a_run(finished):
    names = {p.name for p in finished.iterdir()}
    assert names >= {
        "config.toml",
        "metrics.jsonl",
        "log.txt",
        "report.html",
        "loss.svg",
        "checkpoints",
        "final",
        "tokenizer",
        "corpus",
    }
    lines = train.run_directory.read_metrics(finished / "metrics.jsonl")
    assert (
        lines[-1]["step"] == 6
        and any("eval_loss" in m for m in lines)
        and any(m.get("sample") for m in lines)
    )


def test_the_result_is_a_model_directory(finished, text):
    lm = plm.load(finished / "final")
    assert lm.config.model_type == "gpt2" and lm.head == "causal-lm"
    assert lm.config.vocab_size == lm.tokenizer.vocab_size
    line = text.read_text().split("\n")[4]
    assert lm.tokenizer.decode(lm.tokenizer(line).input_ids) == line
    config = json.loads((finished / "final" / "config.json").read_bytes())
    assert config["eos_token_id"] == lm.tokenizer.eos_token_id and config["architectures"] == [
        "GPT2LMHeadModel"
    ]


def test_the_same_command_gives_the_same_bits(finished, text, tmp_path):
    run(text, tmp_path / "b")
    assert bits(tmp_path / "b") == bits(finished)
    run(text, tmp_path / "c", seed=1)
    assert bits(tmp_path / "c") != bits(finished)


def test_a_config_repeats_its_run(finished, tmp_path):
    plm.pretrain(config=finished / "config.toml", out=tmp_path / "b", quiet=True)
    assert bits(tmp_path / "b") == bits(finished)


def test_activations_in_bfloat16(finished, text, tmp_path):
    """Recorded, so that a run that goes on has them too."""
    changes = ["train.activations=bfloat16"]
    run(text, tmp_path / "a", changes=changes)
    assert 'activations = "bfloat16"' in (tmp_path / "a" / "config.toml").read_text()
    assert bits(tmp_path / "a") != bits(finished)
    with pytest.raises(Stop):
        run(text, tmp_path / "b", changes=changes, callbacks=[stop_at(5)])
    plm.pretrain(out=tmp_path / "b", resume=True, quiet=True)
    assert bits(tmp_path / "b") == bits(tmp_path / "a")
    with pytest.raises(settings.SettingError, match="has train.activations = 'bfloat16', not 'float32'"):
        plm.pretrain(out=tmp_path / "b", resume=True, quiet=True, changes=["train.activations=float32"])
    with pytest.raises(plm.ArgumentError, match="activations must be float32 or bfloat16"):
        run(text, tmp_path / "c", changes=["train.activations=half"])


@pytest.mark.parametrize("step", [1, 5])
def test_resume(finished, text, tmp_path, step):
    """After one step there is no checkpoint: the run begins again. After five there is one."""
    with pytest.raises(Stop):
        run(text, tmp_path, callbacks=[stop_at(step)])
    plm.pretrain(out=tmp_path, resume=True, quiet=True)
    assert bits(tmp_path) == bits(finished)
    steps = [
        m["step"] for m in train.run_directory.read_metrics(tmp_path / "metrics.jsonl") if "eval_loss" in m
    ]
    assert steps == [1, 2, 3, 4, 5, 6]


def test_resume_of_what_was_never_begun_begins(finished, text, tmp_path):
    run(text, tmp_path / "new", resume=True)
    assert bits(tmp_path / "new") == bits(finished)


def test_resume_of_a_finished_run_changes_nothing(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "copy")
    plm.pretrain(out=tmp_path / "copy", resume=True, quiet=True)
    assert bits(tmp_path / "copy") == bits(finished)


def test_a_directory_that_is_not_empty(finished, text, tmp_path):
    with pytest.raises(FileExistsError, match="is not empty; --resume goes on"):
        run(text, finished)


def test_a_run_that_could_not_begin_is_begun_anew(finished, text, tmp_path):
    """Whatever it had made by then, with other settings."""
    with pytest.raises(ValueError, match=r"beta1 must be in \[0, 1\), got 2"):
        run(text, tmp_path / "run", changes=["optim.betas=[2.0,0.9]", "data.vocab=300"])
    assert (tmp_path / "run" / "corpus").exists()
    run(text, tmp_path / "run")
    assert bits(tmp_path / "run") == bits(finished)


def test_other_settings_do_not_resume(finished, text):
    with pytest.raises(settings.SettingError, match=r"has optim\.lr = 0\.001, not 0\.5; start another one"):
        run(text, finished, resume=True, changes=["optim.lr=0.5"])
    with pytest.raises(settings.SettingError, match=r"has run\.seed = 0, not 4"):
        run(text, finished, resume=True, seed=4)
    with pytest.raises(
        settings.SettingError, match=r"has train\.steps = 6, not 5: it can only be made longer"
    ):
        run(text, finished, resume=True, steps=5)


def test_changed_text_does_not_resume(finished, text, tmp_path):
    copy = tmp_path / "text.txt"
    copy.write_text(text.read_text())
    with pytest.raises(Stop):
        run(copy, tmp_path / "run", callbacks=[stop_at(3)])
    copy.write_text(text.read_text().replace("statement", "Statement"))
    with pytest.raises(plm.ArgumentError, match="the text has changed since this run began"):
        plm.pretrain(out=tmp_path / "run", resume=True, quiet=True)
    copy.unlink()  # the corpus in the run's directory is enough
    plm.pretrain(out=tmp_path / "run", resume=True, quiet=True)
    assert bits(tmp_path / "run") == bits(finished)


def test_a_damaged_corpus_does_not_resume(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "copy")
    ids = tmp_path / "copy" / "corpus" / "ids.bin"
    data = bytearray(ids.read_bytes())
    data[1000] ^= 1
    ids.write_bytes(data)
    with pytest.raises(plm.FormatError, match=r"ids\.bin"):
        plm.pretrain(out=tmp_path / "copy", resume=True, quiet=True)


def test_a_ramp_of_batches(text, tmp_path):
    tokens = []
    run(
        text,
        tmp_path / "a",
        changes=["data.accumulate=3", "data.ramp=4"],
        callbacks=[lambda t, m: tokens.append(m["tokens"])],
    )
    assert [n // (12 * 32) for n in tokens] == [1, 1, 2, 2, 3, 3]


def test_the_average_of_the_weights_is_the_result(text, tmp_path, finished):
    run(text, tmp_path / "a", changes=["train.average=0.5"])
    assert bits(tmp_path / "a") != bits(finished)
    assert "average.safetensors" in os.listdir(tmp_path / "a" / "checkpoints" / "step-00000006")


def test_the_result_may_be_the_best_or_the_mean_of_checkpoints(text, tmp_path):
    def weights(folder):
        return plm.safetensors.read(folder)[0]

    changes = [
        "optim.kind=sgd",
        "train.keep=3",
    ]  # so fast that the last step is not the best; what has diverged then is not the result
    for kind, lr in (("mean", 10), ("best", 30)):
        out = tmp_path / kind
        run(text, out, changes=[*changes, f"optim.lr={lr}", f"train.result={kind}"])
        kept = {p.name: p / "weights.safetensors" for p in sorted((out / "checkpoints").iterdir())}
        final = plm.load(out / "final").model.state_dict()
        if kind == "mean":
            last = list(kept)[-3:]
            expected = train.checkpoint.average([out / "checkpoints" / name for name in last])
            steps = ", ".join(str(int(name[5:])) for name in last)
            assert f"the result is the mean of steps {steps}\n" in (out / "log.txt").read_text()
        else:
            scores = {
                p.name: json.loads((p / "state.json").read_text())["score"]
                for p in (out / "checkpoints").iterdir()
            }
            best = min(scores, key=scores.get)
            expected = {k: v.numpy() for k, v in weights(kept[best]).items()}
            assert f"the result is that of step {int(best[5:])}" in (out / "log.txt").read_text()
        assert all((final[name].numpy() == expected[name]).all() for name in expected)
    with pytest.raises(settings.SettingError, match="train.result must be last or best or mean, got 'worst'"):
        run(text, tmp_path / "x", changes=["train.result=worst"])


def test_averaged_sgd(text, tmp_path):
    """NT-ASGD with a rate so high that evaluations soon get worse."""
    changes = [
        "optim.kind=sgd",
        "optim.lr=8",
        "schedule.kind=constant",
        "train.average=triggered",
        "train.trigger=1",
        "optim.clip_norm=1.0",
    ]
    run(text, tmp_path / "a", changes=changes)
    average, _ = plm.safetensors.read(
        tmp_path / "a" / "checkpoints" / "step-00000006" / "average.safetensors"
    )
    assert 0 < average["count"].item() < 6 and len(average["losses"].numpy()) == 6
    with pytest.raises(Stop):
        run(text, tmp_path / "b", changes=changes, callbacks=[stop_at(5)])
    plm.pretrain(out=tmp_path / "b", resume=True, quiet=True)
    assert bits(tmp_path / "a") == bits(tmp_path / "b")
    run(text, tmp_path / "c", changes=[c for c in changes if "average" not in c and "trigger" not in c])
    assert bits(tmp_path / "a") != bits(tmp_path / "c")


@pytest.mark.parametrize(
    "options, error, message",
    [
        (dict(changes=["optim.lrr=1"]), settings.SettingError, r"did you mean optim\.lr\?"),
        (dict(changes=["model.n_layers=1"]), settings.SettingError, r"did you mean model\.n_layer\?"),
        (dict(changes=["objective.strides=1"]), settings.SettingError, r"did you mean objective\.stride\?"),
        (
            dict(changes=["optim.kind=adamx"]),
            settings.SettingError,
            r"optim\.kind must be one of sgd, adam, .* got 'adamx'",
        ),
        (dict(changes=["optim.betas=[0.9]"]), ValueError, r"betas must be two numbers, got \[0\.9\]"),
        (
            dict(changes=["data.ramp=0.5"]),
            settings.SettingError,
            r"data\.ramp must be a whole number, got 0\.5",
        ),
        (
            dict(changes=["objective.stride=x"]),
            settings.SettingError,
            r"objective\.stride must be a whole number, got 'x'",
        ),
        (
            dict(changes=["data.tokenizer=none"]),
            settings.SettingError,
            r"data\.tokenizer must be a text, got none",
        ),
        (dict(changes=["run.size=[]"]), settings.SettingError, r"run\.size must be a text, got \[\]"),
        (
            dict(changes=["train.save_every=none", "train.result=best"]),
            settings.SettingError,
            "made of checkpoints, and train.save_every is none",
        ),
        (
            dict(changes=["model.vocab_size=3"]),
            settings.SettingError,
            r"model\.vocab_size is 3, and the tokenizer has ",
        ),
        (dict(size="huge"), plm.ArgumentError, "no size 'huge'; one of tiny, "),
        (dict(tokenizer="syllables"), plm.ArgumentError, "no kind of tokenizer 'syllables'"),
    ],
)
def test_bad_settings(text, tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        plm.pretrain("gpt2", text=[text], out=tmp_path / "x", steps=1, quiet=True, **options)


def test_bad_calls(text, tmp_path):
    with pytest.raises(plm.ArgumentError, match="needs a family, one of "):
        plm.pretrain(out=tmp_path / "x", text=[text])
    with pytest.raises(plm.ArgumentError, match="no family 'gpt9'"):
        plm.pretrain("gpt9", out=tmp_path / "x", text=[text])
    with pytest.raises(plm.ArgumentError, match="needs text"):
        plm.pretrain("gpt2", out=tmp_path / "x")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        plm.pretrain("gpt2", out=tmp_path / "x", text=["nowhere.txt"], quiet=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "there is no text in"),
        ("\n \n\n", "there is no text in"),
        ("The cat sat.\n", "1 examples are too few"),
    ],
)
def test_texts_with_too_little_in_them(tmp_path, content, message):
    (tmp_path / "text.txt").write_text(content)
    with pytest.raises(ValueError, match=message):
        plm.pretrain(
            "gpt2",
            text=[tmp_path / "text.txt"],
            out=tmp_path / "run",
            steps=1,
            quiet=True,
            changes=["data.vocab=300"],
        )


TRANSLATION = [
    "data.vocab=300",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.d_model=32",
    "schedule.width=32",
    "train.evaluate_batches=2",
]


def test_translation(tmp_path):
    lines = demo.manual().split(". ")[:400]
    one, other = tmp_path / "a.txt", tmp_path / "b.txt"
    one.write_text("".join(line.replace("\n", " ").strip() + " .\n" for line in lines))
    other.write_text("".join(line.replace("\n", " ").strip().upper() + " .\n" for line in lines))
    run = lambda out, target: plm.pretrain(
        "transformer", text=[one], target=target, out=out, steps=4, quiet=True, changes=TRANSLATION
    )
    lm = run(tmp_path / "run", [other])
    assert lm.head == "seq2seq-lm" and (tmp_path / "run" / "target").is_dir()
    metrics = train.run_directory.read_metrics(tmp_path / "run" / "metrics.jsonl")
    evaluated = [m["eval_loss"] for m in metrics if "eval_loss" in m]
    assert len(evaluated) == 4 and evaluated[-1] < evaluated[0]
    with pytest.raises(plm.ArgumentError, match="needs --target"):
        run(tmp_path / "x", [])
    with pytest.raises(plm.ArgumentError, match="as many of translations, got 2"):
        run(tmp_path / "y", [other, other])
    other.write_text(other.read_text().replace("\n", "\n\n", 1))
    with pytest.raises(plm.FormatError, match=r"b\.txt', line 2: it is empty"):
        run(tmp_path / "z", [other])


@pytest.mark.parametrize("family, size", [(f, s) for f in recipes.names() for s in recipes.sizes_of(f)])
def test_every_recipe_is_consistent(family, size):
    """Its settings are settings, and its model is one."""
    known = run_settings.defaults_of(family, size)
    assert settings.merged(known, recipes.defaults(family, size)) == known
    values = {k: v for k, v in known["model"].items() if v is not None and k != "head"}
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}  # config.toml has lists
    config = plm.models.config_class(family)(**values)
    assert config.longest is None or config.longest >= known["data"]["length"]
    assert known["model"]["head"] in plm.models.family(config).HEADS
    assert set(known["objective"]) - {"name"} == set(
        run_settings.objective_settings(known["objective"]["name"])
    )


WORDS = "one two three four five six seven eight nine ten eleven twelve".split()


@pytest.mark.parametrize("streams", ["none", "4"])
def test_streams_learn_the_next_token(tmp_path, streams):
    """Of a text that repeats itself, so that the next token is certain, and so is the one after it."""
    (tmp_path / "text.txt").write_text(" ".join(WORDS * 600) + "\n")
    small = [
        "data.length=24",
        "model.n_positions=64",
        "model.n_layer=1",
        "model.n_embd=32",
        "model.n_head=2",
        "optim.lr=1e-2",
    ]
    lm = plm.pretrain(
        "gpt2", text=[tmp_path / "text.txt"], out=tmp_path / "run", tokenizer="words", steps=60, quiet=True,
        changes=[*small, "train.evaluate_batches=2", f"objective.streams={streams}"],
    )  # fmt: skip
    assert lm.perplexity(" ".join(WORDS * 3)).per_token < 1.1
    assert lm.generate("one two three", max_new_tokens=3).split()[-3:] == ["four", "five", "six"]


def command(*args):
    return subprocess.Popen(
        [*installed.COMMAND, "pretrain", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_says_how_to_go_on(finished, text, tmp_path, number):
    out = tmp_path / "run"
    many = [x for change in FAST for x in ("--set", change)]
    process = command(
        "gpt2",
        "--text",
        text,
        "--steps",
        100_000,
        "--save-every",
        90_000,
        "--out",
        out,
        "--set",
        "train.evaluate_every=1000000",
        *many,
    )
    metrics, end = out / "metrics.jsonl", time.monotonic() + 60
    while not metrics.exists() or not metrics.stat().st_size:
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"plmcore pretrain --out {out} --resume" in err and "Traceback" not in err
    with train.RunDirectory(out, quiet=True) as d:
        assert d.newest().step >= 10


def test_errors_of_the_command_are_one_line(text, tmp_path, capsys):
    for args, message in (
        (["gpt2", "--text", str(tmp_path / "none.txt"), "--out", str(tmp_path / "a")], "none.txt"),
        (
            ["gpt2", "--text", str(text), "--out", str(tmp_path / "b"), "--set", "optim.rate=1"],
            "there is no setting optim.rate",
        ),
        (["--out", str(tmp_path / "c")], "needs a family"),
    ):
        assert cli.main(["pretrain", *args]) == 1
        err = capsys.readouterr().err
        assert err.startswith("plmcore pretrain: ") and message in err and err.count("\n") == 1


def test_options_that_are_settings(text, tmp_path, capsys):
    base = [
        "pretrain",
        "gpt2",
        "--text",
        str(text),
        "--steps",
        "1",
        *(x for change in FAST for x in ("--set", change)),
    ]
    assert cli.main([*base, "--lr", "2e-3", "--batch", "5", "--out", str(tmp_path / "a")]) == 0
    assert (
        cli.main([*base, "--set", "optim.lr=2e-3", "--set", "data.batch=5", "--out", str(tmp_path / "b")])
        == 0
    )
    assert (tmp_path / "a/config.toml").read_text() == (tmp_path / "b/config.toml").read_text()
    assert bits(tmp_path / "a") == bits(tmp_path / "b")
    assert cli.main([*base, "--lr", "2e-3", "--set", "optim.lr=1e-3", "--out", str(tmp_path / "c")]) == 1
    assert "optim.lr is given twice: 0.002 by itself, and 0.001 among the settings" in capsys.readouterr().err


SENTENCES = [
    f"The {a} {b} far away." for a in ("cat", "dog", "hen", "cow") for b in ("sat", "ran", "went")
] * 12
SMALL_BERT = [
    "data.vocab=120",
    "data.length=24",
    "data.batch=2",
    "model.num_hidden_layers=1",
    "model.hidden_size=16",
    "model.num_attention_heads=2",
    "model.max_position_embeddings=24",
    "model.intermediate_size=16",
    "train.evaluate_batches=1",
]


def small_bert(tmp_path, text, *changes):
    file = tmp_path / "text.txt"
    file.write_text(text)
    arguments = [x for change in (*SMALL_BERT, *changes) for x in ("--set", change)]
    return cli.main(
        ["pretrain", "bert", "--text", str(file), "--steps", "2", "--out", str(tmp_path / "run"), *arguments]
    )


def test_text_of_one_document_says_what_to_do(tmp_path, capsys):
    """And what it says works."""
    assert small_bert(tmp_path, " ".join(SENTENCES)) == 1
    error = capsys.readouterr().err
    assert "a blank line ends a document" in error and "data.documents=line" in error
    assert "--set objective.name=masked-lm --set model.head=masked-lm" in error and error.count("\n") == 1
    assert small_bert(tmp_path, " ".join(SENTENCES), "objective.name=masked-lm", "model.head=masked-lm") == 0


def test_documents_that_are_lines(tmp_path):
    assert (
        small_bert(tmp_path, "\n".join(map(" ".join, zip(*[iter(SENTENCES)] * 3))), "data.documents=line")
        == 0
    )


def test_held_out_text_of_one_document_is_named(tmp_path, capsys):
    text = " ".join(SENTENCES[:70]) + "\n\n" + " ".join(SENTENCES[70:])
    assert small_bert(tmp_path, text) == 1
    error = capsys.readouterr().err
    assert (
        "the held-out part, the last 0.05 of the text: next-sentence takes" in error
        and "--set data.held_out=0" in error
    )
    assert small_bert(tmp_path, text, "data.held_out=0") == 0


def test_documents_of_one_sentence_say_what_to_do(tmp_path, capsys):
    assert small_bert(tmp_path, "\n\n".join(SENTENCES)) == 1
    assert (
        "no document of two sentences" in (error := capsys.readouterr().err)
        and "data.sentences=lines" in error
    )


def test_too_little_text_says_what_to_do(tmp_path, capsys):
    assert (
        small_bert(tmp_path, "\n\n".join([" ".join(SENTENCES[:2])] * 3), "data.batch=50", "data.held_out=0")
        == 1
    )
    assert (
        "too few for one batch of 50 examples" in (error := capsys.readouterr().err) and "data.batch" in error
    )


def test_what_tensorboard_needs_is_missed_before_the_run_begins(text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError, match="pip install 'plmcore\\[tensorboard\\]'"):
        run(text, tmp_path / "run", changes=["train.tensorboard=true"])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content", ["", "\n \n\n", "\u00a0\n"])
@pytest.mark.parametrize("family", ["gpt2", "bert", "xlnet"])
def test_text_that_is_none_is_named_before_anything_is_made(tmp_path, capsys, content, family, finished):
    (tmp_path / "none.txt").write_text(content)
    run = [
        "pretrain",
        family,
        "--text",
        str(tmp_path / "none.txt"),
        "--tokenizer",
        str(finished / "tokenizer"),
        "--out",
    ]
    assert cli.main([*run, str(tmp_path / "run"), "--set", "data.batch=1"]) == 1
    assert f"there is no text in '{tmp_path / 'none.txt'}'" in capsys.readouterr().err
    assert not (tmp_path / "run" / "corpus").exists()
