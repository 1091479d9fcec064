#!/usr/bin/env bash
# Rewrites tests/abi/exports.txt from a build of the library: tools/update_exports.sh [build/release/libwarpfst.so]
# Check the difference before committing it: removing a name breaks programs that use it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/abi.sh
exported_symbols "${1:-build/release/libwarpfst.so}" > tests/abi/exports.txt
git --no-pager diff --stat -- tests/abi/exports.txt 2>/dev/null || true
