"""README.md and docs/: every block runs as a reader would paste it, every link leads somewhere."""

import pathlib
import re
import shlex
import sys

import docs_blocks
import installed
import pytest
from docs_blocks import ROOT, Block, Failed, Reader

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="an installed copy has no docs")
PAGES = docs_blocks.pages() if (ROOT / "docs").exists() else []
ALL = [
    *PAGES,
    *(p for p in ("CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md") if (ROOT / p).exists()),
]


def commands(folder: pathlib.Path) -> pathlib.Path:
    """The folder of `python` and `plmcore`: that of this environment, or one with two shims for a package
    that runs from a checkout.
    """
    if installed.is_installed():
        return installed.PATH.parent
    folder.mkdir()
    for name, words in (("python", [sys.executable]), ("plmcore", installed.COMMAND)):
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    home = tmp_path_factory.mktemp("reader")
    reader = Reader(commands(home / "bin"), home)
    if reader.bash is None:
        pytest.skip("there is no bash")
    reader.prepare()
    return reader


@pytest.mark.parametrize("page", [p for p in PAGES if any(b.runs for b in docs_blocks.blocks(p))])
def test_blocks_run(reader, page):
    reader.read(page)


@pytest.mark.parametrize(
    "language, text, message",
    [
        ("sh", "plmcore info gpt2\nplmcore generate gpt2 --promt x\n", "--promt"),
        ("sh", "plmcore fly\necho done\n", "fly"),
        ("sh", "plmcorr info gpt2 | cat\n", "plmcorr"),
        ("python", "import plmcore as plm\n\nplm.laod('gpt2')\n", "laod"),
        ("python", "lm = plm.load('gpt2')\n", "plm"),
    ],
)
def test_a_wrong_block_is_found(reader, language, text, message):
    """A renamed option, a missing command, a missing name, and a block that needs the one before it."""
    with pytest.raises(Failed, match=re.escape(message)):
        reader.paste(Block("page", 1, language, text, None), reader.home / "files")


def test_blocks_are_found():
    text = (
        "<!-- not run: it compiles -->\n```sh\nmake\n```\n\n```python\nx = 1\n```\n<!-- command: demo "
        "-->\n```sh\npip install .\n```\n"
    )
    found = list(docs_blocks.found("page", text))
    assert [b.line for b in found] == [2, 6, 10]
    assert [b.excuse for b in found] == ["it compiles", None, "a step of the gate: demo"]
    assert [b.runs for b in found] == [False, True, False] and found[2].installs


@pytest.mark.parametrize("page", ALL)
def test_every_block_says_what_it_is(page):
    """A fence without a language, or code that is only indented, would never be run."""
    for block in docs_blocks.blocks(page):
        assert block.language in docs_blocks.SHELL + docs_blocks.PYTHON + docs_blocks.OTHER, (
            f"{block}: {block.language!r}"
        )
    prose = docs_blocks.FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    indented = [
        line
        for line in prose.splitlines()
        if re.match(r" {4,}(\$ |plmcore |python |pip |import |from |lm\b|plm\.)", line)
    ]
    assert indented == []


def test_few_blocks_are_not_run():
    excused = [
        b
        for page in PAGES
        for b in docs_blocks.blocks(page)
        if b.excuse and b.language in ("sh", "bash", "python")
    ]
    assert all(len(b.excuse) > 15 for b in excused), "say why"
    run = [b for page in PAGES for b in docs_blocks.blocks(page) if b.runs]
    assert len(excused) <= 15 and len(run) >= 100  # published files, compilers, parts of files


# ---- links ----


def prose(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", docs_blocks.FENCE.sub("", text))


def anchors(page: pathlib.Path) -> set[str]:
    """Those that GitHub gives to headings."""
    text = docs_blocks.FENCE.sub("", page.read_text(encoding="utf-8"))
    found: dict[str, int] = {}
    made = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        made.add(slug if slug not in found else f"{slug}-{found[slug]}")
        found[slug] = found.get(slug, 0) + 1
    return made


def links(page: str):
    return re.findall(r"\]\(([^)\s]+)\)", prose((ROOT / page).read_text(encoding="utf-8")))


def broken(page: str) -> list[str]:
    wrong = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        if not target.exists() or anchor and anchor not in anchors(target):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize(
    "page", [*ALL, *(p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "docs/api").glob("*.md")))]
)
def test_links_lead_somewhere(page):
    assert broken(page) == []


def test_every_page_can_be_reached():
    """From README.md, by links alone."""
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        found = links(page.relative_to(ROOT).as_posix())
        todo += [p for link in found if (p := (page.parent / link.partition("#")[0]).resolve()).is_file()]
    assert [p for p in (ROOT / "docs").rglob("*.md") if p not in seen] == []
