"""A run for test_faults to kill: python killed_run.py DIR STEPS [FILE_SIZE_LIMIT].

Goes on from the last checkpoint; writes DIR/done.npz.
"""

import pathlib
import resource
import sys
import time

import numpy as np
from plmcore import optim, train
from small import gpt2, trainer, weights


def main(folder: pathlib.Path, steps: int, limit: int | None) -> None:
    model = gpt2()

    def pause(t, metrics):
        (folder / "alive").touch()
        time.sleep(0.004)
        if limit and t.step == 5:
            t.directory.finish()
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with train.RunDirectory(folder, quiet=True) as d:
        t = trainer(
            model,
            steps=steps,
            directory=d,
            save_every=4,
            average=optim.EMA(model.parameters(), 0.9),
            callbacks=[pause],
        )
        if saved := d.newest():
            t.restore(saved)
        d.forget_after(t.step)
        t.run()
    np.savez(folder / "done.npz", **weights(model))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
