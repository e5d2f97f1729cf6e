"""The types of the installed package as mypy and pyright read them: a user's script passes both in their
strict modes, and both report each of its mistakes. Run from anywhere; needs mypy and pyright in the
environment.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(__file__).parent.parent / "tests" / "typing"
PYRIGHT = {"typeCheckingMode": "strict", "reportUnusedExpression": False}


def mypy(folder: pathlib.Path, script: str) -> dict[int, str]:
    """line -> the first error that it has."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--cache-dir",
        "cache",
        "--config-file=",
        script,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"mypy failed: {done.stdout}{done.stderr}")
    found = re.findall(rf"^{script}:(\d+): error: (.*)$", done.stdout, re.M)
    if len(found) != done.stdout.count(" error: "):
        raise SystemExit(f"mypy reports errors outside the script:\n{done.stdout}")
    return {int(line): text for line, text in reversed(found)}


def pyright(folder: pathlib.Path, script: str) -> dict[int, str]:
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"pyright failed: {done.stdout}{done.stderr}")
    errors = [e for e in json.loads(done.stdout)["generalDiagnostics"] if e["severity"] == "error"]
    return {e["range"]["start"]["line"] + 1: e["message"].splitlines()[0] for e in reversed(errors)}


def main() -> None:
    problems: list[str] = []
    with (
        tempfile.TemporaryDirectory() as name
    ):  # away from the checkout: what is imported is what is installed
        folder = pathlib.Path(name)
        (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
        for script in ("user_script.py", "misuse.py"):
            shutil.copy(SCRIPTS / script, folder)
            lines = (folder / script).read_text().splitlines()
            wrong = {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}
            for check in (mypy, pyright):
                found = check(folder, script)
                print(f"{check.__name__}: {script}: {len(found)} lines with errors, {len(wrong)} wanted")
                problems += [
                    f"{check.__name__}: {script}:{i}: {found[i]}" for i in sorted(found.keys() - wrong)
                ]
                problems += [
                    f"{check.__name__}: {script}:{i}: not reported: {lines[i - 1]}"
                    for i in sorted(wrong - found.keys())
                ]
    if problems:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
