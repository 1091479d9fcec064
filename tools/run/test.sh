# test.sh - verbs of ./run that test without a GPU: test, test-bare. Sourced by ./run.
# shellcheck shell=bash

do_test() {
  test_packages
  announce 'Python packages into build/python and build/pytorch, which are created anew for each test'
  start_python_tests
  start_bare_tests
  needs_test
  say 'building'
  SECONDS=0
  build test
  say "building under sanitizers ($SECONDS s so far)"
  build sanitize
  say "building the tests of threads under the thread sanitizer ($SECONDS s so far)"
  build threads
  say "tests ($SECONDS s so far)"
  run_ctest test
  say "tests under address and undefined-behaviour sanitizers ($SECONDS s so far)"
  run_ctest sanitize
  say "tests of threads under the thread sanitizer ($SECONDS s so far)"
  run_ctest threads
  say "compiling for aarch64 ($SECONDS s so far)"
  test_aarch64
  say "results of the Python package's tests, which ran in the background ($SECONDS s so far)"
  finish_python_tests
  say "results of README's commands in a bare system, which ran in the background ($SECONDS s so far)"
  finish_bare_tests
  print_counts
}

do_test_bare() {
  needs_test_bare
  tests/bare/test.sh all
}

# Compiles the library without the GPU backend for ARM machines such as Grace.
test_aarch64() {
  if ! need_wheel_tools; then
    echo 'compiling for aarch64: skipped, because ziglang could not be installed'
    skipped=$((skipped + 1))
  elif tests/compile_aarch64.sh build/wheels/env build/aarch64; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
}

# Starts the tests of the Python package in the background, because for half of their time they use one core or wait for
# the network. finish_python_tests prints their output.
start_python_tests() {
  (
    passed=0 failed=0 skipped=0 SECONDS=0
    test_python
    say "Python package: $SECONDS s"
    echo "$passed $failed $skipped" >build/python.counts
  ) >build/python.tests.log 2>&1 &
  python_tests=$!
}

finish_python_tests() {
  local counts=(0 1 0) # counts as one failure if the tests did not finish
  wait "$python_tests" && read -ra counts <build/python.counts
  cat build/python.tests.log
  passed=$((passed + counts[0])) failed=$((failed + counts[1])) skipped=$((skipped + counts[2]))
}

# Tries README's first commands in a bare Debian system, in the background, too: they use one core or wait for the
# network.
start_bare_tests() {
  nice tests/bare/test.sh >build/bare.log 2>&1 &
  bare_tests=$!
}

finish_bare_tests() {
  local counts
  wait "$bare_tests" || true
  cat build/bare.log
  read -ra counts < <(
    sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' build/bare.log
    echo 0 1 0
  )
  passed=$((passed + counts[0])) failed=$((failed + counts[1])) skipped=$((skipped + counts[2]))
}
