# python.sh - the Python package: its tests, and the verb docs of ./run. Sourced by ./run.
# shellcheck shell=bash

# Installs the package as users get it into build/python, with the packages of its tests. Builds a source distribution, and
# from its files alone a wheel with the right platform tag. Runs `pip install .` in a fresh environment. Wheel and
# installation share their object files: without build isolation, because scikit-build-core deletes them when it runs from
# another folder. The sdist is made with isolation, so are the packages of ./run test-bare.
install_package() {
  local env=build/python log=build/python.build.log source
  rm -rf "$env" build/dist build/sdist
  install_python "$env" -r tests/python/requirements.txt
  "$env/bin/python" -m build --sdist --outdir build/dist . >"$log" 2>&1 || { tail -50 "$log"; return 1; }
  mkdir -p build/sdist && tar -xzf build/dist/*.tar.gz -C build/sdist
  source=$(echo build/sdist/*)
  # Set for both `build` and pip, because pip before 23.1 has no option -C. With -O1 compiling takes half the time.
  export SKBUILD_CMAKE_DEFINE='WARPFST_WERROR=ON;CMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG' SKBUILD_BUILD_DIR="$PWD/build/sdist/objects"
  build_wheel "$env" build/dist auto --no-isolation "$source" >>"$log" 2>&1 || { tail -50 "$log"; return 1; }
  ls -sh build/dist
  announce "the Python package into $env: $source"
  (cd "$source" && "../../../$env/bin/pip" --quiet --disable-pip-version-check install --no-deps --no-build-isolation .)
  unset SKBUILD_CMAKE_DEFINE SKBUILD_BUILD_DIR
}

# Runs the tests against the installed package, and builds the documentation.
test_python() {
  local env=build/python
  install_package
  run_pytest "$env" --ignore=tests/python/test_gpu.py --ignore=tests/python/test_torch.py \
    --ignore=tests/python/test_pipeline.py tests/python
  test_python_torch
  say 'documentation'
  install_python "$env" -r docs/requirements.txt
  if make_docs "$env"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# Tests warpfst.torch and examples/pipeline with the distribution's torch, which comes without CUDA (PyPI's torch
# downloads 3 GB of it). It needs the distribution's Python, so the wheel is also tested with a second Python.
test_python_torch() {
  local env=build/pytorch
  if ! apt-cache show python3-torch >/dev/null 2>&1; then
    say 'no package python3-torch: warpfst.torch and examples/pipeline are not tested'
    skipped=$((skipped + 1))
    return
  fi
  rm -rf "$env" && /usr/bin/python3 -m venv --system-site-packages "$env"
  grep -E '^(kaldi-native-fbank|onnx|onnxruntime|pytest|soundfile)==' tests/python/requirements.txt >"$env/requirements.txt"
  install_python "$env" 'numpy<2' -r "$env/requirements.txt" # the distribution's torch was built with numpy 1
  install_python "$env" --no-deps build/dist/*.whl
  run_pytest "$env" tests/python/test_torch.py tests/python/test_pipeline.py
}

# Builds a wheel into FOLDER. auditwheel replaces its platform tag "linux" by one with a glibc version: the oldest that its
# symbols allow (PLATFORM "auto"), or PLATFORM's; it is an error if the symbols need a newer one.
build_wheel() { # ENVIRONMENT FOLDER PLATFORM [ARGUMENTS OF build...]
  local env=$1 folder=$2 platform=$3
  shift 3
  rm -rf "$folder/untagged"
  "$env/bin/python" -m build --wheel --outdir "$folder/untagged" "$@"
  PATH="$PWD/$env/bin:$PATH" "$env/bin/auditwheel" repair --plat "$platform" -w "$folder" "$folder"/untagged/*.whl
  rm -r "$folder/untagged"
}

# Builds the site from docs/, the installed package and bench/figures. Fails if a link is broken or a page is missing
# in mkdocs.yml. ENVIRONMENT needs the packages of docs/requirements.txt.
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
