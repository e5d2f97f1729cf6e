"""A fine-tuning run for test_faults to kill: python killed_finetune.py MODEL TRAIN DEV DIR.

Goes on from the last checkpoint.
"""

import pathlib
import sys
import time

import plmcore as plm


def main(model: str, train: str, dev: str, out: pathlib.Path) -> None:
    def pause(trainer, metrics):
        (out / "alive").touch()
        time.sleep(0.004)

    changes = [
        "data.length=32",
        "data.batch=8",
        "optim.lr=3e-3",
        "adapt.unfreeze_every=1",
        "adapt.noise=0.1",
        "train.average=0.9",
    ]
    plm.finetune(
        model,
        "classification",
        train=train,
        dev=dev,
        epochs=8,
        save_every=3,
        seed=1,
        out=out,
        changes=changes,
        resume=True,
        quiet=True,
        callbacks=[pause],
    )


if __name__ == "__main__":
    main(*sys.argv[1:4], pathlib.Path(sys.argv[4]))
