#!/usr/bin/env bash
# compile_aarch64.sh ENVIRONMENT FOLDER [all] - compiles for ARM with glibc 2.28, into FOLDER, the C files that name a processor or its instructions. all: every C file of the
# library and the program; the host's part of the GPU backend, too, with the declarations of the tests' imitated CUDA. Nothing runs. ENVIRONMENT has ziglang
# (tools/make_zig_cc.sh). Called by ./run test, and with `all` by ./run test-more.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
environment=$1 folder=$2
tools/make_zig_cc.sh "$environment" "$folder" aarch64-linux-gnu.2.28
# -O0: half the time. Without -fno-sanitize zig adds checks to it.
flags=(-std=c11 -O0 -fno-sanitize=undefined -fPIC -fvisibility=hidden -ffp-contract=off -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -Isrc -I"$folder" -isystem "$folder/include"
  -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-bitwise-instead-of-logical
  -Wno-bitwise-conditional-parentheses -Werror '-DWF__CUDA_FILE="libwarpfst-cuda.so"')
cmake -DSOURCE=. -DVERSION=0 -DOUTPUT="$(realpath "$folder")/build_id.h" -P packaging/build_id.cmake
cuda=(-Itests/fake_cuda -Itests/simt -include tests/simt/more_runtime.h)
compile() { # OBJECT ARGUMENTS...
  local object=$folder/$1
  "$folder/cc" "${flags[@]}" "${@:2}" -o "$object"
  readelf -h "$object" | grep -q 'Machine: *AArch64' || { echo "$object is not for aarch64"; exit 1; }
}
if [ "${3:-}" = all ]; then
  mapfile -t host < <(find src cli -name '*.c' -not -path 'src/cuda/*')
  mapfile -t gpu < <(find src/cuda -name '*.c')
  compile gpu.o "${cuda[@]}" -c "${gpu[@]}"
else
  mapfile -t host < <(grep -rlE --include='*.c' '__(x86_64|i386|aarch64|ARM|SSE|AVX)|(imm|arm_neon|cpuid)[a-z]*[.]h' src cli)
  gpu=()
fi
compile host.o -c "${host[@]}"
echo "${#host[@]} files of the host and ${#gpu[@]} of the GPU backend compile for aarch64"
