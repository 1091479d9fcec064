# wheel.sh - wheels of the Python package: the verbs wheel, wheels and test-wheel of ./run. Sourced by ./run.
# shellcheck shell=bash

# Sets target, tag and runner to those of a platform (packaging/platforms.txt).
read_platform() { # NAME
  read -r target tag runner < <(awk -v name="$1" '$1 == name {print $2, $3, $4}' packaging/platforms.txt) || {
    printf 'run: no platform "%s"; there are:\n%s\n' "$1" "$(list_platforms)" >&2
    exit 2
  }
}
list_platforms() { awk '!/^#/ {print $1}' packaging/platforms.txt; }

# Makes zig's compiler for a platform, and sets `settings` to CMake's for it.
use_platform() { # NAME
  local folder=build/wheels/zig/$1
  read_platform "$1"
  tools/make_zig_cc.sh build/wheels/env "$folder" "$target"
  settings=(CMAKE_TOOLCHAIN_FILE="$PWD/$folder/toolchain.cmake" WARPFST_ZLIB_SOURCE="$PWD/build/source/zlib")
}

# Builds a wheel with ziglang, which compiles and links, for a platform (default: linux-x86_64): warpfst, or for cuda-x86_64 and
# cuda-aarch64 warpfst-cuda, whose kernels the toolkit of tools/install_cuda12.sh compiles (WARPFST_CUDA_ARCHS chooses GPU
# architectures; default: release). Without isolation, as in python.sh, so an interrupted build is resumed.
do_wheel() { # [PLATFORM]
  local env=build/wheels/env name=${1:-linux-x86_64} archs='' source=. package=warpfst target tag runner settings more wheel untagged
  untagged=build/wheels/$name.untagged # its own, so wheels of several platforms can be built at once
  needs_wheel "$name"
  case $name in
    cuda-*)
      archs=${WARPFST_CUDA_ARCHS:-release} source=packaging/cuda package=warpfst_cuda more=()
      use_cuda_platform "${name#cuda-}"
      ;;
    *)
      use_platform "$name"
      more=(-Cinstall.strip=false) # the linker does it; the system's strip knows no other formats
      ;;
  esac
  say "compiling the wheel, for $name"
  SECONDS=0
  rm -rf "$untagged" build/wheels/"$package"-[0-9]*-"$tag".whl
  SKBUILD_BUILD_DIR="$PWD/build/wheels/$name" CMAKE_BUILD_PARALLEL_LEVEL=$jobs \
    "$env/bin/python" -m build --wheel --no-isolation --outdir "$untagged" "${settings[@]/#/-Ccmake.define.}" "${more[@]}" "$source"
  "$env/bin/python" -m wheel tags --remove --platform-tag "$tag" "$untagged"/*.whl
  mv "$untagged"/*.whl build/wheels/
  rmdir "$untagged"
  say "built in $SECONDS s"
  wheel=(build/wheels/"$package"-[0-9]*-"$tag".whl)
  "$env/bin/python" tools/check_wheel.py --gpus="$archs" "${wheel[@]}"
}

# Sets target, tag and `settings` for the GPU backend. g++ compiles the host's part of the kernels, zig's compiler the rest; it links.
use_cuda_platform() { # PROCESSOR
  local compiler=g++
  use_platform "linux-$1"
  settings=(CMAKE_C_COMPILER="$PWD/build/wheels/zig/linux-$1/cc" "${settings[1]}" WARPFST_CUDA_ARCHS="$archs" WARPFST_CUDA_COMPRESS=speed)
  if [ "$1" != x86_64 ]; then
    compiler=$1-linux-gnu-g++
    settings+=(CMAKE_SYSTEM_NAME=Linux CMAKE_SYSTEM_PROCESSOR="$1" CMAKE_STRIP="$(command -v "$1-linux-gnu-strip")")
  fi
  settings+=(CMAKE_CUDA_COMPILER="$PWD/build/cuda12/bin/nvcc" CMAKE_CUDA_HOST_COMPILER="$(command -v "$compiler")"
    CUDA_cudart_static_LIBRARY="$PWD/build/cuda12/targets/$1-linux/lib/libcudart_static.a")
}

# Builds the wheels of warpfst for all platforms.
do_wheels() {
  local name
  for name in $(list_platforms); do
    case $name in cuda-*) ;; *) do_wheel "$name" ;; esac
  done
  ls -l build/wheels/*.whl
}

# Builds the C tests for a platform in build/wheels/PLATFORM.tests.
build_wheel_tests() { # PLATFORM
  local folder=build/wheels/$1.tests
  use_platform "$1"
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWARPFST_TESTS=ON -DWARPFST_SIMT=OFF -DWARPFST_TRITON=OFF -DWARPFST_INSTALL=OFF \
    -DWARPFST_CUDA=OFF "-DCMAKE_INSTALL_RPATH=\$ORIGIN;@loader_path" -DWARPFST_CMOCKA_SOURCE="$PWD/build/source/cmocka" "${settings[@]/#/-D}" >"$folder.log" || { cat "$folder.log"; return 1; }
  cmake --build "$folder" -j "$jobs" >>"$folder.log" || { tail -50 "$folder.log"; return 1; }
}

# Builds the C tests for a platform and runs them, with an emulator if the processor or the system is another one. Platforms that no
# emulator runs are only linked. With --build, runs nothing: .github/workflows/wheels.yml runs them on the system itself.
do_test_wheel() { # PLATFORM [--build]
  local name=${1:-linux-x86_64} target tag runner settings
  needs_test_wheel "$name"
  say "compiling the tests, for $name"
  build_wheel_tests "$name"
  if [ "$runner" = - ] || [ "${2:-}" = --build ]; then
    echo "$name: the library, the program and the tests link"
    return
  fi
  bash tests/run_programs.sh "build/wheels/$name.tests" "$runner"
}
