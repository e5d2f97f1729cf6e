import json
import os

import numpy as np
import plmcore as plm
import pytest
from plmcore.train import checkpoint

PARTS = {
    "weights": {"a": np.arange(6.0, dtype=np.float32).reshape(2, 3), "b": np.float64(3)},
    "optimizer": {"0.step": np.int64(7)},
}


def write(folder, step, score=None, parts=PARTS):
    return checkpoint.write(folder, step, parts, {"score": score, "best": 0.1})


def test_what_is_written_is_read(tmp_path):
    path = write(tmp_path, 12)
    assert path.name == "step-00000012" and sorted(p.name for p in path.iterdir()) == [
        "manifest.json", "optimizer.safetensors", "state.json", "weights.safetensors",
    ]  # fmt: skip
    found = checkpoint.read(path)
    assert found.step == 12 and found.state["best"] == 0.1
    assert found.parts["weights"]["a"].numpy().tobytes() == PARTS["weights"]["a"].tobytes()
    assert found.parts["optimizer"]["0.step"].item() == 7
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "file", ["weights.safetensors", "optimizer.safetensors", "state.json", "manifest.json"]
)
def test_any_flipped_bit_is_found(tmp_path, file):
    path = write(tmp_path, 1) / file
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 40):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(plm.FormatError, match=r"step-00000001"):
            checkpoint.read(path.parent)
    path.write_bytes(whole)
    checkpoint.read(path.parent)


@pytest.mark.parametrize("file", ["weights.safetensors", "state.json", "manifest.json"])
def test_cut_off_and_lost_files(tmp_path, file):
    path = write(tmp_path, 1) / file
    os.truncate(path, path.stat().st_size - 2)
    with pytest.raises(plm.FormatError):
        checkpoint.read(path.parent)
    path.unlink()
    with pytest.raises(plm.FormatError, match=f"has lost {file}"):
        checkpoint.read(path.parent)


def test_a_file_that_the_manifest_does_not_list(tmp_path):
    path = write(tmp_path, 1)
    (path / "other.safetensors").write_bytes((path / "weights.safetensors").read_bytes())
    with pytest.raises(plm.FormatError, match=r"does not list other\.safetensors"):
        checkpoint.read(path)


def test_a_manifest_cannot_name_files_elsewhere(tmp_path):
    path = write(tmp_path, 1)
    manifest = json.loads((path / "manifest.json").read_bytes())
    manifest["files"]["../x"] = {"bytes": 1, "sha256": ""}
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(plm.FormatError, match=r"damaged at '\.\./x'"):
        checkpoint.read(path)


def test_the_newest_that_is_whole(tmp_path):
    assert checkpoint.newest(tmp_path / "none") == (None, [])
    for step in (9, 10, 100):
        write(tmp_path, step)
    (tmp_path / "step-00000100" / "weights.safetensors").write_bytes(b"")
    found, problems = checkpoint.newest(tmp_path)
    assert found.step == 10 and len(problems) == 1 and "weights.safetensors' has 0 bytes" in problems[0]
    for step in (9, 10):
        (tmp_path / f"step-{step:08}" / "state.json").unlink()
    with pytest.raises(
        plm.FormatError, match=r"no checkpoint in .* can be read: .*00000100.*; .*00000010.*; "
    ):
        checkpoint.newest(tmp_path)


def test_the_last_and_the_best_stay(tmp_path):
    for step, score in ((10, 3.0), (20, 1.0), (30, None), (40, 2.0), (50, 1.5)):
        write(tmp_path, step, score)
    (tmp_path / ".step-00000060.123.tmp").mkdir()
    checkpoint.prune(tmp_path, keep=2)
    assert [p.name for p in checkpoint.steps_in(tmp_path)] == [
        "step-00000020",
        "step-00000040",
        "step-00000050",
    ]
    assert not list(tmp_path.glob(".*"))


def test_the_same_step_again_replaces_it(tmp_path):
    (write(tmp_path, 5) / "weights.safetensors").write_bytes(b"damaged")
    write(tmp_path, 5)
    assert checkpoint.newest(tmp_path)[0].step == 5
    assert not list(tmp_path.glob(".*"))


def test_a_failed_write_leaves_what_was_there(tmp_path):
    write(tmp_path, 5)
    with pytest.raises((TypeError, ValueError)):
        write(tmp_path, 5, parts={"weights": {"a": "no array"}})
    assert checkpoint.newest(tmp_path)[0].step == 5 and not list(tmp_path.glob(".*"))


def test_average(tmp_path):
    paths = [
        write(tmp_path, i, parts={"weights": {"a": np.full(3, x, np.float32)}})
        for i, x in enumerate((1.0, 2.0, 6.0))
    ]
    assert checkpoint.average(paths)["a"].tolist() == [3, 3, 3]
    paths.append(write(tmp_path, 9, parts={"weights": {"a": np.zeros(2, np.float32)}}))
    with pytest.raises(ValueError, match=r"a is \[2\] .* \[3\] before"):
        checkpoint.average(paths)
    with pytest.raises(ValueError, match="no checkpoints"):
        checkpoint.average([])
