# `warpfst lm`. Every word gets KenLM's score (a real 3-gram model and a generated 5-gram model). OpenFst's tools read the acceptor; composition with failure
# arcs gives the same costs as queries. Also messages and exit codes. ./run test installs KenLM (tests/kenlm-requirements.txt) into build/venv.
# shellcheck shell=bash
python=${WARPFST_PYTHON:-$SOURCE_DIR/build/venv/bin/python}
"$python" -c 'import kenlm' || { echo "no KenLM for $python: ./run setup test installs it"; exit 1; }
lm=$SOURCE_DIR/examples/ctc/lm3.arpa.gz
text=$SOURCE_DIR/tests/data/lm/sentences.txt
script=$SOURCE_DIR/tests/cli/lm_kenlm.py

expect() { # CODE PATTERN COMMAND...: the command exits with CODE, and a line of its output or standard error matches PATTERN
  local code=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>&1 || got=$?
  [ "$got" = "$code" ] || { echo "exit code $got, not $code: $*"; cat out.txt; exit 1; }
  grep -q -- "$pattern" out.txt || { echo "no '$pattern': $*"; cat out.txt; exit 1; }
}

"$python" "$script" compare "$WARPFST" "$lm" "$text" 2>kenlm.log
"$python" "$script" generate 1 random.arpa random.txt
"$python" "$script" compare "$WARPFST" random.arpa random.txt 2>kenlm.log

# info
expect 0 '^order  *3$' "$WARPFST" lm info "$lm"
"$WARPFST" lm info "$lm" --json | "$python" -c '
import json, sys
info = json.load(sys.stdin)
assert info["ngrams"] == [1888, 9132, 13293] and info["words"] == 1885 and info["has_unk"], info'

# The same results from a pipe and with utterance ids; the lines of `lm query` look like KenLM's.
zcat "$lm" | "$WARPFST" lm perplexity - "$text" >piped.txt
"$WARPFST" lm perplexity "$lm" <"$text" >stdin.txt
cmp piped.txt stdin.txt
sed 's/^/utt /' "$text" | "$WARPFST" lm perplexity "$lm" --ids >ids.txt
cmp ids.txt stdin.txt
expect 0 '^Tokens:' cat ids.txt
echo 'MARK IS NOWHERE-TO-BE-FOUND' | "$WARPFST" lm query "$lm" >query.txt
grep -qP '^MARK=62 2 -2\.746093\tIS=59 3 -1\.236238\tNOWHERE-TO-BE-FOUND=-1 1 -\d+\.\d+\t</s>=3 1 -\d\.\d+\tTotal: -\d+\.\d+ OOV: 1$' query.txt
[ "$("$WARPFST" lm perplexity "$lm" "$text" --per-sentence | wc -l)" = $(($(wc -l <"$text") + 5)) ]

# OpenFst's tools read the acceptor, whose symbol table also has the back-off symbol.
"$WARPFST" lm convert "$lm" --backoff-symbol='#0' --write-words=words.txt -o G.fst
grep -q '^#0	1889$' words.txt
fstinfo G.fst >info.txt
grep -q '^# of states  *10014$' info.txt
grep -q '^# of input epsilons  *0$' info.txt
[ "$(fstprint G.fst | grep -c '#0	<eps>')" = 10013 ]
# Labels from the user's table: words that are not in it are removed, the others have the table's labels.
grep -vx 'IS	.*' words.txt >fewer.txt
"$WARPFST" lm convert "$lm" fewer.fst --words=fewer.txt --backoff-symbol='#0' --oov=skip 2>fewer.log
grep -q "1 of 1888 words (0.1%) are not in the word table and cannot be found: 'IS'; " fewer.log
fstprint fewer.fst >fewer.text
if grep -qP '\tIS\t' fewer.text; then echo 'IS should be gone'; exit 1; fi
grep -qP '\tMARK\tMARK\t' fewer.text

# With failure arcs, each sentence has one path, which costs what `lm query` says. With epsilon back-off, the best path never costs more, and sometimes
# less.
"$WARPFST" lm convert "$lm" --backoff-symbol='#0' --backoff=failure -o failure.fst
"$WARPFST" lm convert "$lm" -o epsilon.fst
head -30 "$text" >some.txt
"$WARPFST" lm query "$lm" some.txt --json --words=words.txt | "$python" -c '
import json, sys
for line in sys.stdin:
    line = json.loads(line)
    if line.get("words"):
        words = ["<unk>" if w["oov"] else w["word"] for w in line["words"][:-1]]
        print(line["log10p"] * -2.302585092994046, *words)' >wanted.txt
[ "$(wc -l <wanted.txt)" = 30 ]
cost_of() { fstshortestdistance --reverse "$1" | awk '$1 == 0 { print $2 }'; }
phi=$(awk '$1 == "#0" { print $2 }' words.txt)
less=0
while read -r cost words; do
  printf '%s\n' $words | awk '{ print NR - 1, NR, $1 } END { print NR }' | fstcompile --acceptor --isymbols=words.txt >sentence.fst
  "$WARPFST" compose sentence.fst failure.fst exact.fst --phi-label="$phi"
  fstcompose sentence.fst epsilon.fst free.fst
  awk -v cost="$cost" -v exact="$(cost_of exact.fst)" -v free="$(cost_of free.fst)" \
    'BEGIN { if (exact == "" || free == "" || (exact - cost)^2 > 1e-6 || free > cost + 1e-3) { print cost, exact, free; exit 1 } exit free < cost - 1e-3 ? 2 : 0 }' || { [ $? = 2 ] && less=$((less + 1)); }
done <wanted.txt
echo "free back-off was cheaper than the model in $less of 30 sentences"

# Errors: wrong usage and bad files.
expect 0 'lm convert' "$WARPFST" lm --help
expect 2 'lm convert' "$WARPFST" lm
expect 2 "unknown subcommand 'nothing'" "$WARPFST" lm nothing
expect 0 'usage: warpfst lm query' "$WARPFST" lm query --help
expect 2 'lm query: too few arguments' "$WARPFST" lm query
expect 3 'lm info: .*missing.arpa: cannot open' "$WARPFST" lm info missing.arpa
expect 3 'missing.txt: cannot open' "$WARPFST" lm query "$lm" missing.txt
expect 3 'not plain text' "$WARPFST" lm query "$lm" "$lm"
expect 2 'unknown format' "$WARPFST" lm convert "$lm" x.fst --format=nothing
expect 2 'exclude each other' "$WARPFST" lm convert "$lm" x.fst --backoff-symbol='#0' --backoff-label=7
expect 2 "is the word 'MARK'" "$WARPFST" lm convert "$lm" x.fst --backoff-symbol=MARK
expect 2 'failure needs a backoff_label' "$WARPFST" lm convert "$lm" x.fst --backoff=failure
expect 3 "'MARK' is not in the word table" "$WARPFST" lm info "$lm" --words=<(grep -v '^MARK	' words.txt) --oov=error
head -c 100000 "$lm" >cut.gz
expect 3 'gzip stream ends early' "$WARPFST" lm info cut.gz
zcat "$lm" >whole.arpa
head -5000 whole.arpa >cut.arpa
expect 3 'cut.arpa:5000: the file ends within the 2-grams' "$WARPFST" lm info cut.arpa
printf '\\data\\\nngram 1=3\nngram 2=1\n\\1-grams:\n-9 <s>\n-1 </s>\n-1 a\n\\2-grams:\n-1 a </s> <s>\n' >odd.arpa
expect 3 "odd.arpa:9: expected a back-off weight (log10), found '<s>'" "$WARPFST" lm info odd.arpa
printf '\\data\\\nngram 1=3\nngram 2=1\n\\1-grams:\n-9 <s>\n-1 </s>\n-1 a\n\\2-grams:\n-1 a <s>\n\\end\\\n' >odd.arpa
expect 0 'warning: .*1 n-grams with <s> inside' "$WARPFST" lm info odd.arpa
[ ! -e x.fst ]
