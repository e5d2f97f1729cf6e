"""The emulator itself: what it must do right, and the faults, put in on purpose, that it and the sanitizers
must find.

The programs lie beside the plug-in and were built with the same sanitizer.
"""

import functools
import os
import pathlib
import platform
import re
import signal
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("PLMCORE_CUDA_PLUGIN", "none")).parent
# What finds a fault: the emulator ("found"), the pages' protection ("killed"), the values ("nan", "wrong"), a
# sanitizer, or nobody ("unnoticed").
FAULTS = {  # plain, address + undefined, thread
    "divergent_barrier": ("found", "found", "found"),
    "exit_before_barrier": ("found", "found", "found"),
    "missing_barrier": ("nan", "nan", "race"),
    "missing_second_barrier": ("wrong", "wrong", "race"),
    "shared_out_of_bounds": ("unnoticed", "bounds", "unnoticed"),
    "global_out_of_bounds": ("unnoticed", "bounds", "unnoticed"),
    "uninitialised_shared": ("nan", "nan", "nan"),
    "shuffle_without_partners": ("found", "found", "found"),
    "divergent_shuffle": ("found", "found", "found"),
    "shuffle_outside_of_mask": ("found", "found", "found"),
    "missing_syncwarp": ("nan", "nan", "race"),
    "missing_copy_wait": ("nan", "nan", "race"),
    "copy_never_awaited": ("found", "found", "found"),
    "copy_over_what_is_read": ("nan", "nan", "race"),
    "matrix_before_copy_wait": ("nan", "nan", "race"),
    "matrix_without_syncwarp": ("nan", "nan", "race"),
    "misaligned_matrix": ("found", "found", "found"),
    "product_of_half_a_warp": ("found", "found", "found"),
    "misaligned": ("unnoticed", "alignment", "unnoticed"),
    "two_blocks_one_address": ("unnoticed", "unnoticed", "race"),
    "missing_atomic": ("unnoticed", "unnoticed", "race"),
    "missing_event": ("nan", "nan", "nan"),
    "host_pointer": ("found", "found", "found"),
    "too_much_shared": ("found", "found", "found"),
    "host_touches_device": ("killed", "killed", "killed"),
    "none": ("unnoticed", "unnoticed", "unnoticed"),
}


@functools.cache
def sanitizer() -> int:
    """0 plain, 1 address and undefined, 2 thread."""
    libraries = subprocess.run(
        ["ldd", BUILD / "plm_cuda_faults"], capture_output=True, text=True, check=True
    ).stdout
    if "libtsan" in libraries:
        return 2
    return 1 if "libasan" in libraries else 0


def run(program: str, *words: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0", "LD_PRELOAD": ""}
    # TSan does not stand much randomisation.
    fixed_addresses = ["setarch", platform.machine(), "-R"] if sanitizer() == 2 else []
    return subprocess.run(
        [*fixed_addresses, BUILD / program, *words],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )


def verdict(done: subprocess.CompletedProcess) -> str:
    if done.returncode == -signal.SIGSEGV or "SEGV" in done.stderr:
        return "killed"
    if "AddressSanitizer" in done.stderr or "out of bounds for type" in done.stderr:
        return "bounds"
    if "misaligned address" in done.stderr:
        return "alignment"
    if "ThreadSanitizer: data race" in done.stderr:
        return "race"
    assert done.returncode == 0, done.stderr
    return done.stdout.partition(":")[0].strip()


@pytest.mark.parametrize("program", ["plm_cuda_features", "plm_cuda_ptx"])
def test_features(program, order):
    done = run(program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ThreadSanitizer" not in done.stderr, done.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault, order):
    done = run("plm_cuda_faults", fault)
    assert verdict(done) == FAULTS[fault][sanitizer()], done.stdout + done.stderr
    if verdict(done) == "race":
        # One of the two accesses may be the emulator's, where it copies for the kernel.
        assert re.search(rf"#\d+ (\S+ in )?plmcore::cuda::{fault}\(.*faults\.cu:\d+", done.stderr), (
            "the report names the kernel and its line"
        )


def test_every_fault_is_expected():
    assert set(run("plm_cuda_faults", "--list").stdout.split()) == set(FAULTS)
