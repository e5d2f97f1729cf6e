"""The C interface from another language, here Python's ctypes: vectors of rows of ids. The package plmcore
is not imported; LIBRARY is libplmcore.so.

    python examples/cpp/from_ctypes.py LIBRARY MODEL.plm 4,5,6 7,8
"""

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p


class Tensor(ctypes.Structure):
    """plm_tensor"""

    _fields_ = (
        ("name", c_char_p),
        ("dtype", c_int),
        ("rank", c_int32),
        ("size", c_int64 * 8),
        ("data", c_void_p),
    )


def main(library: str, model_path: str, *rows: str) -> None:
    lib = ctypes.CDLL(library)
    lib.plm_last_error.restype = c_char_p
    lib.plm_rows_add.argtypes = (c_void_p, POINTER(c_int64), POINTER(c_int64), c_size_t)
    lib.plm_outputs_get.argtypes = (c_void_p, c_size_t, POINTER(Tensor))

    def call(name: str, *arguments: object) -> None:
        if getattr(lib, name)(*arguments) != 0:
            sys.exit(lib.plm_last_error().decode())

    model, session, given, found = (c_void_p() for _ in range(4))
    call("plm_model_load", model_path.encode(), byref(model))
    call("plm_session_new", model, 0, byref(session))
    call("plm_rows_new", byref(given))
    for row in rows:
        ids = [int(i) for i in row.split(",")]
        call("plm_rows_add", given, (c_int64 * len(ids))(*ids), None, len(ids))
    call("plm_encode", session, given, byref(found))
    out = Tensor()
    call("plm_outputs_get", found, 0, byref(out))
    n, width = out.size[0], out.size[1]
    values = ctypes.cast(out.data, POINTER(ctypes.c_float))
    for i in range(n):
        print(" ".join(f"{values[i * width + k]:.6f}" for k in range(width)))
    for kind, handle in {"outputs": found, "rows": given, "session": session, "model": model}.items():
        getattr(lib, f"plm_{kind}_free")(handle)


if __name__ == "__main__":
    main(*sys.argv[1:])
