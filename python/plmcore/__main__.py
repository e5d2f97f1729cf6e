"""python -m plmcore, and the command."""

import sys


def main() -> int:
    from plmcore.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
