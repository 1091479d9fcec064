# The library's ABI is compatible with the recorded release of the same major.minor version (checked with libabigail). Needs debug information in the
# library.
# shellcheck shell=bash
source "$SOURCE_DIR/tools/abi.sh"
command -v abidiff abidw >/dev/null || { echo 'skipped: no abigail-tools'; exit 77; }
readelf -S "$WARPFST_LIB" >sections.txt
grep -q debug_info sections.txt || { echo 'skipped: the library has no debug information (the sanitize preset has)'; exit 77; }
version=$("$WARPFST" version | sed -n 's/^[^ ]* \([0-9]*\.[0-9]*\)\..*/\1/p')
recorded=$SOURCE_DIR/tests/abi/warpfst-$version.abi.xz
[ -f "$recorded" ] || { echo "no $recorded: tools/record_abi.sh LIBRARY makes it"; exit 1; }
xz -dc "$recorded" >release.abi
dump_abi "$WARPFST_LIB" "$SOURCE_DIR/include" >now.abi

# New fields at the end are allowed in structures that begin with struct_size (tests/abi/callers.c), and in wf_result, which only the library makes.
cat >grows.abignore <<'END'
[suppress_type]
  name_regexp = ^wf_(.*_(options|info|stats|parts)|result)$
  has_data_member_inserted_at = end
END
compare() { abidiff --suppressions grows.abignore --no-added-syms release.abi "$1" >changes.txt; }
compare now.abi || { cat changes.txt; exit 1; }

# The comparison detects a removed function and a field at another offset.
sed "s/'wf_decode'/'wf_decode_gone'/g; s/wf_decode@/wf_decode_gone@/g" now.abi >gone.abi
! compare gone.abi || { echo 'a removed function is not detected'; exit 1; }
python3 - <<'END'
import pathlib, re
text = pathlib.Path("now.abi").read_text()
begin = text.index("name='wf_utterance'")
end = text.index("</class-decl>", begin)
moved = re.sub(r"layout-offset-in-bits='(\d+)'", lambda m: f"layout-offset-in-bits='{int(m[1]) + 64}'", text[begin:end])
assert moved != text[begin:end]
pathlib.Path("moved.abi").write_text(text[:begin] + moved + text[end:])
END
! compare moved.abi || { echo 'a moved field is not detected'; exit 1; }
