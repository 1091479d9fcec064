# `warpfst lm estimate` and `lm mix` on real text: perplexities of held-out lines, pruning, vocabularies, standard input, and what is refused.
# shellcheck shell=bash
text=$SOURCE_DIR/examples/ctc/text # lines begin with utterance ids
head -n 900 "$text" >train.txt
tail -n +901 "$text" >held-out.txt
perplexity() { "$WARPFST" lm perplexity "$1" held-out.txt --ids | sed -n 's/^Perplexity excluding OOVs:\t//p'; }
expect() { # CODE PATTERN COMMAND...
  local code=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>&1 || got=$?
  [ "$got" = "$code" ] || { echo "exit code $got, not $code: $*"; cat out.txt; exit 1; }
  grep -q -- "$pattern" out.txt || { echo "no '$pattern': $*"; cat out.txt; exit 1; }
}
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 1 && a < b) }'; }

# A longer history helps; a pruned model has fewer n-grams and is a little worse.
"$WARPFST" lm estimate train.txt --ids --order=1 -o 1.arpa 2>report.txt
grep -q '^1-grams  [0-9]*, discounts 0\.[0-9]*, [01]\.[0-9]*, [012]\.[0-9]*$' report.txt
"$WARPFST" lm estimate train.txt --ids -q -o 3.arpa
"$WARPFST" lm estimate train.txt --ids --prune=0,0,1 -q -o pruned.arpa
below "$(perplexity 3.arpa)" "$(perplexity 1.arpa)"
below "$(perplexity 3.arpa)" "$(perplexity pruned.arpa)"
[ "$(wc -l <pruned.arpa)" -lt "$(wc -l <3.arpa)" ]

# Standard input, gzip, two texts, and files for sorting give the same model.
cut -d' ' -f2- train.txt | "$WARPFST" lm estimate -q >same.arpa
cmp 3.arpa same.arpa
gzip -k train.txt
"$WARPFST" lm estimate train.txt.gz --ids --memory=1M --temporary=. -q -o same.arpa.gz
zcat same.arpa.gz | cmp 3.arpa -
head -n 300 train.txt >one.txt
tail -n +301 train.txt >two.txt
"$WARPFST" lm estimate one.txt two.txt --ids -q -o same.arpa
cmp 3.arpa same.arpa

# The word list gives the words of the model; others count as <unk>.
printf '<eps> 0\nIS 1\nTHE 2\n<s> 3\n#NEVER 4\n' >words.txt
"$WARPFST" lm estimate train.txt --ids --vocabulary=words.txt -o words.arpa 2>report.txt
grep -q ' words are not in the vocabulary' report.txt
grep -qx 'ngram 1=6' words.arpa
grep -q '	IS <unk>' words.arpa

# Small texts, and lines without words.
printf 'one\n\n' | "$WARPFST" lm estimate >small.arpa 2>report.txt
grep -q 'warning: .* order 1, 2, 3 give no discounts; discount_fallback 0.5,1,1.5 is used' report.txt
grep -q '1 words in 2 sentences, of which 1 are empty lines' report.txt
printf '\n' | "$WARPFST" lm estimate -q 2>/dev/null | "$WARPFST" lm info - | grep -q '^order *2$'
printf 'one two\n' | "$WARPFST" lm estimate -q --order=16 2>/dev/null | "$WARPFST" lm info - | grep -q '^order *4$'

# A mixture with tuned weights is better than each model.
head -n 450 train.txt >one.txt
tail -n +451 train.txt >two.txt
for part in one two; do "$WARPFST" lm estimate $part.txt --ids -q -o $part.arpa 2>/dev/null; done
"$WARPFST" lm mix one.arpa two.arpa --tune=held-out.txt --ids -o mixed.arpa 2>report.txt
grep -q '^0\.[0-9]*  two.arpa$' report.txt
"$WARPFST" lm perplexity mixed.arpa held-out.txt --ids | grep '^OOVs' >mixed.oovs
"$WARPFST" lm perplexity one.arpa held-out.txt --ids | grep '^OOVs' >one.oovs
awk '{ print $2 }' mixed.oovs one.oovs | { read -r mixed; read -r one; [ "$mixed" -lt "$one" ]; }
"$WARPFST" lm estimate one.txt --ids --vocabulary=<(cut -f2- -d' ' train.txt | tr ' ' '\n' | sort -u) -q -o one.arpa 2>/dev/null
"$WARPFST" lm estimate two.txt --ids --vocabulary=<(cut -f2- -d' ' train.txt | tr ' ' '\n' | sort -u) -q -o two.arpa 2>/dev/null
"$WARPFST" lm mix one.arpa two.arpa --tune=held-out.txt --ids -q -o mixed.arpa
below "$(perplexity mixed.arpa)" "$(perplexity one.arpa)"
below "$(perplexity mixed.arpa)" "$(perplexity two.arpa)"
"$WARPFST" lm mix one.arpa two.arpa -q -o even.arpa
"$WARPFST" lm mix one.arpa two.arpa --weights=2,2 --num-threads=3 -q | cmp even.arpa -

# Errors.
: >empty.txt
expect 3 'empty.txt: no line to estimate' "$WARPFST" lm estimate empty.txt
printf 'a\nb <s> c\n' >symbol.txt
expect 3 "symbol.txt:2: '<s>' .*skip_symbols" "$WARPFST" lm estimate symbol.txt
expect 0 '<s> b' "$WARPFST" lm estimate symbol.txt --skip-symbols -q
expect 3 '/nowhere' "$WARPFST" lm estimate /nowhere
expect 3 '/nowhere' "$WARPFST" lm estimate one.txt -o /nowhere/lm.arpa -q
expect 2 'prune: expected' "$WARPFST" lm estimate one.txt --prune=1
expect 2 'order' "$WARPFST" lm estimate one.txt --order=17
expect 2 'discount_fallback' "$WARPFST" lm estimate one.txt --discount-fallback=1
expect 2 '--weights: expected 2 numbers' "$WARPFST" lm mix one.arpa two.arpa --weights=1
expect 2 'tune' "$WARPFST" lm mix one.arpa two.arpa --weights=1,1 --tune=held-out.txt
expect 2 'weight 2 of the mixture is -1' "$WARPFST" lm mix one.arpa two.arpa --weights=1,-1 -q
expect 3 'empty.txt: no word' "$WARPFST" lm mix one.arpa two.arpa --tune=empty.txt -q
