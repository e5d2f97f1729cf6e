import inspect

import plmcore as plm
import pytest
from plmcore import cli
from plmcore.train import hints, recipes, run_settings

FINETUNE = {  # what there is in both kinds of runs, or in fine-tuning alone
    "learning_rate": "optim.lr",
    "batch_size": "data.batch",
    "per_device_train_batch_size": "data.batch",
    "num_train_epochs": "train.epochs",
    "warmup_steps": "schedule.warmup",
    "warmup_ratio": "train.warmup_share",
    "weight_decay": "optim.weight_decay",
    "max_seq_length": "data.length",
    "gradient_accumulation_steps": "data.accumulate",
    "fp16": "train.activations=bfloat16",
    "max_grad_norm": "optim.clip_norm",
    "lr_scheduler_type": "schedule.kind",
    "optimizer": "optim.kind",
    "save_steps": "train.save_every",
    "eval_steps": "train.evaluate_every",
    "doc_stride": "task.stride",
    "lora_r": "adapt.lora_rank",
    "label_smoothing_factor": "task.label_smoothing",
    "load_best_model_at_end": "train.result=best",
    "optim.learning_rate": "optim.lr",
    "training.lr": "optim.lr",
    "Learning-Rate": "optim.lr",
    "learnin_rate": "optim.lr",
    "optim.weigth_decay": "optim.weight_decay",
}
PRETRAIN = {
    "learning_rate": "optim.lr",
    "max_update": "train.steps",
    "max_epoch": "train.steps",
    "update_freq": "data.accumulate",
    "tokens_per_sample": "data.length",
    "warmup_updates": "schedule.warmup",
    "mlm_probability": "objective.rate",
    "num_layers": "model.num_hidden_layers",
    "n_embd": "model.hidden_size",
    "dropout": "model.hidden_dropout_prob",
    "attention_dropout": "model.attention_probs_dropout_prob",
    "vocab_size": "data.vocab",
}


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    path = tmp_path_factory.mktemp("hints") / "bert"
    config = dict(
        model_type="bert", hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    plm.from_config(config, vocab_size=20).save(path)
    return path


@pytest.mark.parametrize("name, meant", FINETUNE.items())
def test_the_command_finetune_says_which_setting_was_meant(name, meant, bert, tmp_path, capsys):
    arguments = [
        "finetune",
        bert,
        "--task",
        "classification",
        "--train",
        "t.tsv",
        "--set",
        f"{name}=1",
        "--out",
        tmp_path,
    ]
    assert cli.main([*map(str, arguments)]) == 1
    error = capsys.readouterr().err
    assert f"there is no setting {name}; did you mean {meant}" in error


@pytest.mark.parametrize("name, meant", PRETRAIN.items())
def test_the_command_pretrain_says_which_setting_was_meant(name, meant, tmp_path, capsys):
    assert (
        cli.main(["pretrain", "bert", "--text", "t.txt", "--set", f"{name}=1", "--out", str(tmp_path)]) == 1
    )
    assert f"there is no setting {name}; did you mean {meant}" in capsys.readouterr().err


def test_every_foreign_name_has_a_setting_that_some_run_has(bert):
    from plmcore.tasks import task_settings

    known = {
        f"{s}.{k}"
        for family in recipes.names()
        for s, t in run_settings.defaults_of(family, "tiny").items()
        for k in t
    }
    known |= {f"{s}.{k}" for s, table in task_settings.defaults("qa", bert).items() for k in table}
    assert not [s for s in hints.OF_SETTINGS if s.partition("=")[0] not in known]


def test_a_config_with_a_foreign_name(bert, tmp_path, capsys):
    config = tmp_path / "other.toml"
    config.write_text('[run]\ntask = "classification"\n[train]\nnum_train_epochs = 3\n')
    arguments = [
        "finetune",
        str(bert),
        "--train",
        "t.tsv",
        "--config",
        str(config),
        "--out",
        str(tmp_path / "run"),
    ]
    assert cli.main(arguments) == 1
    assert "there is no setting train.num_train_epochs; did you mean train.epochs" in capsys.readouterr().err


@pytest.mark.parametrize("function, name, meant", [
    (plm.finetune, "learning_rate", "did you mean lr?"),
    (plm.finetune, "num_train_epochs", "did you mean epochs?"),
    (plm.finetune, "lora_rank", "did you mean lora?"),
    (plm.finetune, "weight_decay", 'did you mean changes=["optim.weight_decay=..."]?'),
    (plm.finetune, "fp16", 'did you mean changes=["train.activations=bfloat16"]?'),
    (plm.finetune, "colums", "did you mean columns?"),
    (plm.pretrain, "batch_size", "did you mean batch?"),
    (plm.pretrain, "max_steps", "did you mean steps?"),
])  # fmt: skip
def test_arguments_of_python(function, name, meant, tmp_path):
    with pytest.raises(plm.ArgumentError) as e:
        function(out=tmp_path, **{name: 1})
    assert str(e.value) == f"{function.__name__} has no argument {name}; {meant}"


def test_the_signature_stays():
    assert "epochs" in inspect.signature(plm.finetune).parameters
    assert plm.pretrain.__doc__


@pytest.mark.parametrize("command, hint", [
    ("finetune --learning-rate 1e-4", "--learning-rate; did you mean --lr?"),
    ("finetune --num_train_epochs=4", "--num_train_epochs=4; did you mean --epochs?"),
    ("finetune --lora-r 8", "did you mean --lora?"),
    ("finetune --weight-decay 0.1", "did you mean --set optim.weight_decay=...?"),
    ("finetune --fp16", "did you mean --set train.activations=bfloat16?"),
    ("finetune --colums a,b", "did you mean --columns?"),
    ("pretrain gpt2 --batch-size 8", "did you mean --batch?"),
    ("pretrain gpt2 --max-steps 8", "did you mean --steps?"),
    ("classify dir --jason", "did you mean --json?"),
    ("info dir --xyzzy", "unrecognized arguments: --xyzzy"),
])  # fmt: skip
def test_options(command, hint, tmp_path, capsys):
    out = ["--out", str(tmp_path)] if command.split()[0] in ("finetune", "pretrain") else []
    with pytest.raises(SystemExit) as e:
        cli.main([*command.split(), *out])
    error = capsys.readouterr().err
    assert e.value.code == 2 and hint in error and f"plmcore {command.split()[0]}: error: " in error


def test_settings_of_objectives(capsys):
    for name, meant in (("mlm_probability", "rate"), ("shars", "shares")):
        with pytest.raises(plm.ArgumentError) as e:
            plm.objectives.make("masked-lm", None, None, **{name: 1})
        assert str(e.value) == f"masked-lm has no setting {name}; did you mean {meant}?"
    assert cli.main(["show", "masked-lm", "--text", "The cat sat.", "--set", "mask_prob=0.3"]) == 1
    assert "masked-lm has no setting mask_prob; did you mean rate?" in capsys.readouterr().err
