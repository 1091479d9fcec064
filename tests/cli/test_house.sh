# The source tree follows its layering rules (tools/check_includes.py), and the checker detects violations of each rule. Options have constants in C, and public
# calls have names by rule and are used.
# shellcheck shell=bash
fail() { echo "$1" >&2; exit 1; }
objects=()
for folder in warpfst_objects.dir/src warpfst.dir/src warpfst_cuda_objects.dir/src warpfst_kernels.dir/src warpfst_cli.dir/cli; do
  folder=$(dirname "$WARPFST")/CMakeFiles/$folder
  [ ! -d "$folder" ] || objects+=(--objects "$folder")
done
[ ${#objects[@]} -gt 0 ] || fail "no object files in the folder of $WARPFST"
python3 "$SOURCE_DIR/tools/check_includes.py" "${objects[@]}"

# Options with a fixed set of values have constants in C (tools/check_enums.py).
python3 "$SOURCE_DIR/tools/check_enums.py"
mkdir -p enums/tools enums/include
cp "$SOURCE_DIR/tools/check_enums.py" enums/tools
row='#define WF_X_OPTIONS(X) X(ENUM, way, 0, 0, 0, "short|long", "help")'
printf 'enum { WF_WAY_SHORT, WF_WAY_LONG };\n%s\n' "$row" > enums/include/warpfst.h
python3 enums/tools/check_enums.py > out.txt || fail "good constants are refused: $(cat out.txt)"
printf 'enum { WF_WAY_LONG, WF_WAY_SHORT };\n%s\n' "$row" > enums/include/warpfst.h
! python3 enums/tools/check_enums.py > out.txt || fail "constants in another order pass"
grep -q 'option way: no enum of SHORT, LONG' out.txt || fail "$(cat out.txt)"

# The parameters of Triton's model are files and options.
for table in decoder stream; do "$WARPFST" options $table; done > options.txt
while read -r key; do
  grep -q "^  $key " options.txt || [ "$key" = graph ] || fail "config.pbtxt: no option $key"
done < <(sed -n 's/.*{ key: "\([a-z_]*\)".*/\1/p' "$SOURCE_DIR/triton/models/warpfst/config.pbtxt")

# The engineering pages say what a maintainer must know in 25,000 words in all.
few_words() { # FOLDER LIMIT
  local count
  count=$(cat "$1"/*.md | wc -w)
  [ "$count" -le "$2" ] || { echo "$1: $count words, more than $2" > out.txt; return 1; }
}
few_words "$SOURCE_DIR/docs/engineering" 25000 || fail "$(cat out.txt)"
mkdir -p words
echo 'one two three' > words/a.md
echo 'four' > words/b.md
few_words words 4 || fail "$(cat out.txt)"
! few_words words 3 || fail "a folder of many words passes"

# Public calls have names by rule, and each is used (tools/check_calls.py).
python3 "$SOURCE_DIR/tools/check_calls.py"
mkdir -p calls/tools calls/include calls/docs/reference calls/cli
cp "$SOURCE_DIR/tools/check_calls.py" calls/tools
printf '<!-- calls -->\n<!-- end of calls -->\n' > calls/docs/reference/c-calls.md
call() { # DECLARATION MESSAGE: '' for a good one
  printf 'WF_API wf_status wf_x_create(int a, wf_x **out);\nWF_API void wf_x_free(wf_x *x);\nWF_API %s;\n' "$1" > calls/include/warpfst.h
  grep -o 'wf_[a-z_]*(' calls/include/warpfst.h > calls/cli/main.c
  if [ -z "$2" ]; then
    python3 calls/tools/check_calls.py --write > out.txt || fail "$1: $(cat out.txt)"
  else
    ! python3 calls/tools/check_calls.py --write > out.txt || fail "$1 passes"
    grep -q "$2" out.txt || fail "$1: '$2' is not in $(cat out.txt)"
  fi
}
call 'wf_x *wf_x_ref(const wf_x *x)' ''
call 'wf_status wf_y_create(const char *path, wf_y **out)' 'of a file it is read or open'
call 'wf_status wf_y_open(int a, wf_y **out)' 'open takes a file'
call 'void wf_x_close(wf_x *x)' 'can fail, and goes with abort'
call 'void wf_y_free(wf_y *y)' 'clear frees what'
call 'void wf_x_clear(wf_x *x)' 'free frees an object'
call 'int wf_x_get(const wf_x *x)' 'get_ is for'
call 'wf_x_view wf_x_view(const wf_x *x)' 'get_view reads'
call 'size_t wf_x_size(const wf_x *x)' "'size' is called num_X"
call 'size_t wf_x_count(const wf_x *x)' 'count goes with at'
call 'wf_status wf_x_read_text(const char *text, size_t size, const char *name)' 'read_memory'
call 'wf_status wf_streams_go(wf_x *const *all, size_t count)' 'what wf_stream_go does for one'
echo > calls/cli/main.c
! python3 calls/tools/check_calls.py > out.txt || fail "calls that nobody makes pass"
grep -q 'wf_x_free: not called' out.txt || fail "$(cat out.txt)"
echo >> calls/docs/reference/c-calls.md
sed -i 's/wf_x_free//' calls/docs/reference/c-calls.md
! python3 calls/tools/check_calls.py > out.txt || fail "a page that is not up to date passes"
grep -q 'does not list the calls' out.txt || fail "$(cat out.txt)"

mkdir -p tree/tools tree/include tree/cli tree/src/base tree/src/fst tree/src/io tree/src/mystery
cp "$SOURCE_DIR/tools/check_includes.py" tree/tools
echo '/* x */' | tee tree/include/warpfst.h tree/src/base/base.h tree/src/fst/fst.h tree/src/io/io.h tree/cli/cli.h > /dev/null
printf '/* fine */\n#include "base/base.h"\n#include "warpfst.h"\n#include <math.h>\n' > tree/src/fst/good.c
printf '/* fine */\n#include "cli.h"\n' > tree/cli/cmd.c
python3 tree/tools/check_includes.py > out.txt || fail "a good tree is refused: $(cat out.txt)"

expect() { # FILE TEXT MESSAGE
  mkdir -p "$(dirname "tree/$1")"
  printf '%b' "$2" > "tree/$1"
  ! python3 tree/tools/check_includes.py > out.txt || fail "$1 passes"
  grep -q "^error: $1:.*$3" out.txt || fail "$1: '$3' is not in $(cat out.txt)"
  rm "tree/$1"
}
expect src/base/up.c '/* x */\n#include "fst/fst.h"\n' 'fst is above it'
expect src/fst/io.c '/* x */\n\n#include "io/io.h"\n' 'io is above it'
expect src/fst/lost.c '/* x */\n#include "fst.h"\n' 'no such file'
expect src/fst/angle.c '/* x */\n#include <fst/fst.h>\n' 'is a header of this project'
expect src/fst/order.c '/* x */\n#include "fst/fst.h"\n#include <math.h>\n#include "base/base.h"\n' '4: base/base.h belongs before fst/fst.h'
expect src/mystery/new.c '/* x */\n' 'is not in LEVELS'
expect cli/inside.c '/* x */\n#include "fst/fst.h"\n' 'cli may include only'
expect src/io/good.c '/* x */\n' 'same file name'
expect src/io/bare.c '\nint x;\n' 'comment'
expect src/io/path.c '/* x */\nconst char *p = "/ho""me/me/x";\n// /home''/me/x\n' 'absolute path'
expect tests/CMakeLists.txt 'set(FLAGS -DWF__GONE=1)\n' 'no source file of src/ uses WF__GONE'
expect src/io/long.c "/* x */\n$(printf 'int a;\\n%.0s' {1..600})" '601 lines'
printf '/* x */\nint f(int a,\n      int b) {\n%sreturn 0;\n}\n' "$(printf 'a++;\n%.0s' {1..70})" > tree/src/io/function.c
python3 tree/tools/check_includes.py > out.txt
grep -q 'function of 7[0-9] lines: .*int b' out.txt || fail "a long function is not reported"
! python3 tree/tools/check_includes.py --strict > out.txt || fail "--strict"
rm tree/src/io/function.c

# Calls between object files, on objects that are compiled here.
calls() { # FILE TEXT [FOLDER]
  local file=tree/${3:-src}/$1
  mkdir -p "$(dirname "objects/$1")" "$(dirname "$file")"
  printf '/* x */\n%b' "$2" > "$file"
  cc -c "$file" -o "objects/$1.o"
}
refused() { # MESSAGE
  ! python3 tree/tools/check_includes.py --objects objects > out.txt || fail "passes, not '$1'"
  grep -q "^error: $1" out.txt || fail "'$1' is not in $(cat out.txt)"
}
refused 'src/objects: no object files'
calls base/low.c 'int low(void) { return 1; }\n'
calls fst/high.c 'int low(void);\nint high(void) { return low(); }\n'
python3 tree/tools/check_includes.py --objects objects > out.txt || fail "a call downwards is refused: $(cat out.txt)"
calls base/up.c 'int high(void);\nint up(void) { return high(); }\n'
refused 'src/base/up.c: base may not call high of fst/high.c: fst is above it'
rm tree/src/base/up.c
python3 tree/tools/check_includes.py --objects objects > out.txt || fail "the object of a file that is gone counts: $(cat out.txt)"
calls fst/other.c 'int high(void);\nint other(void) { return high(); }\n'
calls fst/high.c 'int other(void);\nint high(void) { return other(); }\n'
refused 'src/fst/high.c: 2 files call each other: fst/high.c calls other of fst/other.c; fst/other.c calls high of fst/high.c'

# Calls between files of the program, and imports of Python modules.
rm -rf objects tree/src/base/low.c tree/src/fst/high.c tree/src/fst/other.c
calls one.c 'int two(void);\nint one(void) { return two(); }\n' cli
calls two.c 'int one(void);\nint two(void) { return one(); }\n' cli
refused 'cli/one.c: 2 files call each other: one.c calls two of two.c; two.c calls one of one.c'
rm tree/cli/one.c tree/cli/two.c
mkdir -p tree/python/warpfst/sub
printf 'from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .b import x\n' > tree/python/warpfst/a.py
printf 'from .a import y\nfrom .sub import c\n' > tree/python/warpfst/b.py
echo > tree/python/warpfst/sub/c.py
python3 tree/tools/check_includes.py > out.txt || fail "imports for types alone are refused: $(cat out.txt)"
printf 'def f():\n    from .. import b\n' > tree/python/warpfst/sub/c.py
! python3 tree/tools/check_includes.py > out.txt || fail 'modules that import each other pass'
grep -q '^error: python/warpfst/b.py: 2 modules import each other: b.py, sub/c.py$' out.txt || fail "not in $(cat out.txt)"
