# Step runner, sourced by the scripts of this folder: prints each step's duration, stops at the first failure with the end of its log.
# step NAME COMMAND...   the command's output goes to a log; --show before NAME also prints the log's last lines.
# CI_ONLY='TSan|OpenBLAS' .ci/nightly runs only the steps whose names match, in the environment that an earlier run left in CI_DIR.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CI_DIR=${CI_DIR:-$ROOT/build/ci}
LOGS=$CI_DIR/logs
mkdir -p "$LOGS"
cd "$ROOT"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1
export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1  # objects of one checkout serve the next, wherever it lies
STEP_COUNT=0
STEP_TABLE=()

step() {
  local show=0
  if [[ $1 == --show ]]; then show=1; shift; fi
  local name=$1; shift
  if [[ -n ${CI_ONLY:-} && ! $name =~ $CI_ONLY ]]; then return; fi
  STEP_COUNT=$((STEP_COUNT + 1))
  local log
  log=$LOGS/$(printf '%02d' $STEP_COUNT)-${name//[^a-zA-Z0-9]/-}.log
  printf '[%2d] %s ...\n' $STEP_COUNT "$name"
  local start=$SECONDS status tested
  # Not `( ... ) || status=$?`: where a status is tested, bash ignores `set -e`, also inside of functions, and only the last command's counts.
  set +e
  tested=$(set -e; false; echo yes)
  if [[ -n $tested ]]; then echo "step '$name': not in an if, and not before || or &&: it could pass by mistake" >&2; exit 1; fi
  (
    set -Eeuo pipefail
    shopt -s inherit_errexit  # the same inside of $(...)
    trap 'echo "---- exit status $? of: $BASH_COMMAND (${BASH_SOURCE[0]}, line $LINENO)" >&2' ERR
    "$@"
  ) >"$log" 2>&1 </dev/null
  status=$?
  set -e
  local took=$((SECONDS - start))
  STEP_TABLE+=("$(printf '%5d s  %s' $took "$name")")
  if ((status != 0)); then
    echo "---- the end of $log"
    tail -n 80 "$log"
    echo "---- FAILED after ${took} s: $name (exit status $status)"
    exit 1
  fi
  if ((show)); then tail -n 15 "$log" | sed 's/^/     /'; fi
  printf '     ok, %d s\n' $took
}

summary() {
  ((STEP_COUNT > 0)) || { echo "no step is named like CI_ONLY='${CI_ONLY:-}'" >&2; exit 1; }
  echo
  echo "All $STEP_COUNT steps passed in $((SECONDS / 60)) min $((SECONDS % 60)) s:"
  printf '%s\n' "${STEP_TABLE[@]}"
}

# The first Python of at least 3.11.
find_python() {
  local p
  for p in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python; do
    if [[ -n $p ]] && command -v "$p" >/dev/null && "$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$p"
      return
    fi
  done
  echo "Python 3.11 or later is needed" >&2
  return 1
}

# A Debian package that helps but is not needed.
apt_try() {
  if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" ||
      { DEBIAN_FRONTEND=noninteractive apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } || true
  fi
}

# make_venv DIR: an empty virtual environment. Debian keeps ensurepip in a package of its own.
make_venv() {
  rm -rf "$1"
  "$BASE_PYTHON" -m venv "$1" ||
    { apt_try python3-venv; "$BASE_PYTHON" -m venv "$1"; } ||
    { "$BASE_PYTHON" -m pip install virtualenv && "$BASE_PYTHON" -m virtualenv "$1"; }
}

# readme_command NAME: the shell block of README.md that follows <!-- command: NAME -->.
readme_command() {
  "$BASE_PYTHON" - "$1" <<'PY'
import re, sys
text = open("README.md", encoding="utf-8").read()
found = re.search(rf"<!-- command: {sys.argv[1]} -->\s*```sh\n(.*?)```", text, re.S)
sys.exit(f"README.md has no command '{sys.argv[1]}'") if not found else print(found[1])
PY
}

# requirements EXTRA: its packages, without plmcore itself, which would be built again.
requirements() {
  "$BASE_PYTHON" - "$1" <<'PY'
import sys, tomllib
extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]
print("\n".join(r for r in extras[sys.argv[1]] if not r.startswith("plmcore")))
PY
}
install_extra() {
  requirements "$1" >"$CI_DIR/$1.txt"
  pip install -r "$CI_DIR/$1.txt"
}
