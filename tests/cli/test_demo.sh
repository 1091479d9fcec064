# The demo runs to its end, prints the expected figures, and reports a figure that differs. Runs on a copy of the examples, some of which are then changed.
# shellcheck shell=bash
cp -r "$SOURCE_DIR/examples" examples
fail() { echo "FAILED: $*"; cat demo.txt; exit 1; }
demo() { # CODE ARGUMENTS...
  local want=$1 code=0
  shift
  bash examples/demo.sh --warpfst "$WARPFST" --work work "$@" > demo.txt 2> problems.txt || code=$?
  [ $code = "$want" ] || { cat problems.txt; fail "exit code $code, not $want"; }
}
says() { grep -qe "$1" demo.txt || fail "no line '$1'"; }

demo 0
[ ! -s problems.txt ] || fail "$(cat problems.txt)"
says '^L o G  *[0-9]* '
says 'TLG.wfst: [0-9]* states, [0-9]* arcs'
says '^WER 37.40% (389 of 1040 words)'
says '^  REF:  SO JOHN WENT ON FOOT$'
says '^  HYP:  SO TO   WENT ON FOOT$'
says '^   *[0-9.]* -  *[0-9.]*  [A-Z]* *#*$'
says '^   119.60  make me a medium roast iced coffee with milk$'
[ "$(grep -c '^   *[0-9]*\.[0-9][0-9]  [a-z]' demo.txt)" = 16 ] || fail "not 8 commands, expected and recognised"
says '^  read English  200 utterances, 11.7 min, .*: WER 37.40%$'
says '^  commands      8 utterances, 1.1 min, .*: 8 of 8 as expected, words and costs$'
says '^oracle WER 17.31% '
says '^200 lattices, 1026 words, .* WER 36.63% (381 of 1040 words)'
says '^  25.52[0-9]*  KATE LOVES CHINA$'
says '^    0.6980  LOVES$'
grep -q '>CHINA</text>' work/000030024.html || fail "no picture of the lattice"
[ "$(awk 'length > 100' demo.txt)" = "" ] || fail "lines wider than 100 columns"

# Word error rates of all topologies, on the 200 utterances.
demo 0 --data examples/ctc
[ "$(grep -c '^phone  *[a-z]*  *0.7  *[0-9]*  *[0-9]*  *[0-9.]*  *[0-9.]*%  *1040 ' demo.txt)" = 4 ] || fail "not 4 rows"
says '^phone   compact .* 37.50% '
says '^bpe: no folder'
demo 1 --data work
grep -q "no scores in" problems.txt

# The demo must report a different word, a different cost, and a changed reference.
sed -i 's/iced coffee with milk/iced coffee with cream/' examples/hybrid/coffee/expected
demo 1
grep -qx 'UNEXPECTED RESULT: only 7 of 8 commands are as expected' problems.txt || fail "$(cat problems.txt)"
sed 's/ 119.60)/ 119.70)/' "$SOURCE_DIR/examples/hybrid/coffee/expected" > examples/hybrid/coffee/expected
sed -i 's/ THE / A /' examples/ctc/text
demo 1
grep -q 'only 7 of 8' problems.txt && grep -q 'the word error rate is above' problems.txt || fail "$(cat problems.txt)"
demo 2 --nonsense
