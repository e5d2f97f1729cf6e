import json
import re

import pytest
from browser import open_page
from generate.test_trace import notes_trace
from plmcore.generate.trace import Trace, traced
from plmcore.viz import beams
from toy_search import Table, options, searched


def two_prompts():
    prompts = [[1, 2], [4]]
    s = searched(Table(9, 3), prompts, options(beams=3, returns=2, max_new_tokens=6, eos=[0], trace=True))
    return Trace("beams", 3, [traced(s, i, p, None, None) for i, p in enumerate(prompts)])


def test_the_page_holds_the_search():
    trace = two_prompts()
    text = re.search(r'id="search">(.*?)</script>', beams.page(trace))[1]
    data = json.loads(text)
    assert data == beams.data(trace)
    for prompt, known in zip(data["prompts"], trace.prompts):
        assert [len(s) for s in prompt["steps"]] == [len(s) for s in known.steps]
        for result in prompt["results"]:
            assert beams.FATES[prompt["steps"][result["step"]][result["place"]][3]] == "finished"


def test_tokens_cannot_become_markup():
    trace = notes_trace()
    trace.prompt_text = "</script><b>"
    assert "</script><b>" not in beams.page(Trace("beams", 2, [trace]), "<b>")


@pytest.mark.browser
def test_the_tree_of_the_notes_is_drawn(tmp_path):
    beams.write(tmp_path / "beams.html", Trace("beams", 2, [notes_trace()]), "a/the, cat/dog")
    opened = open_page(tmp_path / "beams.html", tmp_path / "profile")
    assert opened.console == []
    nodes = [(e["class"], e["text"]) for e in opened.elements("g") if "data-step" in e]
    classes = [kind for kind, _ in nodes]
    assert len(nodes) == 2 + 4 + 4
    assert classes.count("node kept") + classes.count("node kept chosen") == 2 + 2 + 2
    assert classes.count("node dropped") == 2
    assert classes.count("node finished") == classes.count("node finished chosen") == 1
    chosen = "".join(text for kind, text in nodes if "chosen" in kind)
    assert re.findall("the|cat|dog|EOS", chosen) == [
        "the",
        "the",
        "cat",
        "cat",
        "EOS",
        "EOS",
    ]  # hint and card
    assert "−0.598" in nodes[0][1]  # log 0.55
    assert sum("edge" in e.get("class", "") for e in opened.elements("path")) == len(nodes)
    rows = [e["text"] for e in opened.elements("tr") if e.get("class") == "finished"]
    assert rows == ["finishedthe catEOS−0.105−1.357−1.357", "finishedthe dogEOS−0.223−1.555−1.555"]


@pytest.mark.browser
def test_a_batch_can_be_chosen_from(tmp_path):
    """The script's own handlers are called, as a reader's hand would."""
    pick = "at('prompt').value = 1; at('prompt').dispatchEvent(new Event('change')); at('back').click();"
    trace = two_prompts()
    page = beams.page(trace).replace("pick(0);", f"pick(0); {pick}")
    (tmp_path / "beams.html").write_text(page)
    opened = open_page(tmp_path / "beams.html", tmp_path / "profile")
    assert opened.console == []
    assert [e["text"] for e in opened.elements("option")] == ["1: 1 2", "2: 4"]
    steps = trace.prompts[1].steps
    nodes = [e for e in opened.elements("g") if "data-step" in e]
    assert len(nodes) == sum(map(len, steps))
    hidden = {e["data-step"] for e in nodes if "later" in e["class"]}
    assert hidden == {str(len(steps))}
    (said,) = opened.elements("output")
    assert said["text"] == f"step {len(steps) - 1} of {len(steps)}"
