"""A run of the toy trainer for test_run to kill: python killed_toy.py DIR TEXT STEPS."""

import pathlib
import sys
import time

from toy_trainer import count


def main(folder: pathlib.Path, text: str, steps: int) -> None:
    def pause(training, metrics):
        (folder / "alive").touch()
        time.sleep(0.004)

    count(folder, text, steps=steps, save_every=4, resume=True, callbacks=[pause])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
