# common.sh - functions that the verbs of ./run share: messages, builds, counts of tests. Sourced by ./run in the repository's root.
# shellcheck shell=bash
jobs=$(nproc)

say() { printf '\n== %s\n' "$*" >&2; }

build() { # PRESET [TARGET...]
  local preset=$1 log=build/$1.log
  shift
  cmake --preset "$preset" -Wno-dev >"$log" || { cat "$log"; return 1; }
  say "compiling; $(sed -n 's/^-- \(GPU backend\)/\1/p' "$log")"
  cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"} >>"$log" || { tail -50 "$log"; return 1; }
}

# Numbers of tests. run_ctest, run_pytest and the verbs add to them.
passed=0 failed=0 skipped=0

# Prints the last line of test and test-gpu. Fails if a test failed.
print_counts() {
  printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  [ "$failed" = 0 ]
}

run_ctest() { # PRESET [CTEST ARGUMENTS...]
  local preset=$1 log=build/$1.ctest.log total bad skip
  shift
  ctest --preset "$preset" -j "$jobs" "$@" 2>&1 | tee "$log" || true
  total=$(sed -n 's/.*tests failed out of \([0-9]*\).*/\1/p' "$log" | tail -1)
  bad=$(sed -n 's/.* \([0-9]*\) tests failed out of.*/\1/p' "$log" | tail -1)
  [ -n "$total" ] || { echo "ctest did not finish"; exit 1; }
  skip=$(grep -c '^[[:space:]]*[0-9]* - .*(Skipped)$' "$log" || true)
  passed=$((passed + total - bad - skip)) failed=$((failed + bad)) skipped=$((skipped + skip))
  print_skips "$log" "build/$preset/Testing/Temporary/LastTest.log"
}

# Prints the tests that ctest's summary says were skipped, each with the last line of its output, which is the reason.
print_skips() { # SUMMARY OUTPUTS
  awk 'FNR == NR { if ($NF == "(Skipped)") skipped[$(NF - 1)] = 1; next }
    $2 == "Test:" { name = $NF } /^<end of output>$/ && name in skipped { print "skipped: " name ": " last } NF { last = $0 }' "$1" "$2"
}

run_pytest() { # ENVIRONMENT [PYTEST ARGUMENTS...]
  local env=$1 log=$1.log
  shift
  "$env/bin/python" -m pytest "$@" 2>&1 | tee "$log" || true
  count() { sed -n "\$s/.*\b\([0-9][0-9]*\) $1.*/\1/p" "$log" | grep . || echo 0; }
  [ "$(count passed)" != 0 ] || { echo 'pytest did not finish'; exit 1; }
  passed=$((passed + $(count passed)))
  failed=$((failed + $(count failed) + $(count error)))
  skipped=$((skipped + $(count skipped)))
}
