#!/usr/bin/env bash
# tools/lint.sh [FILE...] - runs clang-tidy with the checks of .clang-tidy on the files, by default on all of src/ and cli/.
# Needs clang-tidy and a configured build (for compile_commands.json); BUILD=build/release by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${BUILD:-build/release}
command -v clang-tidy > /dev/null || { echo "clang-tidy is not installed (apt-get install clang-tidy)" >&2; exit 2; }
[ -f "$build/compile_commands.json" ] || cmake --preset release > /dev/null
[ -e "$build/generated/build_id.h" ] || cmake --build "$build" --target warpfst_build_id > /dev/null
files=("$@")
[ $# -gt 0 ] || mapfile -t files < <(find src cli -name '*.c' | sort)
failed=0
while read -r status _; do
  [ "$status" = 0 ] || failed=$((failed + 1))
done < <(printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c '
  out=$(clang-tidy --quiet -p "$1" "$2" 2> /dev/null) && code=0 || code=1
  [ -z "$out" ] || printf "%s\n" "$out" >&2
  echo "$code $2"' _ "$build" {})
echo "${#files[@]} files, $failed with findings"
[ "$failed" = 0 ]
