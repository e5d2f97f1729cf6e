# Shared by .ci/cuda and .ci/cuda-nightly: the emulated plug-in with a sanitizer, and tests against it.
OUT=${OUT:-$PWD/build}

# build_emulated plain|address,undefined|thread
build_emulated() {
  local folder=$OUT/cuda-${1%%,*} sanitize=${1/plain/}
  echo "== the emulated plug-in: $1"
  mkdir -p "$OUT"
  cmake -S cuda -B "$folder" -G Ninja -DPLM_CUDA_EMU=ON -DPLM_SANITIZE="$sanitize" -DPython_EXECUTABLE="$(command -v python)" >"$folder.log" 2>&1 || { cat "$folder.log"; return 1; }
  cmake --build "$folder" >"$folder.log" 2>&1 || { cat "$folder.log"; return 1; }
}

# test_emulated SANITIZER TESTS...: Python itself is not instrumented, so the sanitizer's library must come first. float16
# takes the way of bfloat16, so sanitizers look at one of them.
test_emulated() {
  local kind=$1 folder=$OUT/cuda-${1%%,*} preload=() start=() dtypes="float64 float32 bfloat16" workers=()
  shift
  echo "== tests: $kind"
  library() { g++ -print-file-name="$1"; }
  python -c 'import xdist' 2>/dev/null && workers=(-n 2)
  case $kind in
    plain) dtypes="float64 float32 bfloat16 float16" ;;
    address*) preload=("$(library libasan.so)" "$(library libubsan.so)" "$(library libstdc++.so)") ;;
    thread) preload=("$(library libtsan.so)" "$(library libstdc++.so)") start=(setarch -R) workers=() ;;  # TSan does not stand much randomisation of addresses
  esac
  "${start[@]}" env PLMCORE_CUDA_PLUGIN="$folder/emu/libplmcore_cuda_emu.so" LD_PRELOAD="${preload[*]}" PLM_CUDA_DTYPES="$dtypes" \
    ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=halt_on_error=1 OPENBLAS_NUM_THREADS=1 PLMCORE_NUM_THREADS=1 \
    python -m pytest -q -p no:cacheprovider "${workers[@]}" "$@"
}
