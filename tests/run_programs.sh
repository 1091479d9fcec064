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
command -v timeout >/dev/null && limit='timeout 1800' || limit= # macOS has none
export QEMU_LD_PREFIX=${QEMU_LD_PREFIX:-/usr/aarch64-linux-gnu} WINEDEBUG=-all WINEPATH=$folder TMPDIR=$temporary
: >"$log"
is_program() { [ "${1#"$folder"}" != "$1" ]; } # one of the build
run_one() { # NAME COMMAND...
  printf '== %s\n' "$1" >>"$log"
  # shellcheck disable=SC2046,SC2086
  if $limit $(is_program "$2" && echo $runner) "${@:2}" >>"$log" 2>&1 </dev/null; then passed=$((passed + 1)); else failed+=("$1"); fi
}
for program in "$folder"/tests/test_*"$suffix"; do
  if [ ! -x "$program" ] || [ ! -f "$program" ]; then continue; fi
  case $(basename "$program" "$suffix") in *.*) continue ;; esac
  run_one "$(basename "$program" "$suffix")" "$program"
done

# The program: results are the same with names that are not ASCII and lines that end in \r\n: those of
# the program on Linux (tests/data/run_programs.txt).
program=$folder/warpfst$suffix data=examples/ctc
odd=$temporary/$'\xc3\xa9\xe4\xbd\xa0'
run_one version "$program" version
run_one help "$program" decode --help
mkdir -p "$odd" "$temporary/scores"
find $data/logp_phone -name '*.npy' | sort | sed -n 1,6p | xargs -I{} cp {} "$temporary/scores/"
for name in tokens lexicon; do
  sed 's/$/\r/' $data/${name}_phone.txt >"$odd/$name.txt"
done
run_one mkgraph "$program" mkgraph ctc --tokens=$data/tokens_phone.txt --lexicon=$data/lexicon_phone.txt --lm=$data/lm3.arpa.gz -o "$temporary/g.wfst"
run_one mkgraph_odd "$program" mkgraph ctc "--tokens=$odd/tokens.txt" "--lexicon=$odd/lexicon.txt" --lm=$data/lm3.arpa.gz -o "$odd/g.wfst"
run_one decode "$program" decode "$odd/g.wfst" "$temporary/scores" -o "$odd/text"
run_one same_text cmp "$odd/text" tests/data/run_programs.txt
run_one lattice "$program" decode "$odd/g.wfst" "$temporary/scores" --lattice="$odd/lat.gz" -o "$odd/text2"
run_one nbest "$program" lattice nbest "$odd/lat.gz" -n 2 -o "$odd/nbest"

printf '%d passed, %d failed\n' "$passed" "${#failed[@]}"
[ ${#failed[@]} = 0 ] || { printf 'failed: %s (%s)\n' "${failed[*]}" "$log"; exit 1; }
