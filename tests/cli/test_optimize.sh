# determinize, minimize, rmepsilon, push and shortestdistance: flags, input and output files, messages and exit codes; results against OpenFst's tools.
# shellcheck shell=bash
expect() { # CODE COMMAND...: the command exits with CODE; its standard error is in the file `err`
  local want=$1 code=0
  shift
  "$@" 2>err || code=$?
  [[ $code == "$want" ]] || { echo "exit $code, not $want: $*"; cat err; exit 1; }
}

printf '<eps> 0\na 1\nb 2\nc 3\nx 4\ny 5\n' >syms
cat >in.txt <<'END'
0 1 a x 1
0 2 a x 2
1 3 b <eps> 1
2 4 c <eps> 0.5
3 5 <eps> <eps> 0.5
4 5 <eps> <eps> 1
5 1.5
END
fstcompile --isymbols=syms --osymbols=syms --keep_isymbols --keep_osymbols in.txt in.fst

# Every command with files, -o, positional output and pipes; OpenFst reads the result.
"$WARPFST" determinize in.fst -o d.fst
"$WARPFST" determinize in.fst d2.fst
"$WARPFST" determinize <in.fst | cmp - d.fst
cmp d.fst d2.fst
"$WARPFST" determinize --device=cpu in.fst on_device.fst
cmp on_device.fst d.fst
! "$WARPFST" determinize --device=tpu in.fst out.fst 2>err || exit 1
fstdeterminize in.fst od.fst
fstequal --delta=0.001 d.fst od.fst
"$WARPFST" rmepsilon d.fst r.fst
fstrmepsilon d.fst or.fst
"$WARPFST" rmepsilon --device=cpu d.fst on_device.fst
cmp on_device.fst r.fst
! "$WARPFST" rmepsilon --device=tpu d.fst out.fst 2>err || exit 1
fstequivalent --random --npath=100 r.fst or.fst
"$WARPFST" push in.fst p.fst
fstpush --push_weights in.fst op.fst
fstequal --delta=0.001 p.fst op.fst
"$WARPFST" push --to_final --remove_total_weight in.fst p.fst
fstpush --push_weights --to_final --remove_total_weight in.fst op.fst
fstequal --delta=0.001 p.fst op.fst
"$WARPFST" minimize d.fst m.fst
"$WARPFST" minimize --device=cpu d.fst on_device.fst
cmp on_device.fst m.fst
! "$WARPFST" minimize --device=tpu d.fst out.fst 2>err || exit 1
fstequivalent --random --npath=100 m.fst in.fst
[[ $(fstinfo m.fst | grep '^# of states' | tr -dc 0-9) == 4 ]]
"$WARPFST" minimize --no-encode-labels d.fst m.fst
fstequivalent --random --npath=100 m.fst in.fst
"$WARPFST" minimize --no-push-weights --delta=0 d.fst m.fst
fstequivalent --random --npath=100 m.fst in.fst

# The same distances as OpenFst prints.
fstshortestdistance in.fst >want
"$WARPFST" shortestdistance in.fst | diff - want
fstshortestdistance --reverse in.fst >want
"$WARPFST" shortestdistance --reverse -o got in.fst
diff got want
fstmap --map_type=to_log in.fst in_log.fst
fstshortestdistance --reverse in_log.fst >want
"$WARPFST" shortestdistance --reverse in_log.fst | diff - want

# For an acceptor, determinize --rmepsilon equals epsilon removal followed by determinization.
fstproject --project_type=input in.fst a.fst 2>/dev/null || fstproject in.fst a.fst
"$WARPFST" determinize --rmepsilon a.fst da.fst
fstrmepsilon a.fst | fstdeterminize - oda.fst
fstequivalent --delta=0.001 da.fst oda.fst

# An fst that is not functional: the message shows an input with two outputs, in symbols.
printf '0 1 a x\n0 2 a y\n1 3 b <eps>\n2 3 b <eps>\n3\n' | fstcompile --isymbols=syms --osymbols=syms --keep_isymbols --keep_osymbols - bad.fst
expect 4 "$WARPFST" determinize bad.fst out.fst
grep -q 'input "a b" has outputs "x" and "y"' err
[[ ! -e out.fst ]]
expect 4 "$WARPFST" determinize --device=cpu bad.fst out.fst
grep -q 'fst 0: not functional: input "a b" has outputs "x" and "y"' err
expect 0 "$WARPFST" determinize --allow-nonfunctional bad.fst out.fst

# Two paths whose cost difference grows without limit: --max-states stops the determinization, and the message shows the string.
printf '0 1 1 1\n0 2 1 1\n1 1 2 2 1\n2 2 2 2 2\n1 3 3 3\n2 3 4 4\n3\n' | fstcompile - twins.fst
expect 4 "$WARPFST" determinize --max-states=20 twins.fst out2.fst
grep -q 'after 20 states' err
grep -q '1 2 2 2' err

# Errors: not deterministic, negative cycle, bad flags and files.
expect 2 "$WARPFST" minimize twins.fst out2.fst
grep -q 'not deterministic: state 0' err
expect 0 "$WARPFST" minimize --allow-nondet twins.fst out2.fst
printf '0 0 1 1 -1\n0\n' | fstcompile - negative.fst
expect 3 "$WARPFST" shortestdistance negative.fst
grep -q 'negative cost' err
expect 3 "$WARPFST" push negative.fst out3.fst
expect 3 "$WARPFST" minimize negative.fst out3.fst
expect 0 "$WARPFST" minimize --no-push-weights negative.fst out3.fst
expect 2 "$WARPFST" determinize --delta=-1 in.fst out4.fst
expect 2 "$WARPFST" determinize --nonsense in.fst out4.fst
expect 3 "$WARPFST" rmepsilon missing.fst out4.fst
[[ ! -e out4.fst ]]

# Every command accepts the empty fst.
: | fstcompile - empty.fst
for op in determinize minimize rmepsilon push; do
  "$WARPFST" $op empty.fst e.fst
  [[ $(fstprint e.fst) == "" ]]
done
[[ $("$WARPFST" shortestdistance empty.fst) == "" ]]
