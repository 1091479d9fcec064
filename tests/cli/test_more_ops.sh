# map, difference, replace, encode, epsnormalize, synchronize, disambiguate, condense, reweight, factorweight, isomorphic and far: the same results as OpenFst's tools, and errors.
# shellcheck shell=bash
printf '0 1 1 2 0.5\n0 2 2 0 1\n1 2 0 3\n1 2 0 3 2\n2 0.25\n' >a.txt
printf '0 1 1 1\n1 1 2 2\n1 2 3 3\n1\n2\n' >accept.txt
printf '0 1 1 1\n1 2 3 3\n2\n' >minus.txt
printf '0 1 1 1 1\n0 2 1 1 2\n1 3 2 2\n2 3 2 2\n0 3 3 3\n3\n' >ambiguous.txt
for name in a accept minus ambiguous; do fstcompile $name.txt $name.fst; done

# same OUR_FILE THEIR_FILE: identical states and arcs
same() {
  fstequal "$1" "$2" || { echo "$1 and $2 differ"; fstprint "$1"; echo --; fstprint "$2"; exit 1; }
}
for type in arc_sum arc_unique identity input_epsilon invert output_epsilon quantize rmweight superfinal to_log to_std; do
  fstmap --map_type=$type a.fst want.fst
  "$WARPFST" map --map_type=$type a.fst got.fst && same got.fst want.fst
done
for type in plus times; do
  fstmap --map_type=$type --weight=0.75 a.fst want.fst
  "$WARPFST" map --map_type=$type --weight=0.75 a.fst got.fst && same got.fst want.fst
done
fstmap --map_type=power --power=2 a.fst want.fst
"$WARPFST" map --map_type=power --power=2 a.fst got.fst && same got.fst want.fst
fstdifference accept.fst minus.fst want.fst
"$WARPFST" difference accept.fst minus.fst got.fst && same got.fst want.fst
fstdisambiguate ambiguous.fst want.fst
"$WARPFST" disambiguate ambiguous.fst got.fst && same got.fst want.fst
fstsynchronize a.fst want.fst
"$WARPFST" synchronize a.fst got.fst && same got.fst want.fst
for side in "" --eps_norm_output; do
  # shellcheck disable=SC2086
  fstepsnormalize $side a.fst want.fst
  # shellcheck disable=SC2086
  "$WARPFST" epsnormalize $side a.fst got.fst && "$WARPFST" randequivalent got.fst want.fst
done
"$WARPFST" epsnormalize --eps_norm_type=output a.fst got2.fst && cmp got.fst got2.fst
"$WARPFST" shortestdistance --reverse a.fst potentials
for flag in "" --to_final; do
  # shellcheck disable=SC2086
  fstreweight $flag a.fst potentials want.fst
  # shellcheck disable=SC2086
  "$WARPFST" reweight $flag a.fst potentials got.fst && same got.fst want.fst
done
printf '0 1 1 1\n1 0 2 2\n1 2 3 3\n2 2 4 4\n2 1\n' | fstcompile - cyclic.fst
"$WARPFST" condense cyclic.fst | "$WARPFST" print - >got.txt
printf '0\t1\t3\t3\n1\t1\n' | cmp - got.txt

# calls: 100 and 101 are the labels of two fsts
printf '0 1 1 100 0.5\n1 2 2 101\n2 0.25\n' | fstcompile - root.fst
printf '0 1 5 6 1\n1 2\n' | fstcompile - first.fst
printf '0 1 7 100\n1\n' | fstcompile - second.fst
for flags in "" --call_arc_labeling=output --call_arc_labeling=both "--return_arc_labeling=both --return_label=9" --epsilon_on_replace; do
  # shellcheck disable=SC2086
  fstreplace $flags root.fst 99 first.fst 100 second.fst 101 want.fst
  # shellcheck disable=SC2086
  "$WARPFST" replace $flags root.fst 99 first.fst 100 second.fst 101 got.fst && same got.fst want.fst
done

# tables of labels in each other's files
for flags in --encode_labels --encode_weights "--encode_labels --encode_weights"; do
  # shellcheck disable=SC2086
  fstencode $flags a.fst theirs.table want.fst
  # shellcheck disable=SC2086
  "$WARPFST" encode $flags a.fst ours.table got.fst && same got.fst want.fst
  cmp ours.table theirs.table
  fstencode --decode got.fst ours.table want.fst
  "$WARPFST" encode --decode want.fst theirs.table got.fst >out 2>&1 && exit 1 # decoded already
  fstencode --encode_reuse accept.fst theirs.table want.fst
  "$WARPFST" encode --encode_reuse accept.fst ours.table got.fst && same got.fst want.fst
  "$WARPFST" encode --decode got.fst ours.table got2.fst && same got2.fst accept.fst # the table has the new labels, unlike OpenFst's
done

"$WARPFST" isomorphic a.fst a.fst
"$WARPFST" determinize --det_type=nonfunctional a.fst got.fst && "$WARPFST" randequivalent got.fst a.fst
printf '1 0 1 1\n0\n' | fstcompile - b.fst
printf '0 1 1 1\n1\n' | fstcompile --keep_state_numbering - c.fst
"$WARPFST" isomorphic b.fst c.fst
! "$WARPFST" isomorphic a.fst c.fst 2>err || exit 1
grep -q 'states 0 and 0 have' err
"$WARPFST" isomorphic --quiet a.fst c.fst >out 2>&1 && exit 1
[ ! -s out ]

# the figures of fstinfo
for file in a accept minus ambiguous cyclic; do
  fstinfo $file.fst | sed -n 's/^# of connected components *//p; s/^# of strongly conn components *//p; s/^input label multiplicity *//p; s/^output label multiplicity *//p; s/^string *//p; s/^weighted cycles *//p; s/^cyclic at initial state *//p' |
    sort >want.txt
  "$WARPFST" info $file.fst | sed -n 's/^connected components *//p; s/^strongly connected components *//p; s/^input label multiplicity *//p; s/^output label multiplicity *//p; s/^string *//p; s/^weighted cycles *//p; s/^cyclic at the start state *//p' |
    sed 's/^yes$/y/; s/^no$/n/' | sort >got.txt
  cmp got.txt want.txt || { echo "$file"; cat got.txt; echo --; cat want.txt; exit 1; }
done

# archives
for type in sttable stlist; do
  farcreate --far_type=$type a.fst b.fst theirs.far
  "$WARPFST" far create --far_type=$type a.fst b.fst ours.far
  farequal ours.far theirs.far && "$WARPFST" far equal ours.far theirs.far && "$WARPFST" far isomorphic ours.far theirs.far
  rm -rf unpacked && mkdir unpacked
  "$WARPFST" far extract --filename_prefix=unpacked/ theirs.far && same unpacked/a.fst a.fst && same unpacked/b.fst b.fst
  "$WARPFST" far info --list_fsts theirs.far >info.txt
  grep -q "^archive type *$type" info.txt && grep -q '^fsts *2' info.txt && grep -q '^arcs *5' info.txt && grep -q '^a.fst *3 *4 *1$' info.txt
  farcreate --far_type=$type a.fst c.fst theirs.far
  ! "$WARPFST" far equal ours.far theirs.far 2>err || exit 1
  grep -q "key 'b.fst' in the first archive, 'c.fst' in the second" err
done
"$WARPFST" far create --generate_keys=3 b.fst a.fst ours.far && "$WARPFST" far info --list_fsts --begin_key=002 ours.far | grep -q '^002 *3'
"$WARPFST" far info a.fst | grep -q '^fsts *1'

# archives of strings: those of farcompilestrings, whose table is with the first fst alone
printf 'one two\ntwo\n\n' >lines.txt
printf '<eps> 0\none 1\ntwo 2\n' >words.txt
farcompilestrings --symbols=words.txt --keep_symbols --generate_keys=2 lines.txt theirs.far
"$WARPFST" far compilestrings --symbols=words.txt --keep_symbols --generate_keys=2 lines.txt ours.far && farequal ours.far theirs.far
for far in ours theirs; do
  "$WARPFST" far printstrings --print_key $far.far >got.txt
  printf '01\tone two\t0\n02\ttwo\t0\n03\t\t0\n' | cmp - got.txt
  farprintstrings --print_key $far.far | cmp - <(printf '01\tone two\n02\ttwo\n03\t\n')
done
[ "$("$WARPFST" far printstrings --begin_key=02 --end_key=02 ours.far)" = "two	0" ]
for type in byte utf8; do
  printf 'w\303\266 \360\237\230\200\n' >lines.txt
  farcompilestrings --token_type=$type --generate_keys=9 lines.txt theirs.far
  "$WARPFST" far compilestrings --token-type=$type lines.txt ours.far && farequal ours.far theirs.far
  "$WARPFST" far printstrings --token-type=$type ours.far | cmp - <(printf 'w\303\266 \360\237\230\200\t0\n')
done

# pictures: the text for Graphviz has all states and arcs, and files of a name in .svg are pictures
printf '<eps> 0\n"x\\ 1\n' >quoted.txt
printf '0 1 1 0 0.5\n1 0.25\n' | fstcompile - drawn.fst
"$WARPFST" draw drawn.fst --isymbols=quoted.txt >drawn.dot
grep -qF '0 -> 1 [label = "\"x\\:ε/0.5"];' drawn.dot && grep -qF '1 [label = "1/0.25", shape = doublecircle];' drawn.dot
"$WARPFST" draw drawn.fst again.gv --isymbols=quoted.txt && cmp drawn.dot again.gv
"$WARPFST" draw drawn.fst -o drawn.svg && grep -q '^<svg ' drawn.svg
if command -v dot >/dev/null; then dot -Tsvg drawn.dot >graphviz.svg; fi

# stochastic fsts
printf '0 1 1 1 0.6931472\n0 1 2 2 0.6931472\n1\n' | fstcompile - half.fst
"$WARPFST" isstochastic half.fst >got.txt && grep -q '^0 ' got.txt
! "$WARPFST" isstochastic drawn.fst >got.txt || exit 1
[ "$(cat got.txt)" = "0.25 0.5" ] && "$WARPFST" isstochastic --delta=0.5 drawn.fst >/dev/null

# results pruned as OpenFst prunes them
printf '0 1 1 1 1\n0 2 0 0 1.25\n2 1 2 2\n0 3 3 3 5\n3 1 3 3\n1\n' | fstcompile - near.fst
for flags in --weight=1 --nstate=2 --weight=10; do
  fstrmepsilon $flags near.fst want.fst && "$WARPFST" rmepsilon $flags near.fst got.fst && "$WARPFST" isomorphic got.fst want.fst
  [ $flags != --nstate=2 ] || continue # OpenFst counts the states before it prunes them
  fstrmepsilon near.fst | fstdeterminize $flags - want.fst
  "$WARPFST" rmepsilon near.fst | "$WARPFST" determinize $flags - got.fst && "$WARPFST" isomorphic got.fst want.fst
done
fstshortestpath --nshortest=5 --weight=1 near.fst want.fst && "$WARPFST" shortestpath --nshortest=5 --weight=1 near.fst got.fst
"$WARPFST" randequivalent --npath=50 got.fst want.fst && [ "$("$WARPFST" print --strings got.fst | wc -l)" = 2 ]

# strings of paths
printf '0 1 97 98 0.5\n1 2 195 0\n1 3 0 99 1\n2 3 169 233\n3 1\n' | fstcompile - strings.fst
"$WARPFST" print --strings --token-type=byte strings.fst >got.txt
printf 'a\303\251\tb\351\t1.5\na\tbc\t2.5\n' | cmp - got.txt
"$WARPFST" print --strings --token-type=utf8 strings.fst out.txt
printf 'a\303\203\302\251\tb\303\251\t1.5\na\tbc\t2.5\n' | cmp - out.txt
printf '<eps> 0\nx 97\ny 98\n' >table.txt
[ "$("$WARPFST" print --strings --isymbols=table.txt --osymbols=table.txt strings.fst | head -1)" = "x 195 169	y 233	1.5" ]
[ "$("$WARPFST" project strings.fst | "$WARPFST" print --strings | tail -1)" = "97	2.5" ]

printf '0 1 1 0 0.5\n0 1 2 4\n1 2\n' | fstcompile - f.fst
printf '1 final 8 9\n\n0 0 7 8 9\n' | "$WARPFST" factorweight --final-ilabel=3 f.fst - | "$WARPFST" print - >out.txt
printf '0\t4\t1\t7\t0.5\n0\t1\t2\t4\n1\t5\t3\t8\t2\n2\n3\t1\t0\t9\n4\t3\t0\t8\n5\t2\t3\t9\n' | cmp - out.txt

# refuses CODE TEXT COMMAND...: the command exits with CODE, and its message contains TEXT
refuses() {
  local code=$1 text=$2 got=0
  shift 2
  "$WARPFST" "$@" 2>message >out || got=$?
  [ "$got" = "$code" ] || { echo "$*: exit $got, not $code"; cat message; exit 1; }
  grep -q -e "$text" message || { echo "$*: no '$text' in:"; cat message; exit 1; }
  [ ! -e none.fst ] || { echo "$*: left an output"; exit 1; }
}
refuses 2 'acceptor without weights' difference accept.fst a.fst none.fst
refuses 2 'not a label' replace root.fst x none.fst
refuses 2 'calls itself' replace root.fst 99 second.fst 100 second.fst 101 none.fst
refuses 2 'listed twice' replace root.fst 99 first.fst 99 none.fst
refuses 2 'labels, weights or both' encode a.fst ours.table none.fst
refuses 3 'not a table' encode --decode a.fst a.fst none.fst
refuses 2 'different numbers of input and output' synchronize <(printf '0 0 1 0 1\n0\n' | fstcompile) none.fst
printf '0 x\n' >potentials
refuses 3 'potentials:1' reweight a.fst potentials none.fst
for line in '0 2 7' '9 final 1' 'x' '0 0 1 0' '0 0 2147483648' '0 0 -1'; do
  echo "$line" >lines.txt
  refuses 3 'lines.txt:1: expected' factorweight f.fst lines.txt none.fst
done
printf '0 0 1\n0 0 1\n' >lines.txt
refuses 3 'lines.txt:2: .*each once' factorweight f.fst lines.txt none.fst
refuses 2 "key 'a.fst' comes after 'b.fst'" far create b.fst a.fst none.fst
refuses 3 'not an archive' far info a.txt
refuses 2 'must be a plain file, but standard output is a stream' far create a.fst -
printf '1 x\n' >lines.txt
refuses 3 "lines.txt:1: 'x' is not a label" far compilestrings lines.txt none.fst
refuses 3 "symbol '1' is not in the table" far compilestrings --symbols=words.txt lines.txt none.fst
printf 'a\377\n' >lines.txt
refuses 3 'lines.txt:1: not UTF-8' far compilestrings --token-type=utf8 lines.txt none.fst
refuses 4 'more than 1 strings' print --strings --max-strings=1 strings.fst
refuses 4 'has a cycle' print --strings cyclic.fst
refuses 2 'is not symbol, byte or utf8' print --strings --token-type=word strings.fst
