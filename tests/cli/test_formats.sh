# info, print, compile and convert give the same results as OpenFst's tools.
# shellcheck shell=bash
fail() { echo "FAILED: $*" >&2; exit 1; }
# expect CODE FRAGMENT COMMAND...: the command exits with CODE and writes FRAGMENT to standard error.
expect() {
  local code=$1 fragment=$2 got=0
  shift 2
  "$@" >out.txt 2>err.txt || got=$?
  [ "$got" = "$code" ] || fail "$*: exit code $got, expected $code: $(cat err.txt)"
  grep -qF -- "$fragment" err.txt || fail "$*: expected '$fragment', got: $(cat err.txt)"
}

printf '<eps> 0\na 1\nb 2\nwort\xc3\xa4 7\n' >words.txt
printf '5 9 a b 0.5\n5 2 <eps> wort\xc3\xa4\n9 2 b <eps> 1e-3\n2 1.5\n9\n' >text.txt
symbols="--isymbols=words.txt --osymbols=words.txt"

# compile: the same fst as fstcompile makes; the output given by position, by -o, and as a pipe
fstcompile $symbols text.txt ref.fst
"$WARPFST" compile $symbols text.txt ours.fst
fstequal --delta=0 ref.fst ours.fst || fail "compile differs from fstcompile"
"$WARPFST" compile $symbols <text.txt >piped.fst
cmp ours.fst piped.fst
"$WARPFST" compile $symbols text.txt -o named.fst
cmp ours.fst named.fst
fstcompile $symbols --keep_isymbols --keep_osymbols --keep_state_numbering --arc_type=log text.txt ref_log.fst
"$WARPFST" compile $symbols --keep_isymbols --keep-osymbols --keep_state_numbering --arc_type=log text.txt ours_log.fst
fstequal --delta=0 ref_log.fst ours_log.fst || fail "compile with options differs from fstcompile"
[ "$(fstinfo ours_log.fst | awk '/input symbol table/ {print $NF; exit}')" = words.txt ] || fail "the symbol table was not kept"
"$WARPFST" compile $symbols --arc_type=log64 text.txt log64.fst
fstcompile $symbols --arc_type=log64 text.txt ref64.fst
fstequal ref64.fst log64.fst || fail "log64"

# print: the same text as fstprint writes, with the file's symbol tables, given tables, and numbers
for flags in "" "--numeric" "--show_weight_one" "$symbols --missing_symbol=none"; do
  for file in ref.fst ref_log.fst; do
    fstprint $flags $file >theirs.txt
    "$WARPFST" print $flags $file mine.txt
    cmp theirs.txt mine.txt || fail "print $flags $file"
  done
done
"$WARPFST" print --save_isymbols=saved.txt ref_log.fst /dev/null
diff <(tr ' ' '\t' <words.txt) saved.txt
"$WARPFST" print $symbols ref.fst | "$WARPFST" compile $symbols | fstequal ref.fst - || fail "print | compile"

# convert: every format to every other; OpenFst's tools read the vector and const files
for from in ref.fst ref_log.fst; do
  for first in vector const native; do
    "$WARPFST" convert $from --to $first 1.fst
    [ $first = native ] || fstinfo --test_properties 1.fst >/dev/null
    for second in vector const native; do
      "$WARPFST" convert 1.fst --format=$second 2.fst
      "$WARPFST" convert 2.fst -o 3.fst
      fstequal --delta=0 $from 3.fst || fail "$from to $first to $second"
      fstprint 3.fst | cmp - <(fstprint $from) || fail "$from to $first to $second: text"
    done
  done
done
fstconvert --fst_type=const --fst_align=true ref_log.fst aligned.fst
"$WARPFST" convert aligned.fst 4.wfst
"$WARPFST" info 4.wfst | grep '^file type  *native$' >/dev/null || fail "a file named .wfst is not in native format"
"$WARPFST" convert 4.wfst | fstequal - ref_log.fst
"$WARPFST" convert ref.fst --arc-type=log $symbols 5.fst
fstprint 5.fst | cmp - <(fstprint $symbols ref.fst) || fail "convert --arc-type with symbols"
[ "$(fstinfo 5.fst | awk '/^arc type/ {print $3}')" = log ] || fail "convert --arc-type"
"$WARPFST" convert ref_log.fst --drop-symbols | fstprint | cmp - <(fstprint --numeric ref_log.fst) || fail "--drop-symbols"
"$WARPFST" convert ref_log.fst --arc-type=log64 --to const | fstinfo - | grep 'log64' >/dev/null || fail "log64 const"
gzip -c 4.wfst >5.gz
"$WARPFST" convert 5.gz | fstequal - ref_log.fst

# info: the same numbers as fstinfo prints
"$WARPFST" info ours.fst >info.txt
fstinfo ours.fst >theirs.txt
same() {
  local ours theirs
  ours=$(sed -n "s/^$1  *//p" info.txt) theirs=$(sed -n "s/^$2  *//p" theirs.txt)
  [ -n "$ours" ] && [ "$ours" = "$theirs" ] || fail "info: $1 is '$ours', fstinfo says '$theirs'"
}
same "states" "# of states"
same "arcs" "# of arcs"
same "start state" "initial state"
same "final states" "# of final states"
same "input epsilons" "# of input epsilons"
same "output epsilons" "# of output epsilons"
same "accessible states" "# of accessible states"
same "coaccessible states" "# of coaccessible states"
same "connected states" "# of connected states"
"$WARPFST" info --json 4.wfst | python3 -c '
import json, sys
info = json.load(sys.stdin)
assert info["file_type"] == "native" and info["arc_type"] == "log" and info["states"] == 10 and info["arcs"] == 3, info
assert info["connected_states"] == 3 and info["isymbols"] == {"name": "words.txt", "size": 4} and info["properties"]["acyclic"] is True, info
'

# errors: exit codes and messages
expect 3 "looks like text" "$WARPFST" info text.txt
expect 3 "nothing.fst: cannot open" "$WARPFST" print nothing.fst
expect 3 "text.txt:1: input label 'a' is not a label number" "$WARPFST" compile text.txt
expect 3 "text.txt:2: output label 'wort" "$WARPFST" compile --isymbols=words.txt --osymbols=<(printf '<eps> 0\nb 1\n') text.txt
expect 2 "unknown format 'cosnt'" "$WARPFST" convert ref.fst --to cosnt x.fst
expect 2 "unknown arc type" "$WARPFST" convert ref.fst --arc-type real x.fst
expect 2 "log64 needs" "$WARPFST" convert ref.fst --arc-type log64 x.wfst
expect 2 "output label 7 is not in the symbol table" "$WARPFST" print ref.fst --isymbols=words.txt --osymbols=<(printf '<eps> 0\nb 2\n')
head -c 300 4.wfst >cut.wfst
expect 3 "cut short: 300 bytes" "$WARPFST" info cut.wfst
expect 3 "make or copy it again" "$WARPFST" info cut.wfst
{ head -c 250 4.wfst; printf 'x'; tail -c +252 4.wfst; } >damaged.wfst
expect 3 "damaged (checksum)" "$WARPFST" info damaged.wfst
head -c 100 ref.fst >cut.fst
expect 3 "truncated or damaged" "$WARPFST" print cut.fst
expect 3 "cannot write" "$WARPFST" convert ref.fst /nowhere/x.fst
[ ! -e x.fst ] && [ ! -e x.wfst ] || fail "a failed conversion left a file"
echo "formats: passed"
