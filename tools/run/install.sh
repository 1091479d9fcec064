# install.sh - everything that ./run installs, and ./run setup. Each function announces and installs what is missing, and
# does nothing if nothing is missing. Sourced by ./run in the repository's root.
# shellcheck shell=bash

# Every installation is announced here.
announce() { say "installing $*"; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Installs Debian packages.
need() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null)" = 'ii ' ] || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  if ! command -v apt-get >/dev/null; then
    say "there is no apt-get, so nothing is installed; needed Debian packages: ${missing[*]}"
    return
  fi
  announce "${missing[*]} (packages of the system, with apt-get)"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Installs those of the packages that this distribution has.
need_if_any() {
  local package
  for package in "$@"; do
    if apt-cache show "$package" >/dev/null 2>&1; then need "$package"; fi
  done
}

# Installs Python packages into a virtual environment, which is created if it does not exist. With uv, which takes a seventh
# of pip's time.
install_python() { # ENVIRONMENT [ARGUMENTS OF uv pip install...]
  local env=$1
  shift
  need_uv || return 1
  announce "Python packages into $env: $*"
  [ -x "$env/bin/python" ] || run_uv venv --quiet --seed --python "$(command -v python3)" "$env"
  run_uv pip install --quiet --python "$env/bin/python" "$@"
}

# uv reads no settings of pip: it gets the index and the certificates that pip is configured to use, else the system's
# certificates.
run_uv() {
  local settings index cert system=/etc/ssl/certs/ca-certificates.crt
  settings=$(build/uv/bin/pip config list)
  index=$(sed -n "s/.*[.]index-url='\(.*\)'$/\1/p" <<<"$settings" | tail -1)
  cert=$(sed -n "s/.*[.]cert='\(.*\)'$/\1/p" <<<"$settings" | tail -1)
  [ -n "$cert" ] || [ ! -e $system ] || cert=$system
  env UV_CACHE_DIR=build/uv/cache ${index:+UV_DEFAULT_INDEX="$index"} ${cert:+SSL_CERT_FILE="${SSL_CERT_FILE:-$cert}"} \
    build/uv/bin/uv "$@"
}
need_uv() {
  [ ! -x build/uv/bin/uv ] || return 0
  need python3 python3-venv
  announce 'uv==0.13.9 into build/uv'
  python3 -m venv build/uv
  build/uv/bin/pip --quiet --disable-pip-version-check install uv==0.13.9
}

# Makes a virtual environment with the pinned packages of a requirements file.
need_python() { # ENVIRONMENT REQUIREMENTS
  need python3 python3-venv python3-dev
  if cmp -s "$2" "$1/installed.txt"; then return; fi
  install_python "$1" -r "$2" || return 1
  cp "$2" "$1/installed.txt"
}

# Installs a compiler, CMake 3.22 and zlib. If the system's CMake is older, installs one from PyPI and puts it first in PATH.
need_build() {
  need gcc g++ make ninja-build cmake pkg-config zlib1g-dev
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/p')
  [ "$(printf '%s\n3.22\n' "$version" | sort -V | head -1)" != 3.22 ] || return 0
  need python3 python3-venv
  [ -x build/cmake/bin/cmake ] || install_python build/cmake 'cmake>=3.22'
  PATH="$PWD/build/cmake/bin:$PATH"
}

# Installs a Triton Inference Server for tests and benchmarks of the backend, from NVIDIA's package for PyTriton, without its
# dependencies. Needs build/venv.
need_triton() {
  local version=0.7.0
  [ "$(cat build/triton/version 2>/dev/null)" = $version ] && return
  announce "a Triton server into build/triton (150 MB)"
  install_python build/venv --no-deps --upgrade --target build/triton "nvidia-pytriton==$version"
  chmod +x build/triton/pytriton/tritonserver/bin/tritonserver
  echo $version >build/triton/version
}

# Unpacks the source of a Debian package into build/source/PACKAGE. Most systems have no lists of sources, so they are made
# here, from the system's lists of packages.
need_source() { # PACKAGE
  local folder=build/source options file
  [ ! -d "$folder/$1" ] || return 0
  need dpkg-dev
  announce "the source of Debian's $1 into $folder"
  rm -rf "$folder/apt" "$folder/new"
  mkdir -p "$folder/apt/lists/partial" "$folder/apt/parts" "$folder/new"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    [ ! -f "$file" ] || sed 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$file" >"$folder/apt/parts/$(basename "$file")"
  done
  options=(-qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$PWD/$folder/apt/parts" -o "Dir::State::lists=$PWD/$folder/apt/lists"
    -o APT::Sandbox::User=root)
  [ ! -f "$folder/apt/parts/sources.list" ] || mv "$folder/apt/parts/sources.list" "$folder/apt/parts/system.list"
  apt-get "${options[@]}" update
  (cd "$folder/new" && apt-get "${options[@]}" source "$1" >/dev/null)
  mv "$folder/new/$1"-*/ "$folder/$1"
}

# Compiles KenLM's Python module into a virtual environment. pip takes four times as long: KenLM's setup compiles all
# files twice, with -O3.
need_kenlm() { # ENVIRONMENT
  local python=$PWD/$1/bin/python folder=$1/kenlm module sources=()
  "$python" -c 'import kenlm' 2>/dev/null && return
  announce "KenLM into $1"
  mkdir -p "$folder"
  "$python" -m pip --quiet --disable-pip-version-check download --no-deps --no-binary kenlm -d "$folder" -r tests/kenlm-requirements.txt
  tar -xzf "$folder"/kenlm-*.tar.gz --strip-components=1 -C "$folder"
  module=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/kenlm.so
  mapfile -t sources < <(cd "$folder" && printf '%s\n' {lm,util,util/double-conversion,python}/*.cc python/kenlm.cpp | grep -vE '(main|test)[.]cc$')
  (cd "$folder" && g++ -std=c++11 -O0 -w -fPIC -shared -DNDEBUG -DKENLM_MAX_ORDER=6 -DHAVE_ZLIB -DHAVE_CLOCKGETTIME -I. \
    -I"$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')" "${sources[@]}" -lz -lrt -o "$module")
}

# Installs the tools that build wheels and compile for other systems.
need_wheel_tools() { need_python build/wheels/env tools/wheel_requirements.txt; }

# --- what each verb needs ------------------------------------------------------------------------------------------

needs_build() { need_build; }
needs_demo() { need_build; }
needs_demo_hybrid() {
  need_build
  need pocketsphinx pocketsphinx-en-us pocketsphinx-testdata
}
needs_test_bare() { need debootstrap; }
test_packages() {
  need_build
  need debootstrap libcmocka-dev abigail-tools libfst-tools sctk time pocketsphinx pocketsphinx-en-us pocketsphinx-testdata \
    python3-dev python3-venv shellcheck xz-utils zsh fish
  need_if_any python3-torch clang-format-14 chromium
  need_uv # before others that install Python packages at the same time
}
test_tools() {
  need_python build/venv tests/python-requirements.txt
  need_kenlm build/venv
  need_triton
}
needs_test() {
  test_packages
  test_tools
}
needs_test_more() {
  needs_test_gpu
  need python3 python3-dev python3-venv
  need_uv
}
needs_test_gpu() {
  [ -z "${1:-}" ] || return 0 # packed tests need nothing
  need_build
  need libcmocka-dev
}
needs_soak() { needs_test_gpu; }
needs_pack_gpu() { # [FOLDER [compose|graph]]
  needs_test_gpu
  need python3 python3-pip
  case ${2:-all} in graph) need libfst-tools pocketsphinx-en-us python3-numpy ;; *) need xz-utils ;; esac
}
needs_torture() {
  needs_test_gpu
  need python3
}
needs_fuzz() {
  need_build
  need clang "libclang-rt-$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p')-dev"
}
needs_bench() { # [WHAT]
  local what=${1:-all}
  need_build
  need libcmocka-dev python3 libfst-tools libfst-dev time util-linux
  case $what in
    graph | hybrid | fly | rnnlm_hybrid | accuracy | papers) need pocketsphinx pocketsphinx-en-us pocketsphinx-testdata python3-numpy ;;
  esac
  case $what in word_times | spot | sweep) need python3-numpy ;; esac
  case $what in ocr) need pocketsphinx-en-us fonts-dejavu-core ;; esac
  case $what in rnnlm_hybrid) need r-cran-janeaustenr ;; esac
  case $what in boost | align | compat | differential | ocr | peers) need_python "build/bench/${what}_peers" "bench/peers/$what-requirements.txt" ;; esac
  case $what in grammar) need_python build/bench/differential_peers bench/peers/differential-requirements.txt ;; esac
  case $what in serve) need_python build/bench/serve_packages bench/serve/requirements.txt ;; esac
  case $what in boost | align | compat | differential | generation | ocr | peers) need_python "build/bench/${what}_peers" "bench/peers/$what-requirements.txt" ;; esac
  case $what in whisper) need pocketsphinx-testdata && need_python build/bench/generation_peers bench/peers/generation-requirements.txt ;; esac
  case $what in triton) need binutils && need_python build/venv tests/python-requirements.txt && need_triton ;; esac
  case $what in lm | all) need pocketsphinx-en-us && need_python build/venv tests/python-requirements.txt ;; esac
}
needs_wheel() { # [PLATFORM]
  need_build
  need binutils
  need_wheel_tools
  need_source zlib
  case ${1:-} in cuda-*) tools/install_cuda12.sh build/wheels/env build/cuda12 ;; esac
  [ "${1:-}" != cuda-aarch64 ] || need g++-aarch64-linux-gnu
}
needs_wheels() { needs_wheel linux-x86_64; }
needs_test_wheel() { # [PLATFORM]
  needs_wheel "${1:-linux-x86_64}"
  need_source cmocka
  read_platform "${1:-linux-x86_64}"
  case $runner in qemu-*) need qemu-user-static libc6-arm64-cross ;; wine) need wine wine64 ;; esac
}
needs_docs() {
  need_build
  need_python build/docs/env docs/requirements.txt
}

do_setup() { # [VERB [ARGUMENTS...]]
  local verb=${1:-build}
  shift || true
  if ! declare -F "needs_${verb//-/_}" >/dev/null; then
    printf 'run: no verb "%s"\n\n' "$verb" >&2
    usage >&2
    exit 2
  fi
  "needs_${verb//-/_}" "$@"
  say "everything that \`./run $verb\` needs is installed"
}
