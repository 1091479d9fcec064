# The library exports exactly the functions that the public headers declare, and these are the ones listed in tests/abi/exports.txt.
# shellcheck shell=bash
source "$SOURCE_DIR/tools/abi.sh"
fail() { echo "$1" >&2; exit 1; }
listed=$SOURCE_DIR/tests/abi/exports.txt
exported_symbols "$WARPFST_LIB" > exported.txt
declared_functions "$SOURCE_DIR/include/warpfst_all.h" > declared.txt
[ "$(wc -l < exported.txt)" -gt 100 ] || fail "only $(wc -l < exported.txt) exported symbols: nm does not work"
diff declared.txt exported.txt || fail "declared in the headers (<) and exported by the library (>) differ"
diff "$listed" exported.txt ||
  fail "tests/abi/exports.txt (<) and the library (>) differ; if the change is intended (for example, a merge that adds functions), run tools/update_exports.sh and commit"

# The comparison detects one more function in a header, and one more symbol in a library.
cp -r "$SOURCE_DIR/include" more
sed -i 's/^WF_API const char \*wf_version(void);/&\nWF_API void wf_missing(\n    int a);/' more/warpfst.h
declared_functions more/warpfst_all.h > more.txt
[ "$(diff declared.txt more.txt | grep '^[<>]')" = '> wf_missing' ] || fail "a new declaration is not detected"
echo 'int leak(void); int leak(void) { return 1; } int wf__internal(void); int wf__internal(void) { return 1; } static int hidden; int *stray = &hidden;' > leak.c
"${CC:-cc}" -shared -fPIC leak.c -o leak.so
[ "$(exported_symbols leak.so | tr '\n' ' ')" = 'leak stray ' ] || fail "a leaked symbol is not detected: $(exported_symbols leak.so)"
