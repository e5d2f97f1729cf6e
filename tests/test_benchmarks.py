"""The benchmarks' own code: cases, and the tables. No peer is needed."""

import importlib.util
import itertools
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
contest, cases, table = (
    importlib.import_module(name) for name in ("contest", "models.cases", "models.table")
)
before_cases = importlib.import_module("before.cases")
ops_cases, ops_table = (importlib.import_module(f"ops.{name}") for name in ("cases", "table"))
train_table, train_cases = (importlib.import_module(f"train.{name}") for name in ("table", "cases"))
families_table, families_cases = (importlib.import_module(f"families.{name}") for name in ("table", "cases"))
corpus_table, objectives_table = (
    importlib.import_module(f"{name}.table") for name in ("corpus", "objectives")
)
# Of the tests.
others = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "generate"}
generate_table, generate_cases = (importlib.import_module(f"generate.{name}") for name in ("table", "cases"))
generate_main, generate_write = (
    importlib.import_module(f"generate.{name}") for name in ("__main__", "write")
)
for name in [name for name in sys.modules if name.split(".")[0] == "generate"]:
    del sys.modules[name]
sys.modules |= others
sys.path[:] = [p for p in sys.path if p != str(BENCHMARKS)]


def forward(targets=((cases.FASTEST, 1.25),), **times):
    """A result: seconds per round by library; plmcore took 2 s, then 4 s."""
    pairs = {peer: {"ours": [2.0, 4.0], "theirs": theirs} for peer, theirs in times.items()}
    return {
        "case": "some case",
        "kind": "forward",
        "threads": 2,
        "targets": targets,
        "error": 1e-7,
        "pairs": pairs,
    }


def train(ours, theirs, limit=0.8):
    result = forward([("transformers", 1.4)], transformers=[3.0, 6.0])
    memory = {"plmcore": ours, "transformers": theirs}
    return result | {"kind": "train", "memory": memory, "memory_target": limit}


def test_ratio_is_against_the_fastest_peer_round_by_round():
    [row] = table.rows(forward(transformers=[9.0, 9.0], onnxruntime=[3.0, 5.0], ctranslate2=[5.0, 4.0]))
    assert row["peer"] == "onnxruntime"  # median 4, against 4.5 and 9
    assert (row["low"], row["ratio"], row["high"]) == (1.25, 1.375, 1.5)
    assert row["mark"] == "met"


@pytest.mark.parametrize(
    "theirs, mark",
    [
        ([2.6, 5.2], "met"),
        ([2.4, 4.8], "missed"),
        ([1.9, 3.8], "missed"),
        ([1.7, 3.4], "behind"),
        ([2.4, 5.2], "tie"),
        ([1.0, 5.0], "tie"),
    ],
)
def test_mark_says_met_missed_behind_or_tie(theirs, mark):
    result = forward(ctranslate2=theirs)
    assert table.rows(result)[0]["mark"] == mark
    assert table.missed([result, result]) == 2 * (mark in ("missed", "behind"))
    assert table.is_tied(result) == (mark == "tie")
    assert f"{int(mark == 'tie')} ties" in table.summary([result])


def test_each_target_has_a_row_and_a_skipped_peer_a_dash():
    result = forward([("ctranslate2", 1.2), ("transformers", 2.0)], transformers=[3.0, 6.0])
    absent, present = table.cells(result)
    assert absent == ["some case", "3000", "4500", "–", "–", "CTranslate2", "–", "–", "1.20"]
    assert present[5:] == ["transformers", "1.50", "1.50–1.50", "2.00 missed"]
    assert table.cells(forward())[0][5:7] == ["–", "–"]  # no peer at all


def test_milliseconds_keep_three_digits():
    assert [table.milliseconds(t) for t in (None, 0.01234, 0.1234, 12.345)] == ["–", "12.3", "123", "12345"]


def test_memory_is_ours_over_torchs_with_a_limit():
    assert table.memory(train(2.0e9, 4.0e9))["mark"] == "met"
    assert table.cells(train(3.5e9, 4.0e9))[0][-4:] == ["3.50", "4.00", "0.88", "0.80 missed"]
    assert table.cells(train(3.5e9, 4.0e9, None))[0][-1] == "–"
    assert table.missed([train(3.5e9, 4.0e9)]) == 1


def test_median_over_pairs_counts_each_of_our_rounds_once():
    together = forward(transformers=[3.0, 6.0], ctranslate2=[3.0, 6.0])
    assert table.median(together, "plmcore") == 3.0
    apart = forward(transformers=[3.0, 6.0], ctranslate2=[3.0, 6.0])
    apart["pairs"]["ctranslate2"]["ours"] = [8.0, 8.0]
    assert table.median(apart, "plmcore") == 6.0


def test_markdown_between_markers(tmp_path):
    text = table.markdown("a machine", [forward(ctranslate2=[2.4, 4.8]), train(3.5e9, 4.0e9)])
    assert text.index("a machine.") < text.index("Forward, ms, 2 threads") < text.index("Training step")
    assert "1.25 missed" in text and "0.80 missed" in text
    for block in text.split("\n\n"):
        if block.startswith("|"):
            assert len({line.count("|") for line in block.splitlines()}) == 1
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    for _ in range(2):  # again: in the same place
        contest.write_between(readme, table.BEGIN, table.END, text)
        assert readme.read_text() == f"before\n{table.BEGIN}\n{text}\n{table.END}\nafter\n"
    readme.write_text("no markers")
    with pytest.raises(SystemExit, match="needs the lines"):
        contest.write_between(readme, table.BEGIN, table.END, text)
    assert (
        table.BEGIN in (BENCHMARKS / "README.md").read_text()
        and table.END in (BENCHMARKS / "README.md").read_text()
    )


def run(results, machine="m", layers=0, remarks=()):
    return {"machine": machine, "layers": layers, "remarks": list(remarks), "results": results}


def test_runs_merge_by_case_and_threads_on_one_machine_with_one_setting():
    first, second = forward(ctranslate2=[2.4, 4.8]), forward(ctranslate2=[3.0, 6.0])
    other = second | {"threads": 1}
    assert table.merge([run([first, other]), run([second])]) == run([second, other])
    for different in (run([], "n"), run([], layers=2), run([], remarks=["x is skipped"])):
        with pytest.raises(SystemExit, match="different machines, versions or settings"):
            table.merge([run([]), different])


def test_only_complete_runs_of_full_size_are_published(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"{table.BEGIN}\n{table.END}\n")
    every = [forward(ctranslate2=[3.0, 6.0]) | {"case": name} for name in cases.CASES]
    for refused, why in [
        (run(every, layers=2), "of 2 layers"),
        (run(every[1:]), every[0]["case"]),
        (run([]), "any case"),
    ]:
        with pytest.raises(SystemExit, match=why):
            table.publish(readme, refused)
        assert readme.read_text() == f"{table.BEGIN}\n{table.END}\n"
    table.publish(readme, run(every, remarks=["x is skipped."]))
    assert "x is skipped." in readme.read_text() and every[-1]["case"] in readme.read_text()


def test_from_prints_earlier_results_without_running(tmp_path):
    path = tmp_path / "run.json"
    result = forward([("ctranslate2", 1.25), ("onnxruntime", 1.0)], ctranslate2=[2.4, 4.8])
    path.write_text(json.dumps(run([result], "a machine")))
    command = [sys.executable, str(BENCHMARKS / "models"), "--from", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "a machine." in done.stdout
    assert "1 cases, 1 targets missed, 0 ties, 1 not measured for want of the peer, 0 failed" in done.stdout


def test_cases_have_inputs_that_fit_their_models():
    for case in cases.CASES.values():
        inputs = case.inputs()
        vocabulary = cases.SIZES[case.size].config.get("vocab_size", 50257)
        assert 0 <= inputs["input_ids"].min() and inputs["input_ids"].max() < vocabulary
        assert case.targets and all(t.peer == cases.FASTEST or t.peer in case.peers for t in case.targets)
    mixed = cases.CASES["BERT-base 32 of 16..128"]
    assert len(mixed.lengths) == 32 and min(mixed.lengths) >= 16 and max(mixed.lengths) <= 128
    assert mixed.inputs()["attention_mask"].sum() == sum(mixed.lengths)
    assert mixed.padded == pytest.approx(32 * max(mixed.lengths) / sum(mixed.lengths))
    labels = cases.CASES["train BERT-base MLM 8x128 dropout 0"].inputs()["labels"]
    assert 0.1 < (labels >= 0).mean() < 0.2


def test_errors_of_logits_are_relative():
    spec = importlib.util.spec_from_file_location("errors_of_logits", BENCHMARKS / "generate" / "errors.py")
    errors = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(errors)
    exact = np.array([[3.0, 4.0], [0.0, 0.0]])
    said = errors.line("int8", exact, exact + np.array([[0.0, 0.0], [0.0, 0.05]]))
    assert said.split() == ["int8", "error", "1.0000", "%", "same", "choice", "50.00", "%"]


GPT2 = "GPT-2 124M, batch 1, prompt 32 + 128"


def generation(threads=2, case=GPT2, **seconds):
    """A result: seconds for 128 tokens by library; 1e9 bytes/s are 2.009 steps of GPT-2."""
    result = {
        "case": case,
        "threads": threads,
        "times": {name: [s] for name, s in seconds.items()},
        "same": {},
    }
    return result | {"memory": dict.fromkeys(seconds, 500e6), "bandwidth": 40e9, "errors": {}}


def test_generation_is_held_to_the_fastest_peer_on_as_many_threads_and_at_its_best():
    two = generation(plmcore=2.0, transformers=8.0, ctranslate2=4.0)
    one = generation(1, plmcore=4.0, transformers=9.0, ctranslate2=3.2)
    columns = dict(zip(generate_table.HEAD, generate_table.cells(two, [two, one])))
    assert (
        columns["plmcore, tokens/s"] == "64.0"
        and columns["ctranslate2"] == "32.0"
        and columns["llama.cpp"] == ""
    )
    assert columns["ratio, same threads"] == "2.00 met" and columns["each at its best"] == "1.60 met"
    columns = dict(zip(generate_table.HEAD, generate_table.cells(one, [two, one])))
    assert columns["ratio, same threads"] == "0.80 missed" and columns["each at its best"] == "1.60 met"
    assert columns["read bandwidth"] == "40% of 40.0 GB/s missed" and columns["peak memory, MB"].endswith(
        " met"
    )
    lonely = generation(plmcore=2.0)
    alone = dict(zip(generate_table.HEAD, generate_table.cells(lonely, [lonely])))
    assert (
        alone["ratio, same threads"] == alone["each at its best"] == ""
        and "m" not in alone["peak memory, MB"]
    )


def test_generation_is_tied_where_rounds_disagree():
    two = generation(plmcore=2.0, transformers=8.0, ctranslate2=3.0)
    two["times"] |= {"plmcore": [2.0, 2.0], "ctranslate2": [2.9, 3.1], "transformers": [8.0]}
    one = generation(1, plmcore=1.9, ctranslate2=3.2)
    columns = dict(zip(generate_table.HEAD, generate_table.cells(two, [two, one])))
    assert columns["ratio, same threads"] == "1.50 tie"  # of 1.45 and 1.55; the target is 1.5
    assert columns["each at its best"] == "1.58 met"  # 2.9 and 3.1 over 1.9


def test_memory_and_errors_of_int8_are_marked():
    result = generation(case=f"{GPT2}, int8", **{"plmcore": 1.0, "ctranslate2": 3.0, "llama.cpp": 2.0})
    result["memory"]["plmcore"] = 501e6
    result["errors"] = {"plmcore": 0.02, "ctranslate2": 0.03, "llama.cpp": 0.01}
    columns = dict(zip(generate_table.HEAD, generate_table.cells(result, [result])))
    assert columns["peak memory, MB"] == "501 / 500 / 500 missed"
    assert columns["error of int8"] == "0.02 / 0.03 / 0.01 missed"
    assert columns["ratio, same threads"] == "2.00 met" and columns["read bandwidth"] == "40% of 40.0 GB/s"


def test_partial_runs_of_generation_are_merged(tmp_path):
    first = {"machine": "a machine", "results": [generation(1, plmcore=2.0), generation(2, plmcore=3.0)]}
    second = {"machine": "a machine", "results": [generation(2, plmcore=1.0)]}
    third = {"machine": "a machine", "results": [], "overhead": {"calls": 3e-4, "step": 2e-2}}
    run = generate_table.merged([first, second, third])
    assert [(r["threads"], r["times"]["plmcore"]) for r in run["results"]] == [(2, [1.0]), (1, [2.0])]
    text = generate_table.markdown(run)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert text.startswith("a machine\n") and len(rows) == 4 and len({row.count("|") for row in rows}) == 1
    assert "0.300 ms outside of kernels, 1.5% met" in text
    readme = (BENCHMARKS / "README.md").read_text()
    assert generate_table.BEGIN in readme and generate_table.END in readme


def test_peers_that_are_far_behind_are_timed_once():
    class Side:
        def __init__(self, seconds):
            self.seconds = seconds

        def ask(self, *command):
            return self.seconds

    sides = {"plmcore": Side(5.0), "a": Side(2.0), "b": Side(3.9), "c": Side(4.1)}
    times = generate_main.timed(sides, 3, 0.0, 1.1)
    assert {name: len(t) for name, t in times.items()} == {"plmcore": 3, "a": 3, "b": 3, "c": 1}
    sides["plmcore"].ask = lambda *command, each=itertools.cycle((1.0, 3.0)): next(each)
    times = generate_main.timed(sides, 3, 0.0, 1.1)
    assert len(times["plmcore"]) == len(times["a"]) == 1 + 2 * contest.MORE and len(times["c"]) == 1
    assert generate_main.far_behind(times) == {"c"} and not generate_main.far_behind({"plmcore": [1.0]})


def test_every_case_of_generation_has_a_target():
    names = list(generate_cases.CASES)
    assert len(names) == 14 and sum(name.endswith("int8") for name in names) == 7
    assert all(case.target >= 1.1 for case in generate_cases.CASES.values())
    peers = {name: case.peers for name, case in generate_cases.CASES.items()}
    assert peers[GPT2] == ("transformers", "ctranslate2", "llama.cpp")
    assert peers[f"{GPT2}, int8"] == ("ctranslate2", "llama.cpp")
    assert peers["T5-small, beam 4, batch 8, 128 -> 64, int8"] == ("ctranslate2",)


def test_names_of_llama_cpp():
    names = (
        "wte.weight",
        "h.11.attn.c_attn.bias",
        "h.0.mlp.c_proj.weight",
        "ln_f.bias",
        "h.0.attn.bias",
        "lm_head.weight",
    )
    assert [generate_write.llama_name(n) for n in names] == [
        "token_embd.weight", "blk.11.attn_qkv.bias", "blk.0.ffn_down.weight", "output_norm.bias", None, None,
    ]  # fmt: skip


def op(**changes):
    return {
        "case": "an op",
        "threads": 2,
        "plmcore_ms": 1.0,
        "torch_ms": 1.5,
        "ratio": 1.5,
        "low": 1.25,
        "high": 2.0,
        "target": 1.3,
        "share": 0.0,
        "error": 3e-7,
        "gflops": 150.0,
        "gbps": 0.0,
        "limit_gflops": 200.0,
        "limit_gbps": 30.0,
    } | changes


def test_ops_meet_their_targets_or_are_marked():
    assert ops_table.cells(op()) == [
        "an op", "1.000", "1.500", "1.50", "1.25–2.00", "1.30 tie", "150 GFLOP/s", "75%", "3e-07",
    ]  # fmt: skip
    read = dict(gflops=0.0, gbps=24.0, share=0.85, error=None)
    assert ops_table.cells(op(**read))[5:] == ["1.30 missed", "24.0 GB/s", "80%, 85% wanted", ""]
    assert ops_table.cells(op(gflops=0.0))[6:8] == ["", ""]
    slow = dict(ratio=0.8, low=0.7)
    results = [op(low=1.3), op(high=1.29), op(**slow, high=0.95), op(**slow), op(**read), op(target=0)]
    assert [ops_table.mark(r) for r in results] == ["met", "missed", "behind", "tie", "missed", ""]
    assert ops_table.summary(results) == "6 rows, 3 targets missed, 1 ties, 2 rows below 0.9 of PyTorch"
    wanted = [c.share for c in ops_cases.CASES.values() if c.name.startswith("linear 1x")]
    assert wanted == [0.85, 0.85]


def test_the_table_of_ops_has_a_place_and_wants_every_case(tmp_path):
    every = [op(case=name, threads=n) for n in (2, 1) for name in ops_cases.CASES]
    whole = {"machine": "a machine", "settings": "5 rounds of 0.05 s", "results": every}
    page = tmp_path / "page.md"
    page.write_text(f"a\n{ops_table.BEGIN}\nold\n{ops_table.END}\nb\n")
    with pytest.raises(SystemExit, match=f"no results of {every[0]['case']}, 2 threads"):
        ops_table.publish(page, whole | {"results": every[1:]})
    ops_table.publish(page, whole)
    rows = [text for text in page.read_text().splitlines() if text.startswith("|")]
    assert len(rows) == len(every) + 4 and len({row.count("|") for row in rows}) == 1
    assert (
        "a machine; 5 rounds of 0.05 s." in page.read_text() and "2 threads: FMA loop 200" in page.read_text()
    )
    assert ops_table.BEGIN in (BENCHMARKS / "README.md").read_text()
    path = tmp_path / "run.json"
    path.write_text(json.dumps(whole))
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "ops"), "--from", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ops_table.markdown(whole)


def pretraining(**changes):
    speeds = {"plmcore": [300.0, 280.0], "transformers": [200.0, 200.0]}
    return {
        "case": "a model",
        "threads": 2,
        "target": 1.4,
        "speeds": speeds,
        "overhead": 0.004,
        "first": 0.6,
        "later": 0.5,
        "written": 4.0,
    } | changes


def test_pretraining_reaches_its_targets_or_is_marked():
    good = pretraining()
    assert train_table.missed(good) == []
    assert train_table.cells(good) == [
        "a model",
        "290",
        "200",
        "1.45",
        "1.40–1.50",
        "1.4 met",
        "0.40",
        "0.60",
        "0.50",
        "4.0",
    ]
    bad = pretraining(target=1.6, overhead=0.02, first=9.0)
    assert [what.partition(": ")[2] for what in train_table.missed(bad)] == [
        "ratio 1.45, 1.6 wanted", "the loop takes 2.00 % of a step", "the first checkpoint blocks 9.0 s",
    ]  # fmt: skip
    assert train_table.cells(bad)[5:8] == ["1.6 missed", "2.00*", "9.00*"]
    tied = pretraining(target=1.5)
    assert train_table.cells(tied)[5] == "1.5 tie" and train_table.missed(tied) == []
    alone = pretraining(speeds={"plmcore": [300.0]})
    assert train_table.cells(alone)[1:6] == ["300", "–", "–", "–", "1.4"] and train_table.missed(alone) == []


def test_the_table_of_pretraining_has_a_place(tmp_path):
    text = train_table.markdown("a machine", [pretraining(), pretraining(overhead=0.02)])
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4 and len({row.count("|") for row in rows}) == 1 and r"2.00\*" in rows[-1]
    readme = BENCHMARKS / "README.md"
    assert train_table.BEGIN in readme.read_text() and train_table.END in readme.read_text()
    page = tmp_path / "page.md"
    page.write_text(f"a\n{train_table.BEGIN}\nold\n{train_table.END}\nb\n")
    contest.write_between(page, train_table.BEGIN, train_table.END, text)
    assert page.read_text() == f"a\n{train_table.BEGIN}\n{text}\n{train_table.END}\nb\n"


def of_families(**changes):
    return {
        "case": "a step",
        "threads": 1,
        "clock": "processor",
        "error": 2e-7,
        "times": {"plmcore": [1.0, 1.1], "torch": [1.5, 1.54], "GPT-2": [0.9, 0.9]},
        "memory": {"plmcore": 3e8, "torch": 6e8, "GPT-2": 3e8},
        "targets": {"torch": 1.3, "GPT-2": 0.95},
        "memory_target": None,
    } | changes


def test_families_reach_their_targets_or_are_marked(tmp_path):
    first, second = families_table.cells(of_families())
    assert first == [
        "a step",
        "1050.0",
        "torch",
        "1520.0",
        "1.45",
        "1.40–1.50",
        "1.30 met",
        "0.50",
        "–",
        "2e-07",
    ]
    assert second[2] == "GPT-2" and second[6] == "0.95 missed"
    assert families_table.missed([of_families()]) == ["a step, 1 thread, GPT-2: 0.86, memory 1.00"]
    heavy = of_families(targets={"torch": 1.3}, memory_target=0.4, error=None)
    assert families_table.cells(heavy)[0][7:] == ["0.50", "0.40 missed", "–"] and families_table.missed(
        [heavy]
    )
    without = of_families(times={"plmcore": [1.0]})
    assert families_table.cells(without) == [] and families_table.missed([without]) == []
    run = {"machine": "a machine", "results": [of_families(), of_families(threads=2, clock="wall")]}
    text = families_table.markdown(run)
    assert "### 1 thread, processor time" in text and "### 2 threads\n" in text
    again = families_table.merged([run, run | {"results": [of_families(error=0.0)]}])
    assert [r["error"] for r in again["results"]] == [0.0, 2e-7]
    with pytest.raises(SystemExit, match="different machines"):
        families_table.merged([run, run | {"machine": "another"}])
    readme = (BENCHMARKS / "README.md").read_text()
    assert families_table.BEGIN in readme and families_table.END in readme


def test_cases_of_families_have_inputs_that_fit():
    names = {"plmcore", *families_cases.OTHERS, families_cases.XL, families_cases.TORCH, families_cases.BART}
    for case in families_cases.CASES.values():
        assert case.targets.keys() <= names
    batch = families_cases.CASES["GLM step, 8 x 128, a quarter part B"].blanks()
    assert (batch["labels"] != -100).sum() == 8 * 32 == (batch["block_position_ids"] > 0).sum()
    assert batch["position_ids"].max() < batch["source_lengths"].min() == 96


def test_text_of_the_pretraining_benchmark_is_the_same_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(train_cases, "LINES", 5)
    for name in ("a", "b"):
        train_cases.write_text(tmp_path / name)
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() and (
        tmp_path / "a"
    ).read_text().count("\n") == 10
    assert all(train_cases.small(case).batch == 1 for case in train_cases.CASES.values())


def writing_corpus(**changes):
    """A result: 10 MB in 2 and 4 s, by the library in 1.9 and 4.2 s."""
    return {
        "family": "t5", "cut": "rule", "megabytes": 10.0, "cores": 2, "memory": 99.0,
        "times": {"plmcore": [2.0, 4.0], "library": [1.9, 4.2]}, "cpu": {"plmcore": 3.9, "library": 3.8},
    } | changes  # fmt: skip


def test_corpora_reach_their_targets_or_are_marked():
    good, bad = (
        writing_corpus(),
        writing_corpus(family="bert", times={"plmcore": [2.0, 2.0], "library": [1.8, 1.8]}),
    )
    kept = {"megabytes": 1000, "opened": 1.0, "rate": 50.0, "resident": 150.0, "before": 60.0}
    assert corpus_table.cells(good) == [
        "t5 (sentencepiece), sentences",
        "10",
        "2",
        "3.33",
        "3.28",
        "1.00",
        "0.95–1.05",
        "0.95 met",
        "3.9 / 3.8",
        "99",
    ]
    assert corpus_table.cells(bad)[5:8] == ["0.90", "0.90–0.90", "0.95 missed"]
    tied = writing_corpus(times={"plmcore": [2.0, 2.0], "library": [1.8, 2.0]})
    assert corpus_table.cells(tied)[7] == "0.95 tie" and corpus_table.missed({"results": [tied]}) == []
    runs = [{"machine": "a", "results": [good, bad]}, {"machine": "a", "results": [], "batches": kept}]
    assert [corpus_table.missed(run) for run in runs] == [
        ["bert (tokenizers), sentences, 10 MB: ratio 0.90, 0.95 wanted"], [],
    ]  # fmt: skip
    assert corpus_table.missed({"results": [], "batches": kept | {"resident": 201.0}}) == [
        "random batches: 201 MB resident, 200 allowed"
    ]
    text = corpus_table.markdown(runs)
    assert (
        text.startswith("a. plmcore goes")
        and "0.95 missed |" in text
        and "150 MB resident at most (target" in text
    )
    assert corpus_table.BEGIN in (BENCHMARKS / "README.md").read_text()


def building_batches(**changes):
    return {
        "case": "masked-lm", "size": "tiny, 12 x 64", "tokens": 768, "times": [1e-4, 1e-4], "share": 0.01,
        "peers": {"torch": [2e-3, 1e-3], "numpy": [4e-4, 4e-4]},
    } | changes  # fmt: skip


def test_objectives_reach_their_targets_or_are_marked():
    good = building_batches()
    assert objectives_table.missed(good) == [] and objectives_table.missed(building_batches(peers={})) == []
    assert objectives_table.cells(good)[2:] == ["0.10", "7,680,000", "1.50", "15.0", "0.40", "4.0", "1.0 %"]
    tied = building_batches(peers={"torch": [9e-4, 2e-3]})
    assert objectives_table.cells(tied)[5] == "14.5 tie" and objectives_table.missed(tied) == []
    bad = building_batches(share=0.06, peers={"torch": [9e-4, 9e-4], "numpy": [9e-4, 9e-4]})
    assert objectives_table.missed(bad) == [
        "masked-lm, tiny, 12 x 64: 9.0 times the collator's rate, 10 wanted",
        "masked-lm, tiny, 12 x 64: 6.0 % of a step, 5% allowed",
    ]
    text = objectives_table.markdown({"machine": "a", "step": 0.01, "results": [good, bad]})
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4 and len({row.count("|") for row in rows}) == 1 and r"9.0\*" in rows[-1]
    assert objectives_table.BEGIN in (BENCHMARKS / "README.md").read_text()


SMALL = ["add of 16 numbers, 1000 times", "layer_norm 1024x768 +grad", "attention 8x128x12x64"]


@pytest.mark.parametrize("name", SMALL)
def test_cases_of_two_checkouts_repeat_their_outputs(name):
    call = before_cases.CASES[name]()
    first, second = ([x.numpy() for x in call()] for _ in range(2))
    assert first and all(np.isfinite(x).all() for x in first)
    assert all(np.array_equal(x, y) for x, y in zip(first, second, strict=True))
