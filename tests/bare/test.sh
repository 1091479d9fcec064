#!/usr/bin/env bash
# test.sh [all] - runs README.md's and docs/how-to/install.md's commands in fresh minimal Debian systems, so that nothing installed on this machine helps.
# `./run test` calls it without an argument: build, demo, installation. `./run test-bare` calls it with `all`, which adds the Debian package, every block
# marked `sh`, and the other verbs of ./run that need no GPU. The last line of output counts passed, failed and skipped tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/bare/machine.sh
passed=0 failed=0

# Prints the first block of PAGE that is marked `sh` and contains TEXT.
block() { # PAGE TEXT
  awk -v text="$2" '/^```sh$/ { block = ""; on = 1; next } /^```$/ { if (on && index(block, text)) { printf "%s", block; found = 1; exit } on = 0 } on { block = block $0 "\n" } END { exit !found }' "$1"
}

# One test: COMMAND must succeed in the system, and its output must have a line that matches TEXT.
try() { # SYSTEM TEXT COMMAND...
  local log=$bare/$1.log code=0 text=$2 start=$SECONDS
  inside "$1" "${@:3}" >"$log" 2>&1 </dev/null || code=$?
  if [ $code = 0 ] && grep -qe "$text" "$log"; then
    passed=$((passed + 1))
    printf 'passed in %d s: %s\n' $((SECONDS - start)) "${*:3}"
  else
    failed=$((failed + 1))
    printf 'FAILED after %d s, exit code %d, or no line with "%s": %s\n' $((SECONDS - start)) $code "$text" "${*:3}"
    tail -40 "$log"
  fi
}
try_fresh() { # SYSTEM TEXT COMMAND...
  fresh "$1"
  try "$@"
  rm -rf "${bare:?}/$1"
}
try_block() { # SYSTEM TEXT PAGE TEXT-OF-THE-BLOCK
  local commands
  commands=$(block "$3" "$4") || { echo "FAILED: $3 has no block marked sh with '$4'"; failed=$((failed + 1)); return; }
  try_fresh "$1" "$2" bash -euo pipefail -c "$commands"
}

test_build() {
  fresh build
  try build '^built build/release/warpfst' ./run build
  try build 'WER 37.40%$' ./run demo
  try build 'man1/warpfst-decode.1$' bash -c 'cmake --install build/release --prefix /opt/warpfst && /opt/warpfst/bin/warpfst version'
}

# In the system that test_build leaves.
test_package() {
  try build '^warpfst_.*[.]deb$' bash -c 'apt-get install -y --no-install-recommends dpkg-dev file && cd build/release && cpack && ls -1 *.deb'
  fresh package
  cp "$bare"/build/warpfst/build/release/*.deb "$bare/package/warpfst/" || true
  try package '^Depends:.*libc6.*zlib1g' bash -c 'dpkg-deb -f *.deb'
  try package '^warpfst [0-9.]*$' bash -euc 'apt-get install -y ./*.deb && test -s /usr/share/man/man1/warpfst-decode.1 && test -e /usr/include/warpfst.h && cd / && warpfst version'
  try package '^gone$' bash -euc 'apt-get remove -y warpfst && ! find /usr -name "*warpfst*" | grep . && echo gone'
  rm -rf "$bare/package"
}

test_others() {
  try_block pip '^card1 ten of clubs$' README.md 'warpfst transcribe'
  try_block c '^000030012 ' README.md 'pkg-config --cflags'
  try_block hand 'WER' README.md 'export PATH'
  try_block python '^warpfst [0-9.]*$' docs/how-to/install.md 'pip install'
  try_fresh demo 'WER 37.40%$' ./run demo
  try_fresh hybrid . ./run demo-hybrid
  try_fresh docs 'pages in /warpfst/build/docs/site' ./run docs
  try_fresh wheel 'warpfst-.*-py3-none-manylinux2014_x86_64' ./run wheel linux-x86_64
}

reason=$(machine_reason)
if [ -n "$reason" ]; then
  printf 'tests in a bare system: skipped: %s\n0 passed, 0 failed, 1 skipped\n' "$reason"
  exit
fi
test_build
[ "${1:-}" != all ] || test_package
rm -rf "$bare/build"
[ "${1:-}" != all ] || test_others
printf '%d passed, %d failed, 0 skipped\n' $passed $failed
[ $failed = 0 ]
