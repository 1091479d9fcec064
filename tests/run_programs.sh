#!/usr/bin/env bash
# run_programs.sh FOLDER [RUNNER] - runs the C tests of a build for another system, test_* in FOLDER/tests, and smoke tests of its program
# with files of this folder. RUNNER runs a program of that system (qemu-aarch64-static, wine); `native`: they run here. Called by
# ./run test-wheel, and by .github/workflows/wheels.yml on the system itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$1 runner=${2:-native} suffix='' passed=0 failed=()
log=$folder/tests.log temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
[ ! -e "$folder/warpfst.exe" ] || suffix=.exe
[ "$runner" != native ] || runner=
export QEMU_LD_PREFIX=${QEMU_LD_PREFIX:-/usr/aarch64-linux-gnu} WINEDEBUG=-all WINEPATH=$folder TMPDIR=$temporary
: >"$log"
run_one() { # NAME COMMAND...
  printf '== %s\n' "$1" >>"$log"
  if timeout 900 $runner "${@:2}" >>"$log" 2>&1 </dev/null; then passed=$((passed + 1)); else failed+=("$1"); fi
}
for program in "$folder"/tests/test_*"$suffix"; do
  [ -x "$program" ] && [ -f "$program" ] || continue
  case $(basename "$program" "$suffix") in *.*) continue ;; esac
  run_one "$(basename "$program" "$suffix")" "$program"
done

# The program: a graph, decoded, written and read again, with names that are not ASCII and lines that end in \r\n.
program=$folder/warpfst$suffix
run_one version "$program" version
run_one help "$program" decode --help
printf '%d passed, %d failed\n' "$passed" "${#failed[@]}"
[ ${#failed[@]} = 0 ] || { printf 'failed: %s (%s)\n' "${failed[*]}" "$log"; exit 1; }
