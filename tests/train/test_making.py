import pytest
from plmcore import optim
from plmcore.train import making, run_settings, settings
from small import gpt2


def chosen(*changes, family="gpt2"):
    return run_settings.new({"run": {"family": family}, "data": {"text": ["x.txt"]}}, None, changes)


def made(*changes, family="gpt2"):
    return making.optimizer(gpt2(), chosen(*changes, family=family)["optim"])


def test_every_optimiser_can_be_chosen():
    for kind, cls in optim.KINDS.items():
        for family in ("gpt2", "bert", "t5"):
            assert type(made(f"optim.kind={kind}", family=family)) is cls


def test_options_are_those_of_the_family_or_of_the_optimiser():
    assert made(family="bert").options["eps"] == 1e-6 and made().options["beta2"] == 0.99
    own = made("optim.kind=adafactor", family="bert").options
    assert own["eps"] == 1e-30 and own["relative"] is True
    assert made("optim.kind=adadelta", "optim.rho=0.8").options == {"rho": 0.8, "eps": 1e-6}
    assert made("optim.kind=sgd", "optim.momentum=0.9", "optim.nesterov=true").options == {
        "momentum": 0.9,
        "nesterov": True,
    }
    assert made("optim.kind=adam", "optim.eps=1e-5").options == {"beta1": 0.9, "beta2": 0.999, "eps": 1e-5}


def test_an_option_of_another_optimiser_is_refused():
    with pytest.raises(settings.SettingError, match=r"optim\.momentum is no option of adamw"):
        made("optim.momentum=0.9")
    with pytest.raises(settings.SettingError, match=r"optim\.momentun; did you mean optim\.momentum\?"):
        made("optim.momentun=0.9")


def test_settings_of_objectives():
    """All that an objective takes, and nothing that it hands on under other names."""
    assert set(run_settings.objective_settings("denoising")) == {
        "noise",
        "packing",
        "copies",
        "mean",
        "random",
        "full_stop",
        "permute_sentences",
        "mask",
        "span",
        "replace",
        "insert",
        "rotate",
    }
    assert chosen("objective.mask=0.5", family="bart")["objective"]["mask"] == 0.5
    assert {"rate", "unit", "most", "packing"} <= set(run_settings.objective_settings("masked-lm"))
    assert chosen("objective.rate=0.2", family="roberta")["objective"]["rate"] == 0.2
    changes = ("objective.name=masked-lm", "objective.packing=sentences", "model.head=masked-lm")
    other = chosen(*changes, family="bert")["objective"]
    assert other["copies"] == 10 and other["packing"] == "sentences" and "short" not in other
    with pytest.raises(settings.SettingError, match="objective.name must be one of causal-lm, .* got 'x'"):
        chosen("objective.name=x")


def test_another_optimiser_or_schedule_than_the_config_has(tmp_path):
    """What the config says of its own is not for the new one."""
    config = tmp_path / "config.toml"
    config.write_text(settings.dumps(chosen("schedule.kind=polynomial", "schedule.power=2.0")))
    again = lambda *changes: run_settings.new({}, config, changes)
    assert again()["optim"]["betas"] == [0.9, 0.99] and again()["schedule"]["power"] == 2.0
    other = again("optim.momentum=0.9", "optim.kind=sgd", "schedule.kind=linear")
    assert other["optim"]["betas"] is None and other["schedule"]["power"] is None
    assert type(making.optimizer(gpt2(), other["optim"])) is optim.SGD
    for key, name in (("size", "mini"), ("family", "gpt3")):
        with pytest.raises(
            settings.SettingError,
            match=rf"run\.{key} is '{name}', and the settings of the config are those of",
        ):
            again(f"run.{key}={name}")


def test_averages():
    params = gpt2().parameters()
    average = lambda *changes, evaluates=True: making.average(params, chosen(*changes)["train"], evaluates)
    assert average() is None
    assert average("train.average=0.9").decay == 0.9
    assert average("train.average=triggered", "train.trigger=3").patience == 3
    with pytest.raises(settings.SettingError, match="waits for evaluations, and nothing is held out"):
        average("train.average=triggered", evaluates=False)
    for bad in ("1.0", "-0.1", "often", "true", "[]"):
        with pytest.raises(
            settings.SettingError,
            match=r"train\.average must be a decay from 0 to below 1, or triggered, got ",
        ):
            average(f"train.average={bad}")


def test_schedules():
    halving = ("schedule.kind=halving", "schedule.warmup=0")
    assert making.schedule(chosen(*halving, "schedule.every=2")["schedule"], 10)(3) == 0.25
    with pytest.raises(settings.SettingError, match=r"schedule\.kind=halving needs schedule\.every"):
        making.schedule(chosen(*halving)["schedule"], 10)
    with pytest.raises(settings.SettingError, match=r"schedule\.power is no option of halving"):
        making.schedule(chosen(*halving, "schedule.every=2", "schedule.power=2.0")["schedule"], 10)
    assert (
        making.schedule(
            chosen("schedule.kind=linear", 'data.target=["y.txt"]', family="transformer")["schedule"], 10
        )(9)
        < 0.2
    )
    with pytest.raises(settings.SettingError, match="schedule.kind must be one of constant, "):
        making.schedule(chosen("schedule.kind=falling")["schedule"], 10)
