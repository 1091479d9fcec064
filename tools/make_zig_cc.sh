#!/usr/bin/env bash
# make_zig_cc.sh ENVIRONMENT FOLDER TARGET - makes FOLDER/cc, a C compiler for other systems: the clang of PyPI's ziglang. TARGET is a processor and a system, for glibc with the
# oldest version that the result must run with (x86_64-linux-gnu.2.17, aarch64-macos.11.0). ENVIRONMENT is a Python virtual environment with ziglang.
#
# The compiler has its own headers of that glibc and links with the symbols of that glibc, so the result cannot need a newer one. For example, headers of glibc 2.38 rename
# strtol to __isoc23_strtol; these do not. FOLDER/toolchain.cmake is for CMake. FOLDER/include has zlib's headers without the rest of /usr/include, if they are there.
set -euo pipefail
environment=$1 folder=$2 target=$3
zig=$("$environment/bin/python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
mkdir -p "$folder/include"
find /usr/include -maxdepth 2 \( -name zlib.h -o -name zconf.h \) -exec cp {} "$folder/include/" \;
make_tool() { # NAME ARGUMENTS...
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "${*:2}" >"$folder/$1"
  chmod +x "$folder/$1"
}
make_tool cc cc -target "$target"
make_tool ar ar
make_tool ranlib ranlib
make_tool rc rc
case $target in *-linux-*) system=Linux ;; *-macos*) system=Darwin ;; *-windows-*) system=Windows ;; esac
here=$(realpath "$folder")
cat >"$folder/toolchain.cmake" <<EOF
set(CMAKE_SYSTEM_NAME $system)
set(CMAKE_SYSTEM_PROCESSOR ${target%%-*})
set(CMAKE_C_COMPILER $here/cc)
set(CMAKE_AR $here/ar)
set(CMAKE_RANLIB $here/ranlib)
set(CMAKE_RC_COMPILER $here/rc)
set(CMAKE_OSX_SYSROOT "")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_EXE_LINKER_FLAGS_INIT -s)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
EOF
# CMake has this flag only on a Mac.
[ "$system" != Darwin ] || {
  echo 'set(CMAKE_SHARED_LIBRARY_RUNTIME_C_FLAG "-Wl,-rpath,")' >"$folder/rules.cmake"
  echo "set(CMAKE_USER_MAKE_RULES_OVERRIDE $here/rules.cmake)" >>"$folder/toolchain.cmake"
}
