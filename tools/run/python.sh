# python.sh - the Python package: its tests, and the verbs wheel and docs of ./run. Sourced by ./run.
# shellcheck shell=bash

# The package as users get it: a source distribution; from what it holds alone, a wheel with the platform tag that it
# deserves, and `pip install .` in a fresh environment (which finds the wheel's objects made); the tests against what is
# installed; the documentation.
test_python() {
  local env=build/python log=build/python.build.log source
  rm -rf "$env" build/dist build/sdist
  install_python "$env" -r tests/python/requirements.txt
  "$env/bin/python" -m build --sdist --outdir build/dist . >"$log" 2>&1 || { tail -50 "$log"; return 1; }
  mkdir -p build/sdist && tar -xzf build/dist/*.tar.gz -C build/sdist
  source=$(echo build/sdist/*)
  # For `build` and for pip, of which those before 23.1 have no -C.
  export SKBUILD_CMAKE_DEFINE=WARPFST_WERROR=ON SKBUILD_BUILD_DIR="$PWD/build/sdist/objects"
  build_wheel "$env" build/dist auto "$source" >>"$log" 2>&1 || { tail -50 "$log"; return 1; }
  ls -sh build/dist
  (cd "$source" && install_python "../../../$env" --no-deps .)
  unset SKBUILD_CMAKE_DEFINE SKBUILD_BUILD_DIR
  run_pytest "$env" --ignore=tests/python/test_gpu.py --ignore=tests/python/test_torch.py tests/python
  test_python_torch
  say 'documentation'
  install_python "$env" -r docs/requirements.txt
  if make_docs "$env"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# warpfst.torch with the distribution's torch, which is for its Python and has no CUDA to download (PyPI's has 3 GB of
# it); so the wheel is tried with a second Python, too.
test_python_torch() {
  local env=build/pytorch
  if ! apt-cache show python3-torch >/dev/null 2>&1; then
    say 'no package python3-torch: warpfst.torch is not tested'
    skipped=$((skipped + 1))
    return
  fi
  rm -rf "$env" && /usr/bin/python3 -m venv --system-site-packages "$env"
  install_python "$env" "$(grep ^pytest== tests/python/requirements.txt)"
  install_python "$env" --no-deps build/dist/*.whl
  run_pytest "$env" tests/python/test_torch.py
}

# A wheel into FOLDER, tagged with a glibc (auditwheel) instead of plain linux: the oldest that its symbols need (auto),
# or PLATFORM's, if they need nothing newer.
build_wheel() { # ENVIRONMENT FOLDER PLATFORM [ARGUMENTS OF build...]
  local env=$1 folder=$2 platform=$3
  shift 3
  rm -rf "$folder/untagged"
  "$env/bin/python" -m build --wheel --outdir "$folder/untagged" "$@"
  PATH="$PWD/$env/bin:$PATH" "$env/bin/auditwheel" repair --plat "$platform" -w "$folder" "$folder"/untagged/*.whl
  rm -r "$folder/untagged"
}

# A wheel for glibc 2.17 and later: ziglang compiles and links the host's part, tools/install_cuda12.sh's toolkit the
# GPUs'. WARPFST_CUDA_ARCHS chooses other GPUs than a release has. Objects are kept in build/wheels/, so that a second
# try goes on where the first ended.
do_wheel() { # [cpu]
  local env=build/wheels/env kind=${1:-gpu} archs=${WARPFST_CUDA_ARCHS:-release} settings=()
  if [ "$kind" != cpu ] && [ "$(uname -m)" != x86_64 ]; then
    echo 'the GPU part is built on x86-64 alone; ./run wheel cpu'
    exit 1
  fi
  needs_wheel "$kind"
  tools/make_zig_cc.sh $env build/wheels/zig x86_64-linux-gnu.2.17
  settings=(CMAKE_C_COMPILER="$PWD/build/wheels/zig/cc"
    ZLIB_INCLUDE_DIR="$PWD/build/wheels/zig/include"
    ZLIB_LIBRARY="$(cc -print-file-name=libz.a)") # static: older systems have an older zlib
  if [ "$kind" != cpu ]; then
    settings+=(WARPFST_CUDA=ON WARPFST_CUDA_ARCHS="$archs" WARPFST_CUDA_COMPRESS=speed
      CMAKE_CUDA_COMPILER="$PWD/build/cuda12/bin/nvcc" CMAKE_CUDA_HOST_COMPILER="$(command -v g++)"
      CUDA_cudart_static_LIBRARY="$PWD/build/cuda12/lib64/libcudart_static.a")
  fi
  say "compiling the wheel, for $kind"
  SECONDS=0
  rm -f build/wheels/*.whl
  SKBUILD_BUILD_DIR="$PWD/build/wheels/$kind" \
    build_wheel $env build/wheels manylinux2014_x86_64 "${settings[@]/#/-Ccmake.define.}" .
  say "built in $SECONDS s"
  "$env/bin/python" tools/check_wheel.py --gpus="$([ "$kind" = cpu ] || echo "$archs")" build/wheels/*.whl
}

# The site from docs/, the installed package and bench/results.csv; fails where a link leads nowhere or a page is not in
# mkdocs.yml. The environment has docs/requirements.txt.
make_docs() { # ENVIRONMENT
  NO_MKDOCS_2_WARNING=1 "$1/bin/python" tools/build_docs.py build/docs
}

do_docs() { # [--serve]
  local env=build/docs/env
  needs_docs
  install_python "$env" '.[audio]'
  make_docs "$env"
  if [ "${1:-}" = --serve ]; then
    say 'http://localhost:8000 (Ctrl-C ends it)'
    "$env/bin/python" -m http.server --bind localhost --directory build/docs/site 8000
  fi
}
