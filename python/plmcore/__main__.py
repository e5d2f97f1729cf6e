"""python -m plmcore, and the command."""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """As plmcore.cli.main, which is imported when Ctrl-C is answered already."""
    from plmcore.cli import main as run

    return run(argv)


if __name__ == "__main__":
    sys.exit(main())
