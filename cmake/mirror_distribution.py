"""Usage: mirror_distribution.py DISTRIBUTION FILE TO.

Copies what a Python distribution has beside FILE, and below, to the folder TO.

Of "x.h" that is the folder that holds it, of "y/x.h" the one that holds y. Files that are there already with
the same contents stay as they are: pip builds in a new environment each time, and with its dates everything
that includes a header of it would be compiled again.
"""

import importlib.metadata
import pathlib
import shutil
import sys

name, end, to = sys.argv[1], "/" + sys.argv[2], pathlib.Path(sys.argv[3])
found = importlib.metadata.distribution(name)
paths = [pathlib.Path(found.locate_file(f)).resolve() for f in found.files or ()]
root = next(pathlib.Path(p.as_posix()[: -len(end)]) for p in paths if p.as_posix().endswith(end))
for path in paths:
    if not path.is_relative_to(root) or path.suffix in (".py", ".pyc", ".pyi"):
        continue
    copy = to / path.relative_to(root)
    if copy.is_file() and copy.read_bytes() == path.read_bytes():
        continue
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, copy)
