#!/usr/bin/env bash
# machine.sh - makes fresh minimal Debian systems (chroots) and runs commands in them. Sourced by tests/bare/test.sh in the repository's root.
# Needs root, debootstrap and a Debian mirror. The systems are in build/bare/. BARE_SUITE and BARE_MIRROR choose another release, for example
# BARE_SUITE=jammy BARE_MIRROR=http://archive.ubuntu.com/ubuntu.
bare=$PWD/build/bare
suite=${BARE_SUITE:-bookworm}
base=$bare/$suite.base
certificates=/etc/ssl/certs/ca-certificates.crt

# Prints why this machine cannot make such a system. Prints nothing if it can.
machine_reason() {
  [ "$(id -u)" = 0 ] || { echo 'only root can make a chroot'; return; }
  command -v debootstrap >/dev/null || { echo 'debootstrap is not installed'; return; }
  unshare --mount true 2>/dev/null || { echo 'mount namespaces are not available'; return; }
  make_base || echo "debootstrap failed: $(tail -1 "$base.log")"
}

# Makes the base system that all others are copied from: debootstrap's output, with this machine's settings for apt mirrors and PyPI.
make_base() {
  [ ! -d "$base" ] || return 0
  local mirror=${BARE_MIRROR:-} components=main
  [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 2>/dev/null | sed -n "s/ $suite$//p" | head -1)
  case $mirror in *ubuntu*) components=main,universe ;; esac
  rm -rf "$base.new"
  mkdir -p "$bare"
  debootstrap --variant=minbase --components=$components "$suite" "$base.new" "${mirror:-http://deb.debian.org/debian}" >"$base.log" 2>&1 || return 1
  rm -f "$base.new"/var/cache/apt/archives/*.deb
  apt-config dump | grep -E '^Acquire::(http|https|Check|Retries)' >"$base.new/etc/apt/apt.conf.d/99host" || true
  echo force-unsafe-io >"$base.new/etc/dpkg/dpkg.cfg.d/fast"
  [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$base.new/etc/pip.conf"
  [ ! -e $certificates ] || cp $certificates "$base.new/opt/certificates.crt"
  mv "$base.new" "$base"
}

# Prints the repository's files, each followed by a NUL: those that git tracks, with uncommitted changes; in an unpacked
# archive, which has no git, all but what builds and Python make.
list_files() {
  if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$PWD" ]; then
    git ls-files -z
  else
    find . \( -path ./build -o -path ./.venv -o -name __pycache__ \) -prune -o \( -type f -o -type l \) -print0
  fi
}

# Makes a fresh system NAME. Copies the repository's files to its /warpfst.
fresh() { # NAME
  rm -rf "${bare:?}/$1"
  cp -a "$base" "$bare/$1"
  cp -L /etc/resolv.conf /etc/hosts "$bare/$1/etc/"
  mkdir "$bare/$1/warpfst"
  list_files | tar --null -T - -c | tar -x -C "$bare/$1/warpfst"
  # Without optimization, compiling takes a third of the time. CMake reads this file for ./run and for pip.
  echo 'set(CMAKE_C_FLAGS_RELEASE -O0 CACHE STRING "")' >"$bare/$1/opt/quick.cmake"
}

# Runs COMMAND as root in the system's /warpfst. The mounts disappear with the mount namespace.
inside() { # NAME COMMAND...
  local root=$bare/$1 settings=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive CMAKE_TOOLCHAIN_FILE=/opt/quick.cmake) name
  shift
  for name in http_proxy https_proxy no_proxy PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_PROXY PIP_DEFAULT_TIMEOUT PIP_RETRIES; do
    [ -z "${!name:-}" ] || settings+=("$name=${!name}")
  done
  [ ! -e $certificates ] || settings+=(PIP_CERT=/opt/certificates.crt SSL_CERT_FILE=/opt/certificates.crt)
  # shellcheck disable=SC2016
  unshare --mount --propagation private bash -c 'mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" && exec env -i "${@:2}"' bare "$root" \
    "${settings[@]}" chroot "$root" bash -c 'cd /warpfst && exec "$@"' bare "$@"
}
