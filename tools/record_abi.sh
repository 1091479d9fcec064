#!/usr/bin/env bash
# record_abi.sh LIBRARY - writes the binary interface of a release to tests/abi/warpfst-MAJOR.MINOR.abi.xz, which tests/cli/test_abi_release.sh compares with.
# LIBRARY is a build with debug information (preset sanitize). Run it once for each release with a new interface. Needs abigail-tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/abi.sh
version=$(sed -n 's/^project(warpfst VERSION \([0-9]*\.[0-9]*\)\..*/\1/p' CMakeLists.txt)
dump_abi "${1:?record_abi.sh LIBRARY}" include | xz -9 >"tests/abi/warpfst-$version.abi.xz"
ls -l "tests/abi/warpfst-$version.abi.xz"
