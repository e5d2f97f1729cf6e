import numpy as np
from optest import OpSpec
from plmcore import ops


def slice_of(x, axis, start, stop, step=1):
    taken = range(start, stop, step) if step > 0 else range(stop - 1, start - 1, step)
    return x.take(list(taken), axis)


spec = OpSpec(
    op=ops.slice,
    ref=slice_of,
    cases=[
        dict(x=(2, 9, 4), axis=1, start=2, stop=6),
        dict(x=(5, 7, 4), axis=1, start=2, stop=6),
        dict(x=(2, 9, 4), axis=1, start=2, stop=6, step=-1),
        dict(x=(2, 9, 4), axis=1, start=1, stop=9, step=3),
        dict(x=(37, 769), axis=-1, start=1, stop=768, step=2),
        dict(x=(37, 769), axis=1, start=0, stop=769, step=-3),
        dict(x=(300, 5), axis=0, start=0, stop=300, step=-2),
        dict(x=(6, 3), axis=0, start=1, stop=6, step=100),
        dict(x=(6, 3), axis=0, start=2, stop=2),
        dict(x=(6, 3), axis=0, start=6, stop=6, step=-2),
        dict(x=(0, 3), axis=1, start=1, stop=2),
        dict(x=(3, 400000), axis=1, start=3, stop=399999),
        dict(x=np.arange(10), axis=0, start=1, stop=9, step=-3),
        dict(x=np.eye(4) > 0, axis=1, start=1, stop=3),
    ],
    dims={"x": "B T 4"},
    errors=[
        (
            dict(x=(3, 2), axis=1, start=1, stop=3),
            r"slice: the range \[1, 3\) is not inside an axis of size 2",
            IndexError,
        ),
        (dict(x=(3, 2), axis=0, start=2, stop=1), r"slice: the range \[2, 1\)", IndexError),
        (dict(x=(3, 2), axis=0, start=0, stop=1, step=0), r"slice: step must not be 0"),
        (dict(x=(3, 2), axis=-3, start=0, stop=1), r"slice: axis -3 is out of range for 2 axes", IndexError),
    ],
    bench=[dict(x=(16, 512, 768), axis=1, start=0, stop=1), dict(x=(4096, 1536), axis=1, start=0, stop=768)],
    torch=lambda t, x, axis, start, stop: x.narrow(axis, start, stop - start).contiguous(),
)
test_all = spec.tests()
