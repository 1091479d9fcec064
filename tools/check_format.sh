#!/bin/bash
# Checks that all C, C++ and CUDA code is formatted as .clang-format says. With --repair, formats it. Versions of
# clang-format differ in their results, so only version 14 is used (Debian: clang-format-14; PyPI:
# clang-format==14.0.6).
# Exit code 77: clang-format 14 is not installed.
set -eu
cd "$(dirname "$0")/.."
for program in clang-format-14 clang-format; do
  case $("$program" --version 2>/dev/null || true) in *'version 14.'*) break ;; esac
  program=
done
[ -n "$program" ] || { echo 'clang-format 14 is not installed'; exit 77; }
how=(--dry-run -Werror)
[ "${1:-}" != --repair ] || how=(-i)
find src include cli tests bench fuzz triton examples \
  '(' -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' ')' -print0 |
  xargs -0 "$program" "${how[@]}"
