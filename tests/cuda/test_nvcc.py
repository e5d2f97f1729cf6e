"""The plug-in as nvcc built it (PLM_CUDA_LIBRARY names it): its machine code, what it links to, and its
answer without a GPU.

Needs no GPU: registers, spills and instructions are read from the SASS by cuobjdump. They say nothing about
speed.
"""

import collections
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

LIBRARY = os.environ.get("PLM_CUDA_LIBRARY", "")
pytestmark = [
    pytest.mark.cuda_nvcc,
    pytest.mark.skipif(not LIBRARY, reason="PLM_CUDA_LIBRARY does not name a plug-in built by nvcc"),
]

# PLM_CUDA_ARCHITECTURES: those of a build for fewer.
ARCHITECTURES = set(os.environ.get("PLM_CUDA_ARCHITECTURES", "sm_80 sm_86 sm_89 sm_90 sm_100 sm_120").split())
# Kernel -> the registers of a thread, at most. 128 threads of up to 96 fill an SM (65,536) more than half: 5
# blocks of 4 warps; of row kernels by block, which have up to 512 threads, two blocks fit.
REGISTERS = {
    "rows_by_warp": 104,
    "rows_by_block": 56,
    "norm_grad_held": 128,
    "norm_grad_columns": 56,
    "cross_entropy_total": 48,
    "best_of_tile": 104,
    "best_by_rounds": 48,
    "merge_beams": 64,
    "quantized_columns": 96,
    "embedding_quantized_rows": 48,
    "sum_sorted_pieces": 48,
    "join_sorted_pieces": 48,
    "sort_make_keys": 48,
    "sort_count": 48,
    "sort_place": 48,
    "scan_in_place": 48,
    "pick_count": 48,
    "pick_put": 48,
    "merge_places": 48,
    "merge_values": 48,
    "place_given_rows": 48,
    "check_row_order": 48,
    "report_bad_row": 48,
    "step_flat": 64,
    "step_rows": 64,
    "square_sums": 64,
    "step_rate": 48,
    "step_elements": 64,
    "adafactor_columns": 48,
    "adafactor_factors": 48,
    "list_squares": 64,
    "list_norm": 48,
    "clip_scale_of": 48,
    "recurrent_cells": 48,
    "gru_bias_columns": 48,
    "conv_windows": 48,
    "conv_weight": 48,
    "conv_bias_columns": 48,
    "linear_finish": 48,
    "linear_grad_columns": 56,
    "add_chunks": 40,
    "elementwise_flat": 48,
    "elementwise_axes": 48,
    "arange_count": 48,
    "one_hot_ones": 48,
    "move_packs": 48,
    "rel_shift_rows": 48,
    "take_indexed": 48,
    "add_indexed": 48,
    "report_bad": 48,
    "uniform_draw": 48,
    "normal_draw": 48,
    "rng_advance_pair": 48,
    "dropout_bits": 48,
    "dropout_apply": 48,
    "dropout_locked": 48,
    "sum_rows_by_warp": 64,
    "sum_rows_by_block": 64,
    "sum_columns": 56,
    "sum_chunks": 48,
    "extremum_of_rows": 48,
    "extremum_of_columns": 48,
    "attention_check": 48,
    "attention_forward": 200,
    "attention_weights": 128,
    "attention_delta": 48,
    "attention_grad_queries": 255,
    "attention_grad_keys": 255,
    "attention_grad_bias": 200,
    "attention_mma": 255,
    "attention_grad_queries_mma": 255,
    "attention_grad_keys_mma": 255,
    "attention_decode": 96,
    "attention_decode_join": 48,
    "cumsum_rows": 48,
    "cumsum_columns": 48,
}
# Kernel -> a part of the mangled name -> the registers of such an instantiation.
FEWER = {
    "attention_mma": {"Li32E": 128, "Li64E": 128, "Li96E": 200, "Li128E": 200},
    "attention_forward": {"IfE": 168},
    "attention_grad_queries": {"IfE": 168},
    "attention_grad_keys": {"IfE": 168},
    "attention_grad_bias": {"IfE": 168},
}
# (architecture, kernel, part of the name) -> registers, where a compiler for later GPUs needs more.
EXCEPTIONS = {
    ("sm_90", "attention_mma", "Li64E"): 168,
    ("sm_100", "attention_mma", "Li64E"): 168,
    ("sm_120", "attention_mma", "Li64E"): 168,
    ("sm_100", "attention_mma", "Li128E"): 224,
    ("sm_120", "attention_mma", "Li128E"): 224,
}
# Kernel -> how often an instruction must be there: tensor cores, their operands, copies of 16 bytes.
COUNTS = {
    "attention_mma": {"HMMA.16816": 32, "LDGSTS.*128": 8, "LDSM": 16, "MUFU.EX2": 16},
    "attention_grad_queries_mma": {"HMMA.16816": 32, "LDGSTS.*128": 8, "LDSM": 16, "MUFU.EX2": 8},
    "attention_grad_keys_mma": {"HMMA.16816": 32, "LDGSTS.*128": 8, "LDSM": 16, "MUFU.EX2": 8},
    "attention_forward": {"LDS.128": 4},
    "attention_grad_queries": {"LDS.128": 4},
    "attention_grad_keys": {"LDS.128": 4},
    "attention_decode": {"LDG.E.128": 4, "SHFL.BFLY": 4},
}
MOST_ATTENTION = 48  # instantiations of attention's kernels for one architecture
# Kernel -> instructions that must be there: 16-byte loads and stores in the kernels for packs, shuffles in
# the reductions, barriers where shared memory is used.
INSTRUCTIONS = {
    "rows_by_warp": {"LDG.E.128", "SHFL.BFLY"},
    "rows_by_block": {"SHFL.BFLY", "BAR.SYNC"},
    "norm_grad_held": {"SHFL.BFLY", "BAR.SYNC"},
    "norm_grad_columns": {"BAR.SYNC"},
    "add_chunks": {"BAR.SYNC"},
    "step_flat": {"LDG.E", "STG.E"},
    "quantized_columns": {"IDP"},
    "best_of_tile": {"SHFL.BFLY", "BAR.SYNC"},
    "sort_place": {"MATCH.ANY"},
    "linear_grad_columns": {"BAR.SYNC"},
}


def cuobjdump(*options: str) -> str:
    tool = shutil.which("cuobjdump")
    if not tool:  # the PyPI package has it beside nvcc
        import nvidia

        tool = next(p for root in nvidia.__path__ for p in pathlib.Path(root).glob("*/bin/cuobjdump"))
    return subprocess.run([tool, *options, LIBRARY], capture_output=True, text=True, check=True).stdout


def base(function: str) -> str | None:
    """The kernel of a mangled name: ..._18layer_norm_by_warpI..."""
    found = [k for k in REGISTERS if re.search(rf"{len(k)}{k}(I|E)", function)]
    return max(found, key=len) if found else None


@functools.cache
def usage() -> list[tuple[str, str, dict[str, int]]]:
    """(architecture, function, resources) for every kernel."""
    found, architecture = [], ""
    for line in cuobjdump("-res-usage").splitlines():
        if m := re.search(r"arch = (sm_\w+)", line):
            architecture = m.group(1)
        elif m := re.match(r"\s*Function (\S+):", line):
            function = m.group(1)
        elif "REG:" in line:
            found.append((architecture, function, {k: int(v) for k, v in re.findall(r"(\w+):(\d+)", line)}))
    return found


def test_every_kernel_is_there_for_every_architecture():
    assert {a for a, _, _ in usage()} == ARCHITECTURES
    for architecture in ARCHITECTURES:
        assert {base(f) for a, f, _ in usage() if a == architecture} == set(REGISTERS), architecture


def test_registers_and_spills():
    for architecture, function, r in usage():
        kernel = base(function)
        parts = {part: n for part, n in FEWER.get(kernel, {}).items() if part in function}
        bars = [EXCEPTIONS.get((architecture, kernel, part), n) for part, n in parts.items()]
        bar = min([REGISTERS[kernel], *bars])
        assert r["REG"] <= bar, (
            f"{kernel} on {architecture}: {r['REG']} registers, the bar is {bar} ({function})"
        )
        assert r["STACK"] == 0 and r["LOCAL"] == 0, f"{kernel} on {architecture} spills: {r} ({function})"


@functools.cache
def instructions() -> dict[tuple[str, str], collections.Counter[str]]:
    found: dict[tuple[str, str], collections.Counter[str]] = {}
    architecture = function = ""
    for line in cuobjdump("-sass").splitlines():
        if m := re.search(r"arch = (sm_\w+)", line):
            architecture = m.group(1)
        elif m := re.match(r"\s*Function : (\S+)", line):
            function = m.group(1)
        elif m := re.match(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]+)", line):
            found.setdefault((architecture, function), collections.Counter())[m.group(1)] += 1
    return found


@pytest.mark.parametrize("kernel", INSTRUCTIONS)
def test_instructions(kernel):
    functions = {key: ops for key, ops in instructions().items() if base(key[1]) == kernel}
    assert len(functions) >= len(ARCHITECTURES)
    for (architecture, function), ops in functions.items():
        for wanted in INSTRUCTIONS[kernel]:
            assert any(op.startswith(wanted) for op in ops), (
                f"{kernel} on {architecture} has no {wanted} ({function})"
            )
        assert not any(op.startswith(("LDL", "STL")) for op in ops), (
            f"{kernel} on {architecture} uses local memory ({function})"
        )


@pytest.mark.parametrize("kernel", COUNTS)
def test_counts(kernel):
    functions = {key: ops for key, ops in instructions().items() if base(key[1]) == kernel}
    assert len(functions) >= len(ARCHITECTURES)
    for (architecture, function), ops in functions.items():
        for wanted, least in COUNTS[kernel].items():
            n = sum(count for op, count in ops.items() if re.match(wanted, op))
            assert n >= least, f"{kernel} on {architecture}: {n} of {wanted}, {least} wanted ({function})"


def test_attention_has_few_instantiations():
    found = collections.Counter(a for a, f, _ in usage() if base(f).startswith("attention"))
    assert max(found.values()) <= MOST_ATTENTION, found


def test_links_to_cublaslt_and_not_to_the_driver():
    dynamic = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"NEEDED.*\[(.+)\]", dynamic))
    assert "libcublasLt.so.13" in needed
    assert not {n for n in needed if n.startswith(("libcuda.", "libcudart.", "libplmcore."))}, needed
    assert re.search(r"RUNPATH.*\[\$ORIGIN/\.\./\.\./nvidia/cu13/lib\]", dynamic)
    exported = subprocess.run(
        ["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True
    ).stdout.split()
    assert exported[2::3] == ["plmcore_plugin"], exported


def answer(**environment: str) -> str:
    import plmcore

    environment = (
        os.environ
        | {"PLMCORE_CUDA_PLUGIN": LIBRARY, "PYTHONPATH": str(pathlib.Path(plmcore.__file__).parent.parent)}
        | environment
    )
    program = "import plmcore as plm; print(plm.cuda.problem())"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    ).stdout.strip()


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so():
    import nvidia

    libraries = next(str(p) for root in nvidia.__path__ for p in pathlib.Path(root).glob("cu13/lib"))
    assert re.fullmatch(
        r"the cuda device cannot be used: no GPU answers \(.*\); it needs an NVIDIA GPU and its driver",
        answer(LD_LIBRARY_PATH=libraries),
    )


def test_without_cublas_it_names_the_library():
    if "libcublasLt" in answer(LD_LIBRARY_PATH=""):
        assert (
            "the cuda plug-in cannot be opened (libcublasLt.so.13: cannot open shared object file"
            in answer(LD_LIBRARY_PATH="")
        )
        assert "pip install 'plmcore[cuda13]'" in answer(LD_LIBRARY_PATH="")
    else:
        pytest.skip("cuBLASLt is on the system's library path")
