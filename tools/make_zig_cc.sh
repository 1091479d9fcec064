#!/usr/bin/env bash
# make_zig_cc.sh ENVIRONMENT FOLDER TARGET - makes FOLDER/cc, a C compiler for other systems: the clang of PyPI's ziglang. TARGET is a processor and the oldest glibc that the
# result must run with (x86_64-linux-gnu.2.17, aarch64-linux-gnu.2.28). ENVIRONMENT is a Python virtual environment with ziglang.
#
# The compiler has its own headers of that glibc and links with the symbols of that glibc, so the result cannot need a newer one. For example, headers of glibc 2.38 rename
# strtol to __isoc23_strtol; these do not. FOLDER/include has zlib's headers without the rest of /usr/include.
set -euo pipefail
environment=$1 folder=$2 target=$3
zig=$("$environment/bin/python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
mkdir -p "$folder/include"
find /usr/include -maxdepth 2 \( -name zlib.h -o -name zconf.h \) -exec cp {} "$folder/include/" \;
[ -e "$folder/include/zlib.h" ] || { echo "make_zig_cc.sh: no zlib.h in /usr/include (Debian's zlib1g-dev)" >&2; exit 1; }
printf '#!/bin/sh\nexec "%s" cc -target %s "$@"\n' "$zig" "$target" >"$folder/cc"
chmod +x "$folder/cc"
