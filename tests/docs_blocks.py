"""Runs the code blocks of README.md and docs/ as a reader would paste them.

python tests/docs_blocks.py --bin ENV/bin [PAGE...]

`ENV/bin` holds `python` and the command `plmcore`; the gate passes an environment that has the wheel and
nothing else. The blocks of a page run in their order in one folder, which holds what a reader has: models,
texts and tables of docs_files.py. A shell block goes to a new bash, a Python block to a new interpreter. A
block is run unless it says why not, in a comment on the line before it: <!-- not run: REASON -->. The blocks
after <!-- command: NAME --> are steps of the gate. Only the standard library is used here: the environment of
the blocks is another one.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILES = ROOT / "tests" / "docs_files.py"
SHELL, PYTHON = ("sh", "bash"), ("python",)
OTHER = ("text", "cpp", "cmake", "toml", "json", "mermaid")
TOOLS = (
    "bash",
    "cat",
    "head",
    "ls",
    "rm",
    "mkdir",
)  # what blocks use beside plmcore; no compiler is among them
LIMIT = 300  # seconds of a block
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^ *```[ ]*$", re.MULTILINE | re.DOTALL
)
COMMENT = re.compile(r"<!-- (not run|command): (.+?) -->\s*\Z")


@dataclasses.dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str
    excuse: str | None  # why it is not run here

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        return self.language in SHELL + PYTHON and self.excuse is None

    @property
    def installs(self) -> bool:
        return self.language in SHELL and re.search(r"^pip install", self.text, re.MULTILINE) is not None


def pages() -> list[str]:
    """All pages, as paths from the root. The API reference has no blocks to run."""
    found = [p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "api"]
    return ["README.md", *sorted(p.relative_to(ROOT).as_posix() for p in found)]


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return list(found(page, text))


def found(page: str, text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        comment = COMMENT.search(text, 0, match.start())
        excuse = (
            comment and {"not run": comment[2], "command": f"a step of the gate: {comment[2]}"}[comment[1]]
        )
        yield Block(page, line, match["language"].strip(), match["text"], excuse)


class Failed(Exception):
    """A block that ended with an error."""


@dataclasses.dataclass
class Reader:
    """One who pastes: `bin` has python and plmcore, `home` is a folder for everything that is written."""

    bin: pathlib.Path
    home: pathlib.Path
    installs: bool = False  # whether `pip install` may be run

    def __post_init__(self) -> None:
        tools = self.home / "tools"
        tools.mkdir(parents=True, exist_ok=True)
        for name in TOOLS:
            if (path := shutil.which(name, path="/usr/bin:/bin")) and not (tools / name).exists():
                (tools / name).symlink_to(path)
        self.bash = shutil.which("bash", path=str(tools))
        kept = ("PYTHONPATH", "PLMCORE_NUM_THREADS", "LD_LIBRARY_PATH")
        if self.installs:
            kept += tuple(n for n in os.environ if n.startswith("PIP_") or n.lower().endswith("_proxy"))
            kept += ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
        self.env = {n: os.environ[n] for n in kept if n in os.environ}
        # pip's settings may lie there.
        home = os.environ.get("HOME", "/") if self.installs else str(self.home)
        self.env |= {"PATH": f"{self.bin}:{tools}", "HOME": home, "LC_ALL": "C.UTF-8"}

    def prepare(self) -> None:
        """Makes the files that readers have."""
        (self.home / "files").mkdir()
        self.call("what readers have", [self.bin / "python", FILES, self.home / "files"], None, self.home)

    def read(self, page: str) -> list[tuple[Block, float]]:
        """Runs a page's blocks; returns them with their seconds."""
        folder = self.home / page.replace("/", "-")
        shutil.copytree(self.home / "files", folder)
        done = []
        for block in blocks(page):
            if not block.runs or block.installs and not self.installs:
                continue
            start = time.monotonic()
            self.paste(block, folder)
            done.append((block, time.monotonic() - start))
        return done

    def paste(self, block: Block, folder: pathlib.Path) -> None:
        if block.language in SHELL:
            self.call(str(block), [self.bash, "-euo", "pipefail", "-c", block.text], None, folder, block.text)
        else:
            self.call(str(block), [self.bin / "python", "-"], block.text, folder, block.text)

    def call(self, name: str, command: list, text: str | None, folder: pathlib.Path, shown: str = "") -> None:
        source = {"stdin": subprocess.DEVNULL} if text is None else {"input": text}
        try:
            r = subprocess.run(
                [str(c) for c in command],
                cwd=folder,
                env=self.env,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                **source,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"{name} took more than {LIMIT} s\n{shown}") from None
        if r.returncode != 0 or "Traceback" in r.stderr:
            raise Failed(
                f"{name} ended with {r.returncode}\n{shown}---- output\n{r.stdout[-3000:]}{r.stderr[-3000:]}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="the folder of python and plmcore")
    parser.add_argument("--install", action="store_true", help="also run blocks with pip install")
    parser.add_argument(
        "pages", nargs="*", metavar="PAGE", help="README.md, docs/data.md, ... (default: all)"
    )
    args = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="docs-") as home:
        reader = Reader(args.bin.absolute(), pathlib.Path(home), args.install)
        reader.prepare()
        for page in args.pages or pages():
            try:
                done = reader.read(page)
            except Failed as e:
                failures += 1
                print(e)
            else:
                if done:
                    print(
                        f"{page}: {len(done)} blocks, {sum(seconds for _, seconds in done):.1f} s", flush=True
                    )
    for block in (b for page in args.pages or pages() for b in blocks(page) if b.excuse):
        print(f"not run: {block}: {block.excuse}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
