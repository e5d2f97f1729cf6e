"""What `import plmcore` brings in."""

import subprocess
import sys


def test_numpy_and_nothing_heavier():
    code = "import sys; import plmcore; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if not name.startswith(("_", "sitecustomize"))}
    assert loaded - sys.stdlib_module_names <= {"numpy", "plmcore"}


def test_every_name_is_there():
    import plmcore as plm

    assert len(plm.__all__) == len(set(plm.__all__)) and dir(plm) == sorted(plm.__all__)
    for name in plm.__all__:
        assert getattr(plm, name) is not None, name
