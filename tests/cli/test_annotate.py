import json

import plmcore as plm
import pytest
from plmcore import cli

SIZES = dict(d_embed=4, d_char=4, char_filters=[[2, 3]], d_uni=5, d_bi=4, d_projection=3)


@pytest.fixture
def model(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the cat sees the dog\nthe dog sees\n")
    plm.new("cvt", out=tmp_path / "base", text=text, min_count=1, **SIZES)
    tasks = [dict(name="kind", task="classification", labels=["long", "short"])]
    lm = plm.load(
        tmp_path / "base",
        head="token-classification",
        num_labels=3,
        task_name="pos",
        tasks=tasks,
        new_head=True,
    )
    lm.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.filterwarnings("ignore:.*gets new weights")
def test_columns_and_objects(model, tmp_path, capsys):
    lines = tmp_path / "lines.txt"
    lines.write_text("the cat\n\nA dog sees it\n")
    assert cli.main(["annotate", str(model), str(lines)]) == 0
    blocks = capsys.readouterr().out.split("\n\n")
    assert len(blocks) == 3 and blocks[2] == ""
    first = blocks[0].splitlines()
    assert first[0] in ("# kind = long", "# kind = short")
    assert [line.split("\t")[0] for line in first[1:]] == ["the", "cat"]
    assert all(line.split("\t")[1].startswith("LABEL_") for line in first[1:])
    assert cli.main(["annotate", str(model), str(lines), "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [f["words"] for f in found] == [["the", "cat"], ["A", "dog", "sees", "it"]]
    assert [len(f["pos"]) for f in found] == [2, 4] and set(found[0]) == {"words", "pos", "kind"}
    assert found == plm.load(model).annotate(["the cat", "A dog sees it"])


@pytest.mark.filterwarnings("ignore:.*gets new weights")
def test_models_without_labels(model, capsys):
    assert cli.main(["annotate", str(model.with_name("base")), "the cat"]) == 1
    assert "annotate: this model has the head base" in capsys.readouterr().err
