# The program that pip puts on the PATH (python/launcher.c) finds the program in the package from its own place, and passes `transcribe` and `serve` to Python.
# shellcheck shell=bash
fail() { echo "$1" >&2; exit 1; }
build() { # FOLDER: a launcher in FOLDER/bin
  mkdir -p "$1/bin"
  "${CC:-cc}" -std=gnu11 -O1 -Wall -Wextra -Werror "$SOURCE_DIR/python/launcher.c" -o "$1/bin/warpfst"
}
install_package() { # FOLDER NAME: a package whose program prints NAME and its arguments
  mkdir -p "$1/warpfst/bin"
  printf '#!/bin/sh\necho "%s $*"\n' "$2" >"$1/warpfst/bin/warpfst"
  chmod +x "$1/warpfst/bin/warpfst"
}
for place in lib/python3.11/site-packages lib64/python3.9/site-packages lib/python3/dist-packages local/lib/python3.12/dist-packages .; do
  rm -rf venv && build venv
  install_package "venv/$place" program
  [ "$(venv/bin/warpfst info 'a b')" = 'program info a b' ] || fail "not found in $place"
done

# through a link, as uv and pipx install it
ln -s "$PWD/venv/bin/warpfst" link
[ "$(./link version)" = 'program version' ] || fail 'not found through a link'

# of several packages, the one that was installed together with the launcher
rm -rf venv && build venv
for version in 9 11 13; do install_package "venv/lib/python3.$version/site-packages" "python3.$version"; done
touch -d '2020-01-01' venv/lib/python3.9/site-packages/warpfst/bin/warpfst
touch -d '2022-01-01' venv/lib/python3.11/site-packages/warpfst/bin/warpfst venv/bin/warpfst
[ "$(venv/bin/warpfst x)" = 'python3.11 x' ] || fail "the wrong package: $(venv/bin/warpfst x)"

# Python: the interpreter of the package's version, else python3, beside the launcher or on the PATH
mkdir path
for name in venv/bin/python3.11 path/python3; do printf '#!/bin/sh\necho "%s $*"\n' "$name" >"$name" && chmod +x "$name"; done
[ "$(venv/bin/warpfst transcribe a.wav)" = 'venv/bin/python3.11 -m warpfst transcribe a.wav' ] || fail 'transcribe does not run the interpreter beside it'
[ "$(venv/bin/warpfst serve --port 1)" = 'venv/bin/python3.11 -m warpfst serve --port 1' ] || fail 'serve does not run the interpreter beside it'
printf '#include <stdio.h>\nint main(int argc, char **argv) { (void)argc; puts(argv[0]); return 0; }\n' >name.c
"${CC:-cc}" name.c -o venv/bin/python3.11 # Python must be called by its path, or it does not find the virtual environment
[ "$(venv/bin/warpfst transcribe)" = "$PWD/venv/bin/python3.11" ] || fail "the interpreter is called $(venv/bin/warpfst transcribe)"
rm -rf venv/lib venv/bin/python3.11
[ "$(PATH=$PWD/path venv/bin/warpfst info)" = 'path/python3 -m warpfst info' ] || fail 'no package: python3 on the PATH is not run'
got=0
PATH=/nonexistent venv/bin/warpfst info 2>err || got=$?
[ "$got" = 3 ] && grep -q 'cannot find the Python package' err || fail "exit $got without a package"
