#!/usr/bin/env bash
# compile_aarch64.sh ENVIRONMENT FOLDER - compiles every C file of the library and the program for ARM with glibc 2.28, into FOLDER; the host's part of the GPU backend, too,
# with the declarations of the tests' imitated CUDA. Nothing runs. ENVIRONMENT has ziglang (tools/make_zig_cc.sh). Called by ./run test.
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
mapfile -t host < <(find src cli -name '*.c' -not -path 'src/cuda/*')
mapfile -t gpu < <(find src/cuda -name '*.c')
"$folder/cc" "${flags[@]}" -c "${host[@]}" -o "$folder/host.o"
"$folder/cc" "${flags[@]}" "${cuda[@]}" -c "${gpu[@]}" -o "$folder/gpu.o"
for object in host gpu; do
  readelf -h "$folder/$object.o" | grep -q 'Machine: *AArch64' || { echo "$folder/$object.o is not for aarch64"; exit 1; }
done
echo "${#host[@]} files of the host and ${#gpu[@]} of the GPU backend compile for aarch64"
