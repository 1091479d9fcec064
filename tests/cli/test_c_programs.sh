# The programs of examples/c compile without warnings, run, free what they allocate, and print what they should. Every C block of a page is one of them:
# docs/how-to/c.md, docs/how-to/streaming.md, docs/how-to/composition.md.
# shellcheck shell=bash
fail() { echo "$*" >&2; exit 1; }

# is_program FILE: the C blocks of a page, each compared with the programs.
blocks() { # PAGE...
  awk '/^```c$/ { n++; inside = 1; next } /^```$/ { inside = 0 } inside { print > ("block" n ".c") }' "$@"
}
is_program() { # FILE
  for program in "$SOURCE_DIR"/examples/c/*.c; do ! cmp -s "$1" "$program" || return 0; done
  return 1
}
mapfile -t pages < <(find "$SOURCE_DIR/docs" "$SOURCE_DIR/README.md" -name '*.md')
blocks "${pages[@]}"
[ "$(find . -name 'block*.c' | wc -l)" -ge 3 ] || fail "C blocks of pages are not found"
for block in block*.c; do is_program "$block" || fail "a C block of a page is no program of examples/c: $(head -3 "$block")"; done
sed 's/wf_decode(/wf_decod(/' "$SOURCE_DIR/examples/c/decode.c" >changed.c
! is_program changed.c || fail "a changed block passes"

flags=(-std=c11 -Wall -Wextra -Wshadow -Werror)
if grep -q '^WARPFST_SANITIZE:[A-Z]*=.' "$BUILD_DIR/CMakeCache.txt"; then
  flags+=("-fsanitize=$(sed -n 's/^WARPFST_SANITIZE:[A-Z]*=//p' "$BUILD_DIR/CMakeCache.txt")")
else
  flags+=("-fsanitize=address,undefined") # reports memory that a program does not free
fi
for program in "$SOURCE_DIR"/examples/c/*.c; do
  "${CC:-cc}" "${flags[@]}" -I "$SOURCE_DIR/include" "$program" "$WARPFST_LIB" -Wl,-rpath,"$(dirname "$WARPFST_LIB")" -o "$(basename "$program" .c)"
done
ran=()
run() { # PROGRAM ARGUMENTS
  local program=$1
  shift
  ran+=("$program")
  "./$program" "$@" || fail "$program: exit code $?"
}
refuses() { # PROGRAM ARGUMENTS: names the missing file
  local program=$1
  shift
  ! "./$program" "$@" 2>problem.txt >/dev/null || fail "$program: no error for a missing file"
  grep -q no-such-file problem.txt || fail "$program: $(cat problem.txt)"
}

[ "$(run compose)" = "$(printf '3 states, 3 arcs, acyclic\n1:21 2:23 costs 1.75')" ] || fail "compose: $(./compose)"
# -ln(e^-1 + e^-2.5), and the shares of both paths
[ "$(run gradients)" = "cost 0.7986, gradients 0.8176 0.1824 0.0000" ] || fail "gradients: $(./gradients)"

ctc=$SOURCE_DIR/examples/ctc
scores=("$ctc"/logp_phone/00003*.npy)
files=("$ctc/tokens_phone.txt" "$ctc/lexicon_phone.txt" "$ctc/lm3.arpa.gz")
"$WARPFST" mkgraph ctc --tokens="${files[0]}" --lexicon="${files[1]}" --lm="${files[2]}" --topology=correct -o graph.wfst -q
"$WARPFST" decode graph.wfst "${scores[@]}" --acoustic-scale=0.7 -o expected.txt 2>log.txt
[ "$(wc -l <expected.txt)" -gt 2 ] || fail "too few utterances"
run graph "${files[@]}" by-hand.wfst
run decode by-hand.wfst "${scores[@]}" >words.txt
diff expected.txt words.txt || fail "graph, decode: other words than those of warpfst"
refuses graph no-such-file "${files[1]}" "${files[2]}" x.wfst
refuses decode graph.wfst no-such-file

# The stream ends with the words of the whole utterance. The boosted phrase, which sounds almost alike, takes the place of what was said.
lovely=$ctc/logp_phone/000030024.npy
run stream graph.wfst "$lovely" LOVE CHINA >stream.txt
[ "$(grep -c '^\.\.\.' stream.txt)" -gt 3 ] || fail "stream: $(cat stream.txt)"
[ "$(tail -1 stream.txt)" = "000030024 KATE LOVE CHINA" ] || fail "stream: $(tail -1 stream.txt)"
grep -qx '000030024 KATE LOVES CHINA' expected.txt || fail "the phrase is there without the boost"
echo "LOVE CHINA 3" >phrases.txt
"$WARPFST" decode graph.wfst "$lovely" --acoustic-scale=0.7 --boost=phrases.txt -o boosted.txt 2>log.txt
tail -1 stream.txt | diff boosted.txt - || fail "stream: other words than those of warpfst"
refuses stream graph.wfst no-such-file LOVE

head -300 "$ctc/text" | cut -d' ' -f2- >train.txt
head -20 train.txt >valid.txt
"$WARPFST" rnnlm train train.txt valid.txt -o lm --hidden=5 --seed=1 --max-epochs=2 >/dev/null 2>&1
read -ra sentence < <(sed -n 30p train.txt)
run rnnlm lm "${sentence[@]}" >costs.txt
[ "$(wc -l <costs.txt)" = $((${#sentence[@]} + 1)) ] || fail "rnnlm: $(cat costs.txt)"
sed -n 30p train.txt >sentence.txt
awk -v log10="$("$WARPFST" rnnlm score lm sentence.txt)" '{ sum += $2 } END { exit !(sum + log10 * log(10) < 1e-3 && sum + log10 * log(10) > -1e-3) }' costs.txt ||
  fail "rnnlm: the sum of $(cat costs.txt) is not that of warpfst rnnlm score"
refuses rnnlm no-such-file A

for program in "$SOURCE_DIR"/examples/c/*.c; do
  [[ " ${ran[*]} compose gradients " == *" $(basename "$program" .c) "* ]] || fail "$(basename "$program") does not run"
done
