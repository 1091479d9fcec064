# test.sh - verbs of ./run that test without a GPU: test, test-more, test-bare, torture. Sourced by ./run.
# shellcheck shell=bash

do_test() {
  need_build
  need libcmocka-dev
  say 'compiling; the other packages are installed meanwhile'
  announce 'Python packages into build/python and build/pytorch, which are created anew for each test'
  SECONDS=0
  test_packages &
  installing=$!
  after_installing test_tools &
  local tools=$!
  # For half of their time these use one core or wait for the network.
  in_background python after_installing test_python
  in_background bare after_installing test_bare
  build test
  say "building under sanitizers ($SECONDS s so far)"
  build sanitize
  wait "$installing"
  wait "$tools"
  in_background aarch64 test_aarch64
  say "tests ($SECONDS s so far)"
  run_ctest test
  say "tests under address and undefined-behaviour sanitizers ($SECONDS s so far)"
  run_ctest sanitize
  finish aarch64 'compiling for aarch64'
  finish python "the Python package's tests"
  finish bare "README's commands in a bare system"
  say "all tests: $SECONDS s"
  print_counts
}

# Waits for do_test's Debian packages, then runs COMMAND. Called in the background.
after_installing() { # COMMAND...
  tail --pid="$installing" -f /dev/null
  "$@"
}

do_test_more() {
  needs_test_more
  SECONDS=0
  local preset
  for preset in more simt-sanitize threads; do
    build $preset
    run_ctest $preset
  done
  test_aarch64 all
  install_package
  run_pytest build/python -m more tests/python
  say "all tests: $SECONDS s"
  print_counts
}

do_test_bare() {
  needs_test_bare
  tests/bare/test.sh all
}

# A failure here is also a failure of the sample in ./run test, or should become one.
do_torture() { # [ARGUMENTS...]
  needs_torture
  local preset runs failed=0
  for preset in test:all sanitize:places; do
    runs=${preset#*:} preset=${preset%:*}
    build "$preset" warpfst_cli torture test_torture
    say "library calls, $preset build"
    WARPFST_TEST_SEEDS=12 ctest --preset "$preset" -R '^test_torture$' --verbose || failed=1
    say "commands, $preset build"
    python3 tests/torture/torture.py "build/$preset/warpfst" "build/$preset/tests/torture.so" --runs="$runs" "$@" || failed=1
  done
  return "$failed"
}

# Runs tests in the background. `finish` prints their output and counts them.
in_background() { # NAME COMMAND...
  local name=$1
  shift
  (
    passed=0 failed=0 skipped=0 SECONDS=0
    "$@"
    say "$name: $SECONDS s"
    echo "$passed $failed $skipped" >"build/$name.counts"
  ) >"build/$name.tests.log" 2>&1 &
  background[$name]=$!
}
declare -A background=()

finish() { # NAME WHAT
  local counts=(0 1 0) # counts as one failure if the tests did not finish
  say "results of $2, which ran in the background ($SECONDS s so far)"
  wait "${background[$1]}" && read -ra counts <"build/$1.counts"
  cat "build/$1.tests.log"
  add_counts "${counts[@]}"
}

add_counts() { passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3)); }

# Compiles for ARM machines such as Grace.
test_aarch64() { # [all]
  if ! need_wheel_tools; then
    echo 'compiling for aarch64: skipped, because ziglang could not be installed'
    add_counts 0 0 1
  elif tests/compile_aarch64.sh build/wheels/env build/aarch64 "$@"; then
    add_counts 1 0 0
  else
    add_counts 0 1 0
  fi
}

# Tries README's first commands in a bare Debian system.
test_bare() {
  local counts
  nice tests/bare/test.sh | tee build/bare.log || true
  read -ra counts < <(
    sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' build/bare.log
    echo 0 1 0
  )
  add_counts "${counts[@]}"
}
