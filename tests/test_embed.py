"""The C++ side of the installed package: a CMake project of its own finds it, loads a traced Transformer
block and a whole model, and runs them without Python.
"""

import os
import pathlib
import pydoc_data.topics
import shutil
import subprocess
import sys
import sysconfig

import docs_blocks
import plmcore
import pytest

PACKAGE = pathlib.Path(plmcore.__file__).parent
EMBED = pathlib.Path(__file__).parent / "embed"
CMAKE = shutil.which("cmake")
COMPILER = shutil.which(os.environ.get("CXX", "c++"))
needs_tools = pytest.mark.skipif(
    not (CMAKE and COMPILER and (PACKAGE / "cmake").is_dir()) and not os.environ.get("PLM_REQUIRE_EMBED"),
    reason="needs cmake, a C++ compiler and an installed plmcore",
)


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def build(package: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    run(CMAKE, "-S", EMBED, "-B", folder, f"-Dplmcore_ROOT={package / 'cmake'}", "-DCMAKE_BUILD_TYPE=Release")
    run(CMAKE, "--build", folder)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(PACKAGE, tmp_path_factory.mktemp("embed") / "build")


alone = {"PATH": "/nonexistent"}


@needs_tools
def test_programs_run_without_python(built, tmp_path):
    run(sys.executable, EMBED / "make_model.py", tmp_path)
    out = run(built / "run_block", tmp_path / "block.plm", tmp_path / "expected.bin", env=alone)
    assert "input x [B, T, 96]" in out and out.count("largest difference") == 6
    out = run(built / "run_model", tmp_path / "gpt2.plm", tmp_path / "logits.bin", env=alone)
    assert out.count("largest difference") == 2
    out = run(built / "run_search", tmp_path / "gpt2.plm", tmp_path / "tokens.bin", env=alone)
    assert out.count("3 prompts, the same tokens") == 2
    assert "libpython" not in run("ldd", built / "run_model")


@needs_tools
def test_model_files_of_every_family_and_head(built, tmp_path):
    """Forward passes at five sizes, generation greedily, with beams and samples, and in eight threads."""
    run(sys.executable, EMBED / "make_sessions.py", tmp_path)
    assert run(built / "run_session", tmp_path, env=alone).endswith(" files, 0 failed\n")


@needs_tools
def test_the_c_interface_is_as_it_was(built):
    """tests/embed/abi.txt: what programs that were compiled against it rely on. Lines are only added."""
    symbols = run("nm", "-D", "--defined-only", PACKAGE / "lib" / "libplmcore.so").splitlines()
    found = run(built / "abi") + "".join(sorted(f"{s.split()[-1]}\n" for s in symbols if " plm_" in s))
    assert found == (EMBED / "abi.txt").read_text()


@needs_tools
def test_the_examples(tmp_path):
    tokens = tmp_path / "manual.txt"
    tokens.write_text(" ".join(pydoc_data.topics.topics.values())[:30_000])
    bpe = plmcore.train_tokenizer(tokens, kind="byte-bpe", family="gpt2", vocab_size=400)
    pieces = plmcore.train_tokenizer(tokens, kind="wordpiece", family="bert", vocab_size=400)
    sizes = dict(vocab_size=400, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    sizes["intermediate_size"] = 16
    gpt2 = {"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 400}
    labels = {"0": "bad", "1": "good"}
    for name, config, head, tokenizer in (
        ("gpt2", gpt2, "causal-lm", bpe),
        ("base", {"model_type": "bert", **sizes}, "base", pieces),
        ("labels", {"model_type": "bert", "id2label": labels, **sizes}, "sequence-classification", pieces),
    ):
        model = plmcore.from_config(config, head).eval().model
        plmcore.export(plmcore.LanguageModel(model, tokenizer), tmp_path / f"{name}.plm")
    examples, built = EMBED.parents[1] / "examples" / "cpp", tmp_path / "build"
    run(CMAKE, "-S", examples, "-B", built, f"-Dplmcore_ROOT={PACKAGE / 'cmake'}")
    run(CMAKE, "--build", built)
    session = plmcore.Program.load(tmp_path / "gpt2.plm")
    for program in ("generate", "generate_c"):
        out = run(built / program, tmp_path / "gpt2.plm", "the name of")
        [[best]] = session.generate("the name of", max_new_tokens=12, num_beams=4)
        assert f"the name of{session.decode(best.tokens)}\n" in out
    lines = tmp_path / "lines.txt"
    lines.write_text("the name of a module\nfor each item in the list\nthe name of a class\n")
    out = run(built / "neighbours", tmp_path / "base.plm", lines, "for each item in the list").splitlines()
    assert out[0] == "1.0000  for each item in the list" and len(out) == 3
    texts = [f"text number {i}" for i in range(20)]
    out = run(built / "classify", tmp_path / "labels.plm", *texts).splitlines()
    expected = plmcore.Program.load(tmp_path / "labels.plm").classify(texts)
    assert [line.split()[0] for line in out] == [c.label for c in expected]
    assert "loss 0.0" in run(built / "train", tmp_path / "xor.safetensors")
    assert dict(plmcore.safetensors.read(tmp_path / "xor.safetensors")[0])["up.weight"].shape == (16, 2)
    library = PACKAGE / "lib" / "libplmcore.so"
    out = run(sys.executable, examples / "from_ctypes.py", library, tmp_path / "gpt2.plm", "4,5,6", "7,8")
    vectors = session.encode([[4, 5, 6], [7, 8]])
    assert out == "".join(" ".join(f"{x:.6f}" for x in row) + "\n" for row in vectors)


@needs_tools
def test_pkg_config(tmp_path):
    if not (tool := shutil.which("pkg-config")):
        pytest.skip("needs pkg-config")
    env = os.environ | {"PKG_CONFIG_PATH": str(PACKAGE / "lib" / "pkgconfig")}
    flags = run(tool, "--cflags", "--libs", "plmcore", env=env).split()
    source = EMBED.parents[1] / "examples" / "cpp" / "train.cpp"
    run(COMPILER, "-std=c++20", source, "-o", tmp_path / "train", *flags, f"-Wl,-rpath,{PACKAGE / 'lib'}")
    assert "loss 0.0" in run(tmp_path / "train", tmp_path / "xor.safetensors")


@needs_tools
@pytest.mark.parametrize(
    ("name", "shown"), [("docs/cpp.md", "logits [1, 4, "), ("docs/embedding.md", "Once upon a time")]
)
def test_the_project_of_the_docs(name, shown, tmp_path):
    """A page's command, its two files and its commands for CMake, as a reader would paste them."""
    page = docs_blocks.blocks(name)
    [main], [project] = ([b.text for b in page if b.language == kind] for kind in ("cpp", "cmake"))
    (tmp_path / "main.cpp").write_text(main)
    (tmp_path / "CMakeLists.txt").write_text(project)
    corpus = tmp_path / "manual.txt"
    corpus.write_text(" ".join(pydoc_data.topics.topics.values())[:30_000])
    tokenizer = plmcore.train_tokenizer(corpus, kind="byte-bpe", family="gpt2", vocab_size=300)
    config = {"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 300}
    plmcore.LanguageModel(plmcore.from_config(config, "causal-lm").model, tokenizer).save(tmp_path / "gpt2")
    path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
    out = ""
    for block in (b.text for b in page if b.language == "sh" and "/opt/" not in b.text):
        out = run("bash", "-euo", "pipefail", "-c", block, cwd=tmp_path, env=os.environ | {"PATH": path})
    assert shown in out


@needs_tools
def test_the_package_may_be_moved(tmp_path):
    """The CMake files hold no absolute path."""
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for part in ("cmake", "include", "lib"):
        shutil.copytree(PACKAGE / part, moved / part)
    for file in (moved / "cmake").iterdir():
        assert str(PACKAGE.parent) not in file.read_text() and "build" not in file.read_text(), file
    built = build(moved, tmp_path / "build")
    assert str(moved) in run("ldd", built / "run_block")
