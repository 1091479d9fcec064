# compose and the structural subcommands (connect, reverse, union, relabel, ...) give the same fsts as OpenFst's tools.
# shellcheck shell=bash
printf '0 1 1 2 0.5\n0 2 2 0 1\n1 2 0 3\n2 0.25\n' >a.txt
printf '0 1 2 4 0.5\n0 0 3 0\n1 1 3 5 1.5\n1\n' >b.txt
fstcompile a.txt a.fst
fstcompile b.txt b.fst
fstarcsort --sort_type=olabel a.fst as.fst
fstarcsort --sort_type=ilabel b.fst bs.fst

# same OUR_FILE THEIR_FILE: identical states and arcs
same() {
  fstequal "$1" "$2" || { echo "$1 and $2 differ"; fstprint "$1"; echo --; fstprint "$2"; exit 1; }
}
for filter in auto sequence alt_sequence match no_match trivial null; do
  fstcompose --compose_filter=$filter as.fst bs.fst want.fst
  "$WARPFST" compose --compose_filter=$filter a.fst b.fst got.fst
  same got.fst want.fst
  "$WARPFST" compose --filter=$filter as.fst bs.fst -o got2.fst
  cmp got.fst got2.fst
done
fstcompose --connect=false as.fst bs.fst want.fst
"$WARPFST" compose --connect=false a.fst b.fst >got.fst
same got.fst want.fst
"$WARPFST" compose --no-connect - b.fst <a.fst >got.fst
same got.fst want.fst

for op in connect topsort invert reverse closure; do
  fst$op a.fst want.fst
  "$WARPFST" $op a.fst got.fst
  same got.fst want.fst
  "$WARPFST" $op <a.fst -o got2.fst
  cmp got.fst got2.fst
done
for op in arcsort connect; do
  "$WARPFST" $op a.fst want.fst
  "$WARPFST" $op --device=cpu a.fst got.fst
  cmp got.fst want.fst
done
! "$WARPFST" connect --device=tpu a.fst got.fst 2>err || exit 1
fstclosure --closure_plus a.fst want.fst
"$WARPFST" closure --closure_plus a.fst got.fst && same got.fst want.fst
"$WARPFST" closure --closure_type=plus a.fst got.fst && same got.fst want.fst
fstproject --project_type=output a.fst want.fst
"$WARPFST" project --project_type=output a.fst got.fst && same got.fst want.fst
"$WARPFST" project --project_output a.fst got.fst && same got.fst want.fst
fstproject a.fst want.fst
"$WARPFST" project a.fst got.fst && same got.fst want.fst
"$WARPFST" arcsort --sort_type=olabel a.fst got.fst && same got.fst as.fst
"$WARPFST" arcsort b.fst got.fst && same got.fst bs.fst
for op in union concat; do
  fst$op a.fst b.fst want.fst
  "$WARPFST" $op a.fst b.fst got.fst && same got.fst want.fst
  "$WARPFST" $op got.fst a.fst want.fst
  "$WARPFST" $op a.fst b.fst a.fst -o got.fst
  cmp got.fst want.fst
done

# labels
printf '1 7\n2 1\n\n' >pairs
fstrelabel --relabel_ipairs=pairs --relabel_opairs=pairs a.fst want.fst
"$WARPFST" relabel --relabel_ipairs=pairs --relabel_opairs=pairs a.fst got.fst && same got.fst want.fst
printf '<eps> 0\nx 1\ny 2\nz 3\n' >old.txt
printf '<eps> 0\nz 5\ny 6\nx 7\n' >new.txt
fstrelabel --isymbols=old.txt --relabel_isymbols=new.txt a.fst | fstsymbols --clear_isymbols - want.fst
"$WARPFST" relabel --isymbols=old.txt --relabel_isymbols=new.txt a.fst got.fst
fstprint --save_isymbols=table.txt got.fst >/dev/null
grep -q 'x.7' table.txt
fstsymbols --clear_isymbols got.fst got2.fst && same got2.fst want.fst
printf '10\n11\n' >in.list
printf '20\n21\n' >out.list
"$WARPFST" addselfloops in.list out.list a.fst got.fst
printf '0 1 1 2 0.5\n0 2 2 0 1\n0 0 10 20\n0 0 11 21\n1 2 0 3\n1 1 10 20\n1 1 11 21\n2 2 10 20\n2 2 11 21\n2 0.25\n' | fstcompile --keep_state_numbering - want.fst
same got.fst want.fst
"$WARPFST" rmsymbols in.list got.fst got2.fst
test "$(fstprint got2.fst | awk '$3 == 10 || $3 == 11' | wc -l)" = 0
test "$(fstprint got2.fst | awk '$4 == 20 && $3 == 0' | wc -l)" = 3

# Errors are reported and leave no output file.
# refuses CODE TEXT COMMAND...: the command exits with CODE, and its message contains TEXT
refuses() {
  local code=$1 text=$2 got=0
  shift 2
  "$WARPFST" "$@" 2>message >out || got=$?
  [ "$got" = "$code" ] || { echo "$*: exit $got, not $code"; exit 1; }
  grep -q -e "$text" message || { echo "$*: no '$text' in:"; cat message; exit 1; }
  [ ! -e none.fst ] || { echo "$*: left an output"; exit 1; }
}
refuses 2 'too few' compose a.fst -o none.fst
refuses 2 'filter' compose --filter=best a.fst b.fst none.fst
refuses 3 'missing.fst' compose missing.fst b.fst none.fst
refuses 4 'more than 1 states' compose --max_states=1 as.fst bs.fst none.fst
refuses 2 'failure label 3' compose --phi_label=3 a.fst b.fst none.fst
refuses 2 'cycle' topsort b.fst none.fst
printf '1 2\n\nx 3\n' >pairs
refuses 3 'pairs:3' relabel --relabel_ipairs=pairs a.fst none.fst
printf '1 2 3\n' >pairs
refuses 3 'pairs:1: found 3 labels, expected 2' relabel --relabel_ipairs=pairs a.fst none.fst
printf '1 2\n1 3\n' >pairs
refuses 2 'listed twice' relabel --relabel_ipairs=pairs a.fst none.fst
printf '<eps> 0\nz 5\n' >new.txt
refuses 3 "symbol 'x'" relabel --isymbols=old.txt --relabel_isymbols=new.txt a.fst none.fst
refuses 2 'no input symbol table' relabel --relabel_isymbols=new.txt a.fst none.fst
printf '10\n' >in.list
refuses 2 'found 1 input labels' addselfloops in.list out.list a.fst none.fst
refuses 2 'need -o' union a.fst b.fst a.fst none.fst
fstcompile --arc_type=log a.txt log.fst
refuses 2 'semiring\|arc type' compose log.fst b.fst none.fst
# Symbol tables that differ: refused, with the first difference and the way out, unless --no-check-symbols.
printf '<eps> 0\nx 1\ny 2\n' >one.txt
printf '<eps> 0\ny 1\nx 2\n' >two.txt
for name in one two; do printf '0 1 x\n1\n' | "$WARPFST" compile --acceptor --isymbols=$name.txt --osymbols=$name.txt --keep_isymbols --keep_osymbols - $name.fst; done
for op in compose union concat difference "replace --root=5"; do
  inputs='one.fst two.fst'
  [ "${op%% *}" != replace ] || inputs='one.fst 5 two.fst 6'
  # shellcheck disable=SC2086
  refuses 2 "key 1 is 'x' in the .* of fst 1 and 'y' in the .* of fst 2.*check_symbols" $op $inputs none.fst
  # shellcheck disable=SC2086
  "$WARPFST" $op --no-check-symbols $inputs out.fst || { echo "$op --no-check-symbols"; exit 1; }
done
for op in equivalent randequivalent; do
  refuses 2 "key 1 is 'x'" $op one.fst two.fst
  got=0
  "$WARPFST" $op --no-check-symbols -q one.fst two.fst || got=$?
  [ "$got" = 1 ] || { echo "$op --no-check-symbols: exit $got, not 1"; exit 1; }
done
refuses 1 "key 1 is 'x'" equal one.fst two.fst
