# A folder made by `cmake --install`: C programs build against it with pkg-config and with find_package, shared and static. It has a manual page for every
# command.
# shellcheck shell=bash
fail() { echo "$*" >&2; exit 1; }
prefix=$PWD/prefix
cmake --install "$BUILD_DIR" --prefix "$prefix" >install.txt || { cat install.txt; exit 1; }
version=$("$prefix/bin/warpfst" version | sed 's/^warpfst //')
library=$(dirname "$(find "$prefix" -name libwarpfst.so)")

# docs/how-to/c.md shows the program that is compiled here.
sed -n '/^```c$/,/^```$/p' "$SOURCE_DIR/docs/how-to/c.md" | sed '1d;$d' | diff "$SOURCE_DIR/examples/c/decode.c" - || fail "docs/how-to/c.md does not show examples/c/decode.c"
ctc=$SOURCE_DIR/examples/ctc
"$WARPFST" mkgraph ctc --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" -o graph.wfst -q
scores=("$ctc"/logp_phone/00003*.npy)
"$WARPFST" decode graph.wfst "${scores[@]}" --acoustic-scale=0.7 -o expected.txt 2>log.txt
[ "$(wc -l <expected.txt)" -gt 2 ] || fail "too few utterances"
check() { # PROGRAM
  "$1" graph.wfst "${scores[@]}" >words.txt || fail "$1: exit code $?"
  diff expected.txt words.txt || fail "$1: the words differ from those of warpfst decode"
  ! "$1" graph.wfst no-such-file 2>problem.txt || fail "$1: no error for a missing file"
  grep -q no-such-file problem.txt || fail "$1: $(cat problem.txt)"
}

export PKG_CONFIG_PATH=$library/pkgconfig
[ "$(pkg-config --modversion warpfst)" = "$version" ] || fail "pkg-config: version $(pkg-config --modversion warpfst)"
flags=(-std=c11 -Wall -Wextra -Werror "$SOURCE_DIR/examples/c/decode.c")
read -ra found <<<"$(pkg-config --cflags --libs warpfst)"
"${CC:-cc}" -fsanitize=address,undefined "${flags[@]}" "${found[@]}" -Wl,-rpath,"$library" -o with-pkg-config # AddressSanitizer reports memory that the program does not free
check ./with-pkg-config

mkdir project
cp "$SOURCE_DIR/examples/c/decode.c" project
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(example LANGUAGES C)
find_package(warpfst 0.3 CONFIG REQUIRED)
add_executable(with-cmake decode.c)
target_link_libraries(with-cmake PRIVATE warpfst::warpfst)
if(STATIC)
  add_executable(with-cmake-static decode.c)
  target_link_libraries(with-cmake-static PRIVATE warpfst::warpfst_static)
endif()
find_package(warpfst 9 CONFIG QUIET)
if(warpfst_FOUND)
  message(FATAL_ERROR "find_package accepts version 9")
endif()
END
if grep -q '^CUDAToolkit_' "$BUILD_DIR/CMakeCache.txt"; then # builds with CUDA have no static library
  [ ! -e "$library/libwarpfst.a" ] || fail "a static library with CUDA"
  [ -e "$library/libwarpfst-cuda.so.${version%.*}" ] || fail "no GPU backend"
  static=OFF
else
  read -ra found <<<"$(pkg-config --static --cflags --libs warpfst)"
  "${CC:-cc}" -static "${flags[@]}" "${found[@]}" -o static-with-pkg-config
  check ./static-with-pkg-config
  static=ON
fi
cmake -S project -B project/build -DCMAKE_PREFIX_PATH="$prefix" -DSTATIC=$static >cmake.txt 2>&1 || { cat cmake.txt; exit 1; }
cmake --build project/build >>cmake.txt 2>&1 || { cat cmake.txt; exit 1; }
for program in project/build/with-cmake project/build/with-cmake-static; do [ ! -x $program ] || check $program; done
[ $static = OFF ] || ! ldd project/build/with-cmake-static | grep warpfst || fail "not static"

# Manual pages: one for each command and subcommand, without warnings from man and mandoc, and with every flag of the help.
pages=$prefix/share/man/man1
commands=$("$WARPFST" help | sed -n '/^Only in the Python package/,/^$/d; s/^  \([a-z]*\)  .*/\1/p')
for command in $commands; do [ -s "$pages/warpfst-$command.1" ] || fail "no manual page for $command"; done
for page in warpfst.1 warpfst-mkgraph-ctc.1 warpfst-lattice-prune.1 warpfst-lm-build.1; do grep -q '^\.SH SYNOPSIS' "$pages/$page" || fail "$page: no synopsis"; done
grep -q '^warpfst\\-prune \\- remove paths that are far from the best$' "$pages/warpfst-prune.1" || fail "warpfst-prune.1: $(head -3 "$pages/warpfst-prune.1")"
"$WARPFST" decode --help | grep -oE '^  (-., )?--[a-z0-9-]+' | grep -oE -- '--.*' >flags.txt
sed -n '/^\.TP$/{n;s/\\-/-/g;p}' "$pages/warpfst-decode.1" | grep -oE -- '--[a-z0-9-]+' >shown.txt
[ "$(wc -l <flags.txt)" -gt 30 ] && diff flags.txt shown.txt || fail "the flags in warpfst-decode.1 differ from those in the help"
if command -v man >/dev/null; then
  for page in "$pages"/*.1; do man --warnings -l "$page" 2>>warnings.txt >/dev/null; done
  [ ! -s warnings.txt ] || fail "man: $(head warnings.txt)"
fi
if command -v mandoc >/dev/null; then # the pages have no date, so that builds are reproducible
  mandoc -T lint -W warning "$pages"/*.1 | grep -v 'missing date, using "": TH$' >lint.txt || true
  [ ! -s lint.txt ] || fail "mandoc: $(head lint.txt)"
fi
