#!/usr/bin/env bash
# install_cuda12.sh ENVIRONMENT FOLDER - makes a CUDA toolkit in FOLDER from PyPI packages. Its code runs with driver 525 and later. Called by `./run wheel`.
# ENVIRONMENT is a Python virtual environment with pip.
# The CUDA 12 packages contain the assembler (ptxas), the runtime and the headers, but not nvcc, cudafe++, cicc and fatbinary. The CUDA 13.0 packages contain all of them.
# The driver version that is required depends on the assembler and the runtime: drivers before 580 reject code made with those of CUDA 13. So this toolkit combines
# CUDA 13.0's front end with CUDA 12.9's assembler and runtime. The front end writes PTX 9.0, the assembler reads PTX 8.8. They differ only in new instructions, which the
# front end does not use unless the source does; in that case ptxas would fail with an error.
# FOLDER/targets has the runtimes for x86-64 and ARM; the compilers run on x86-64.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
environment=$1 folder=$2 requirements=$here/cuda12_requirements.txt
cmp -s "$here/install_cuda12.sh" "$folder/made_by" && cmp -s "$requirements" "$folder/made_of" && exit

printf "\n== installing a CUDA toolkit from PyPI packages into %s (300 MB)\n" "$folder" >&2
rm -rf "$folder" "$folder.new"
mkdir -p "$folder.new"
packages=$folder.new/packages
"$environment/bin/pip" --quiet --disable-pip-version-check install --no-compile --no-deps --target "$packages" -r "$requirements"
new=$packages/nvidia/cu13 old=$packages/nvidia
target=$folder.new/targets/x86_64-linux
mkdir -p "$folder.new/nvvm" "$target/lib"
mv "$new/bin" "$folder.new/bin"
mv "$new/nvvm/bin" "$new/nvvm/libdevice" "$folder.new/nvvm/"
mv "$old/cuda_runtime/include" "$target/include"
mv "$old"/cuda_cccl/include/* "$target/include/"
mv "$new/include/crt" "$new/include/fatbinary_section.h" "$target/include/" # included by the output of the front end
mv "$old"/cuda_runtime/lib/*.a "$target/lib/"
mv "$old/cuda_nvcc/bin/ptxas" "$folder.new/bin/ptxas-12.9"
# ARM: the same headers, and the runtime of the package for ARM.
arm=$folder.new/targets/aarch64-linux
mkdir -p "$arm/lib"
ln -s ../x86_64-linux/include "$arm/include"
"$environment/bin/pip" --quiet --disable-pip-version-check download --no-deps --platform manylinux2014_aarch64 --only-binary :all: -d "$packages" \
  "$(grep '^nvidia-cuda-runtime-cu12==' "$requirements")"
(cd "$packages" && python3 -m zipfile -e nvidia_cuda_runtime_cu12-*_aarch64.whl arm)
mv "$packages"/arm/nvidia/cuda_runtime/lib/*.a "$arm/lib/"
ln -s libcudart_static.a "$arm/lib/libcudart.a" # CMake looks for the shared runtime, which is not used
ln -s libcudart_static.a "$target/lib/libcudart.a"
rm -rf "$packages"
ln -s targets/x86_64-linux/include "$folder.new/include"
ln -s targets/x86_64-linux/lib "$folder.new/lib64"
sed -i '/^SYSTEM_INCLUDES/d' "$folder.new/bin/nvcc.profile" # CUDA 13's layout: it has CCCL in a separate folder
cat >"$folder.new/bin/ptxas" <<'END'
#!/usr/bin/env bash
# Runs CUDA 12.9's ptxas on the PTX of CUDA 13.0's front end (install_cuda12.sh explains why this works).
for argument; do
  case $argument in *.ptx) sed -i 's/^\.version 9\.0$/.version 8.8/' "$argument" ;; esac
done
exec "$0-12.9" "$@"
END
chmod +x "$folder.new"/bin/* "$folder.new"/nvvm/bin/*
cp "$here/install_cuda12.sh" "$folder.new/made_by"
cp "$requirements" "$folder.new/made_of"
mv "$folder.new" "$folder"
