"""The step runner of the gate, .ci/steps.sh: a step fails when any command in it fails."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

STEPS = pathlib.Path(__file__).parent.parent / ".ci/steps.sh"
BASH = shutil.which("bash", path=os.defpath)
pytestmark = pytest.mark.skipif(not BASH, reason="there is no bash")


def run(tmp_path, script, **environment):
    """A script of steps, as .ci/run is one. PATH is the system's, also where the tests run without it."""
    return subprocess.run(
        [BASH, "-c", f"set -euo pipefail\n. '{STEPS}'\n{script}\nsummary"],
        capture_output=True,
        text=True,
        env={"PATH": os.defpath, "CI_DIR": str(tmp_path)} | environment,
    )


FAILING = {
    "one command": "work() { false; }",
    "the first of several": "work() { false; echo went on; }",
    "one in the middle": "work() { echo begun; (exit 3); echo went on; }",
    "the last": "work() { echo begun; false; }",
    "the front of a pipe": "work() { false | cat; echo went on; }",
    "a function within": "inner() { false; echo went on; }; work() { inner; echo went on; }",
    "a function within a function within": "a() { false; true; }; b() { a; true; }; work() { b; true; }",
    "one round of a loop": "work() { local i; for i in 1 2 3; do [[ $i != 1 ]]; done; }",
    "a size beyond its limit": "work() { local size=16; ((size <= 15)); echo went on; }",
    "a command in a substitution": "inner() { false; echo text; }; work() { local x; "
    "x=$(inner); echo went on; }",
    "a variable that is not set": "work() { echo $nothing; echo went on; }",
    "exit": "work() { exit 7; }",
    "no such command": "work() { plmcore-has-no-such-command; echo went on; }",
}


@pytest.mark.parametrize("name", FAILING)
def test_a_step_with_a_failing_command_fails(tmp_path, name):
    r = run(tmp_path, f"{FAILING[name]}\nstep 'the work' work\nstep 'the next' true")
    assert r.returncode == 1, r.stdout
    assert "FAILED" in r.stdout and "the work" in r.stdout
    assert "ok," not in r.stdout and "passed" not in r.stdout and "the next" not in r.stdout
    assert "went on" not in r.stdout  # the end of the log is shown


def test_the_failing_command_is_named(tmp_path):
    r = run(tmp_path, "work() { echo begun; ls /no/such/folder; echo went on; }\nstep 'the work' work")
    assert "ls /no/such/folder" in r.stdout


def test_a_program_as_a_step(tmp_path):
    assert run(tmp_path, "step fails bash -c 'exit 4'").stdout.count("exit status 4)") == 1
    assert run(tmp_path, "step passes bash -c 'exit 0'").returncode == 0


PASSING = {
    "commands": "work() { echo one; echo two; }",
    "a status that is tested": "work() { false || true; if false; then exit 1; fi; ! false; }",
    "a pipe": "work() { printf 'b\\na\\n' | sort | cat; }",
    "functions within": "inner() { ls / >/dev/null; }; work() { inner; local x; x=$(inner); }",
}


@pytest.mark.parametrize("name", PASSING)
def test_a_step_without_failing_commands_passes(tmp_path, name):
    r = run(tmp_path, f"{PASSING[name]}\nstep --show 'the work' work\nstep 'the next' true")
    assert r.returncode == 0, r.stdout + r.stderr
    assert "All 2 steps passed" in r.stdout and "FAILED" not in r.stdout


def test_the_script_itself_stops_at_errors_after_a_step(tmp_path):
    r = run(tmp_path, "step fine true\nfalse\nstep 'the next' true")
    assert r.returncode == 1 and "the next" not in r.stdout


def test_steps_are_chosen_by_name(tmp_path):
    script = "step 'one that fails' false\nstep 'one that passes' true"
    r = run(tmp_path, script, CI_ONLY="passes|other")
    assert r.returncode == 0 and "All 1 steps passed" in r.stdout and "that fails" not in r.stdout
    assert run(tmp_path, script, CI_ONLY="fails").returncode == 1


def test_a_choice_that_fits_no_step_fails(tmp_path):
    r = run(tmp_path, "step one true", CI_ONLY="TSan")
    assert r.returncode == 1 and "TSan" in r.stderr and "passed" not in r.stdout


@pytest.mark.parametrize(
    "script", ["step one true || true", "if step one true; then true; fi", "! step one true"]
)
def test_a_step_whose_status_is_tested_is_refused(tmp_path, script):
    r = run(tmp_path, script)
    assert r.returncode == 1 and "step 'one'" in r.stderr


def test_a_block_that_the_readme_has_not_fails(tmp_path):
    checks = f". '{STEPS.with_name('checks.sh')}'\nBASE_PYTHON='{sys.executable}'\n"
    r = run(tmp_path, checks + "step 'the block' readme no-such-block")
    assert r.returncode == 1 and "README.md has no command 'no-such-block'" in r.stdout


# Forms in which bash throws a status away: `mapfile < <(command)`, `local x=$(command)`, and their like.
LOST = re.compile(r"<\s<\(|\b(local|export|declare|readonly)\s[^#\n]*=[\"']?\$\((?!\()")


@pytest.mark.parametrize(
    "script", [p.name for p in sorted(STEPS.parent.iterdir()) if p.suffix in ("", ".sh")]
)
def test_no_script_throws_a_status_away(script):
    text = (STEPS.parent / script).read_text()
    assert not [line for line in text.splitlines() if LOST.search(line)]
    assert "set -e" in text or script in ("checks.sh", "cuda-steps.sh")  # sourced after steps.sh or .ci/cuda
