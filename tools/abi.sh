# abi.sh - lists what the library exports and what its headers declare, one name per line, sorted. Sourced by update_exports.sh, record_abi.sh and the tests.
# shellcheck shell=bash

# Defined dynamic symbols of a shared library, without those that sanitizers add, and without wf__*: internal functions, which are exported for libwarpfst-cuda of the
# same build alone.
exported_symbols() { # LIBRARY
  nm -D --defined-only "$1" | awk '{print $NF}' | sed 's/@.*//' | { grep -vE '^(wf__|__asan_|__odr_asan|__ubsan_|__sanitizer_|__sancov_|__lsan_|__gcov_|__llvm_)' || true; } | LC_ALL=C sort -u
}

# Functions with WF_API. The header is preprocessed, so functions declared by macros are included.
declared_functions() { # HEADER
  "${CC:-cc}" -std=c11 -E -P "$1" | tr '\n' ' ' | sed 's/__attribute__((visibility("default")))/\n@/g' |
    sed -nE 's/^@[^(;]*[ *](wf_[a-z0-9_]+) *\(.*/\1/p' | LC_ALL=C sort -u
}

# The binary interface of a library with debug information, in libabigail's format. Only types of the headers in a folder are included.
dump_abi() { # LIBRARY HEADERS
  abidw --suppressions "$(dirname "${BASH_SOURCE[0]}")/../tests/abi/internal.abignore" --headers-dir "$2" --drop-private-types --exported-interfaces-only --no-corpus-path --no-comp-dir-path --no-show-locs "$1"
}
