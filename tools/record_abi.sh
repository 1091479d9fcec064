#!/usr/bin/env bash
# record_abi.sh LIBRARY - writes the binary interface of a release to tests/abi/warpfst-MAJOR.MINOR.abi.xz, which tests/cli/test_abi_release.sh compares with.
# LIBRARY is a build with debug information (preset sanitize). Run it once for each release with a new interface. Prints what has
# changed since the release recorded before. Needs abigail-tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/abi.sh
version=$(sed -n 's/^project(warpfst VERSION \([0-9]*\.[0-9]*\)\..*/\1/p' CMakeLists.txt)
dump_abi "${1:?record_abi.sh LIBRARY}" include | xz -9 >"tests/abi/warpfst-$version.abi.xz"
ls -l "tests/abi/warpfst-$version.abi.xz"
before=$(find tests/abi -name 'warpfst-*.abi.xz' | sort -V | grep -B1 -F "warpfst-$version.abi.xz" | head -1)
[ "$before" != "tests/abi/warpfst-$version.abi.xz" ] || exit 0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
xz -dc "$before" >"$folder/before.abi"
xz -dc "tests/abi/warpfst-$version.abi.xz" >"$folder/now.abi"
abidiff --no-default-suppression "$folder/before.abi" "$folder/now.abi" || true # its exit code says that there are changes
