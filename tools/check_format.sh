#!/bin/bash
# Is all C, C++ and CUDA code formatted by .clang-format? With --repair, formats it. The results of different
# versions of clang-format differ in places, so only version 14 is used (Debian: clang-format-14; PyPI:
# clang-format==14.0.6).
# Exit code 77: it is not here.
set -eu
cd "$(dirname "$0")/.."
for program in clang-format-14 clang-format; do
  case $("$program" --version 2>/dev/null || true) in *'version 14.'*) break ;; esac
  program=
done
[ -n "$program" ] || { echo 'no clang-format 14 here'; exit 77; }
how=(--dry-run -Werror)
[ "${1:-}" != --repair ] || how=(-i)
find src include cli tests bench fuzz triton examples \
  '(' -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' ')' -print0 |
  xargs -0 "$program" "${how[@]}"
