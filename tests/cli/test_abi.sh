# Programs compiled against older and newer headers run with this library. It does not write beyond the end of their structures, and the fields that both know
# work.
# shellcheck shell=bash
sanitizer=()
if grep -q '^WARPFST_SANITIZE:[A-Z]*=.' "$BUILD_DIR/CMakeCache.txt"; then
  sanitizer=("-fsanitize=$(sed -n 's/^WARPFST_SANITIZE:[A-Z]*=//p' "$BUILD_DIR/CMakeCache.txt")")
fi
for kind in older newer; do
  python3 "$SOURCE_DIR/tests/abi/change_header.py" $kind "$SOURCE_DIR/include" "$kind" | tee "$kind.txt"
  [ "$(sed -n 's/.*: \([0-9]*\) lists of options, \([0-9]*\) structures/\1/p' $kind.txt)" -gt 25 ] || { echo "$kind: too few lists were changed"; exit 1; }
  [ "$(sed -n 's/.*, \([0-9]*\) structures/\1/p' $kind.txt)" -gt 10 ] || { echo "$kind: too few structures were changed"; exit 1; }
  define=()
  [ $kind = older ] || define=(-DNEWER)
  "${CC:-cc}" -std=c11 -Wall -Wextra -Werror "${define[@]}" "${sanitizer[@]}" -I $kind "$SOURCE_DIR/tests/abi/callers.c" "$WARPFST_LIB" -Wl,-rpath,"$(dirname "$WARPFST_LIB")" -o callers_$kind
  ./callers_$kind "$SOURCE_DIR/tests/data/lm/endings.arpa"
done
