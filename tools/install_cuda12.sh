#!/usr/bin/env bash
# install_cuda12.sh ENVIRONMENT FOLDER - a CUDA toolkit in FOLDER that makes code for drivers from 525 on, of PyPI's packages; called by `./run wheel`.
# ENVIRONMENT is a Python virtual environment with pip.
#
# CUDA 12's packages have its assembler (ptxas), runtime and headers, but no nvcc, cudafe++, cicc and fatbinary; CUDA 13.0's have all. What a driver must know are the
# assembler's code and the runtime: drivers before 580 refuse those of CUDA 13. So CUDA 13.0's front end is put before CUDA 12.9's assembler and runtime. The front end writes
# PTX 9.0; the assembler reads 8.8, which is the same but for instructions that the front end does not write unasked: where it did, ptxas would stop with an error.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
environment=$1 folder=$2 requirements=$here/cuda12_requirements.txt
cmp -s "$here/install_cuda12.sh" "$folder/made_by" && cmp -s "$requirements" "$folder/made_of" && exit

printf "\n== installing a CUDA toolkit of PyPI's packages into %s (300 MB)\n" "$folder" >&2
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
mv "$new/include/crt" "$new/include/fatbinary_section.h" "$target/include/" # what the front end's output is compiled with
mv "$old"/cuda_runtime/lib/*.a "$target/lib/"
mv "$old/cuda_nvcc/bin/ptxas" "$folder.new/bin/ptxas-12.9"
rm -rf "$packages"
ln -s targets/x86_64-linux/include "$folder.new/include"
ln -s targets/x86_64-linux/lib "$folder.new/lib64"
sed -i '/^SYSTEM_INCLUDES/d' "$folder.new/bin/nvcc.profile" # CUDA 13 has CCCL in a folder of its own
cat >"$folder.new/bin/ptxas" <<'END'
#!/usr/bin/env bash
# CUDA 12.9's ptxas for what CUDA 13.0's front end writes (install_cuda12.sh says why that holds).
for argument; do
  case $argument in *.ptx) sed -i 's/^\.version 9\.0$/.version 8.8/' "$argument" ;; esac
done
exec "$0-12.9" "$@"
END
chmod +x "$folder.new"/bin/* "$folder.new"/nvvm/bin/*
cp "$here/install_cuda12.sh" "$folder.new/made_by"
cp "$requirements" "$folder.new/made_of"
mv "$folder.new" "$folder"
