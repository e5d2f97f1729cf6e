"""What a run begins with: objectives that the model can learn from, sizes as published."""

import pytest
from plmcore import cli, models, objectives
from plmcore.cli import demo
from plmcore.models import labels
from plmcore.train import recipes, run_settings
from plmcore.train.settings import SettingError


def chosen(family, *changes, target=None, size="tiny"):
    given = {"run": {"family": family, "size": size}, "data": {"text": ["a.txt"], "target": target}}
    return run_settings.new(given, None, changes)


@pytest.mark.parametrize("family", recipes.names())
@pytest.mark.parametrize("objective", objectives.NAMES)
def test_an_objective_goes_with_a_family_or_is_refused_by_name(family, objective):
    """Labels that a head reads in another place than the objective means would be learnt silently."""
    takes = labels.taken(models.family(family).HEADS[recipes.recipe(family).head])
    fits = objective not in objectives.WITHOUT_TEXT and objectives.labels_of(objective) in takes
    target = ["b.txt"] if objective == "translation" else None
    if fits:
        assert chosen(family, f"objective.name={objective}", target=target)["objective"]["name"] == objective
    else:
        with pytest.raises(SettingError, match=rf"^objective\.name={objective} is not for the head "):
            chosen(family, f"objective.name={objective}", target=target)


def test_the_refusal_says_what_would_do():
    with pytest.raises(
        SettingError, match=r"of bert, which learns from next-sentence; set model\.head=masked-lm$"
    ):
        chosen("bert", "objective.name=masked-lm")
    assert chosen("bert", "objective.name=masked-lm", "model.head=masked-lm")["model"]["head"] == "masked-lm"
    with pytest.raises(
        SettingError, match=r"needs model\.is_decoder=true: without it bert sees what it is to predict"
    ):
        chosen("bert", "objective.name=causal-lm", "model.head=causal-lm")
    with pytest.raises(SettingError, match=r"model\.head must be one of base, .* got 'tail'"):
        chosen("bert", "model.head=tail")


def test_positions_that_no_decoder_takes():
    with pytest.raises(
        SettingError, match=r"objective\.positions=true gives decoder_position_ids, which no decoder of bart"
    ):
        chosen("bart", "objective.name=fragment", "objective.positions=true")
    assert chosen("bart", "objective.name=fragment")["objective"]["positions"] is None


OTHERS = [
    ("bert", "objective.name=causal-lm", "model.head=causal-lm", "model.is_decoder=true"),
    ("bert", "train.label_smoothing=0.1"),
    ("bert", "objective.name=masked-lm", "model.head=masked-lm"),
    ("albert", "train.label_smoothing=0.1"),
    ("xlnet", "objective.name=masked-lm"),
    ("xlnet", "train.label_smoothing=0.1"),
    ("bart", "objective.name=fragment"),
    ("mass",),
    ("mass", "objective.block=16", "objective.rate=0.15", "train.label_smoothing=0.1"),
]


@pytest.mark.parametrize("family, changes", [(f, c) for f, *c in OTHERS], ids=[" ".join(o) for o in OTHERS])
def test_what_is_accepted_runs(tmp_path, family, changes):
    """Training, evaluation and samples, through the command's door."""
    (tmp_path / "a.txt").write_text(demo.manual()[:20_000])
    sizes = {
        "xlnet": ["model.n_layer=1", "model.d_model=32", "model.n_head=2", "model.d_inner=32"],
        "bart": ["model.d_model=32", "model.encoder_layers=1", "model.decoder_layers=1"],
        "mass": ["model.d_model=32", "model.encoder_layers=1", "model.decoder_layers=1"],
    }.get(
        family,
        [
            "model.num_hidden_layers=1",
            "model.hidden_size=32",
            "model.num_attention_heads=2",
            "model.intermediate_size=32",
        ],
    )
    small = ["data.vocab=320", "train.evaluate_batches=1", *sizes, *changes]
    sets = [x for s in small for x in ("--set", s)]
    assert (
        cli.main(
            [
                "pretrain",
                family,
                "--text",
                str(tmp_path / "a.txt"),
                "--out",
                str(tmp_path / "run"),
                "--steps",
                "2",
                *sets,
            ]
        )
        == 0
    )
    assert (tmp_path / "run" / "final" / "config.json").exists()


@pytest.mark.parametrize("family", recipes.names())
def test_label_smoothing_is_for_every_family(family):
    target = ["b.txt"] if family in ("transformer", "rnn-seq2seq") else None
    assert chosen(family, "train.label_smoothing=0.2", target=target)["train"]["label_smoothing"] == 0.2
    for wrong in ("1.5", "-0.1"):
        with pytest.raises(SettingError, match=r"train\.label_smoothing must be from 0 to 1, got "):
            chosen(family, f"train.label_smoothing={wrong}", target=target)


def test_errors_come_before_the_run(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("one two three four. " * 50)
    args = ["pretrain", "bert", "--text", str(tmp_path / "a.txt"), "--out", str(tmp_path / "run")]
    assert cli.main([*args, "--set", "objective.name=causal-lm"]) == 1
    err = capsys.readouterr().err
    assert "objective.name=causal-lm is not for the head pretraining of bert" in err and err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_memory_of_xlnet_follows_from_length_and_batch():
    known = chosen("xlnet", "data.length=128", "data.batch=6")
    assert {k: known["objective"][k] for k in ("stride", "block", "streams", "predict")} == dict(
        stride=64, block=64, streams=6, predict=21
    )
    assert known["train"]["mem_len"] == 48  # three quarters of the size's length, as published
    published = chosen("xlnet", size="base")
    assert published["train"]["mem_len"] == 384 and published["objective"]["predict"] == 85
    assert published["objective"]["block"] == published["objective"]["stride"] == 256
    without = chosen("xlnet", "train.mem_len=0")
    assert without["objective"]["streams"] is None and without["objective"]["stride"] is None
    with pytest.raises(SettingError, match=r"train\.mem_len needs rows that go on .* objective\.streams=12 "):
        chosen("xlnet", "objective.streams=4")
    with pytest.raises(SettingError, match=r"there is no setting train\.mem_len"):
        chosen("gpt2", "train.mem_len=48")
