"""The user's script does at run time what its types say; the types themselves are checked by
.ci/check_types.py.
"""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def test_it_runs(tmp_path):
    code = (
        f"import sys, pathlib; sys.path.insert(0, {str(HERE)!r}); import user_script; "
        f"user_script.main(pathlib.Path({str(tmp_path)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
