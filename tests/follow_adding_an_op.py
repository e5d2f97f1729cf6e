"""Follows docs/adding-an-op.md in a checkout, as a reader would: follow_adding_an_op.py CHECKOUT.

Writes the page's blocks where it says; .ci/nightly builds and tests the result.
"""

import pathlib
import re
import sys


def blocks(page: str) -> dict[str, list[str]]:
    """The code blocks of each numbered section, by its number."""
    sections = re.split(r"^## ", page, flags=re.M)
    return {
        s[0]: re.findall(r"^```(?:cpp|python)\n(.*?)^```", s, flags=re.S | re.M)
        for s in sections
        if re.match(r"\d\. ", s)
    }


def insert(path: pathlib.Path, neighbour: str, text: str) -> None:
    """Before the only line that begins like its neighbour in the family's section."""
    lines = path.read_text().splitlines(keepends=True)
    places = [i for i, line in enumerate(lines) if line.strip().startswith(neighbour)]
    if len(places) != 1:
        raise SystemExit(f"{path} has {len(places)} lines that begin with {neighbour!r}, not one")
    lines.insert(places[0], text)
    path.write_text("".join(lines))


def follow(root: pathlib.Path) -> None:
    of = blocks((root / "docs/adding-an-op.md").read_text())
    insert(root / "cpp/ops/ops.def", "PLM_OP(relu)", of["1"][0])
    (root / "cpp/ops/softsign.cpp").write_text(of["2"][0])
    insert(root / "cpp/include/plmcore/ops.h", "Tensor relu(", of["2"][1])
    (root / "cpp/kernels/softsign.cpp").write_text(of["3"][0])
    insert(root / "python/bindings/elementwise.cpp", 'm.def("relu"', of["4"][0])
    (root / "tests/ops/test_softsign.py").write_text(of["5"][0])


if __name__ == "__main__":
    follow(pathlib.Path(sys.argv[1]))
