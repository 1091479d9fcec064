# `warpfst lm prune` and `lm arpa` on a real 3-gram model. With rising thresholds, each model's n-grams are a subset of the last one's, and perplexity rises.
# KenLM gives the same scores. Also limits, word lists, threads, and Sphinx's binary models as input.
# shellcheck shell=bash
python=${WARPFST_PYTHON:-$SOURCE_DIR/build/venv/bin/python}
"$python" -c 'import kenlm' || { echo "no KenLM for $python: ./run setup test installs it"; exit 1; }
lm=$SOURCE_DIR/examples/ctc/lm3.arpa.gz
text=$SOURCE_DIR/tests/data/lm/sentences.txt
ngrams() { grep -P '^-?\d' "$1" | cut -f2 | LC_ALL=C sort; }
perplexity() { "$WARPFST" lm perplexity "$1" "$text" | sed -n 's/^Perplexity including OOVs:\t//p'; }
expect() { # CODE PATTERN COMMAND...
  local code=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>&1 || got=$?
  [ "$got" = "$code" ] || { echo "exit code $got, not $code: $*"; cat out.txt; exit 1; }
  grep -q -- "$pattern" out.txt || { echo "no '$pattern': $*"; cat out.txt; exit 1; }
}

# lm arpa without pruning: the same n-grams and the same perplexity.
"$WARPFST" lm arpa "$lm" -o same.arpa
zcat "$lm" >large.arpa
cmp <(ngrams large.arpa) <(ngrams same.arpa)
awk -v a="$(perplexity "$lm")" -v b="$(perplexity same.arpa)" 'BEGIN { exit !(a > 1 && (a / b - 1)^2 < 1e-12) }'

# Larger thresholds: fewer n-grams, a subset of those before, and higher perplexity.
before=same.arpa
for threshold in 0 1e-8 1e-7 1e-6 1e-5 1e-4; do
  "$WARPFST" lm prune "$lm" --threshold=$threshold -o $threshold.arpa 2>stats.txt
  grep -q '^3-grams  [0-9]* of 13293' stats.txt
  [ -z "$(comm -23 <(ngrams $threshold.arpa) <(ngrams $before))" ]
  echo "$threshold $(ngrams $threshold.arpa | wc -l) $(perplexity $threshold.arpa)"
  before=$threshold.arpa
done | tee table.txt
awk 'NR > 1 && ($2 > ngrams || $3 < perplexity * (1 - 1e-6)) { bad = 1 } { ngrams = $2; perplexity = $3 } END { exit bad || NR != 6 || ngrams > 5000 }' table.txt
cmp <(ngrams 0.arpa) <(ngrams large.arpa)
"$python" "$SOURCE_DIR/tests/cli/lm_kenlm.py" compare-pruned "$WARPFST" 1e-6.arpa "$text" 2>kenlm.log

# Limits and word lists; the result does not depend on the number of threads.
"$WARPFST" lm prune "$lm" --max-ngrams=4000,3000 --num-threads=1 -q -o limits.arpa
grep -qx 'ngram 2=4000' limits.arpa
grep -qx 'ngram 3=3000' limits.arpa
"$WARPFST" lm prune "$lm" --max-ngrams=4000,3000 --num-threads=3 -q - >again.arpa
cmp limits.arpa again.arpa
"$WARPFST" lm prune "$lm" --max-total=5000 -q | grep -P '^-?\d' | wc -l | grep -x 5000 > /dev/null
"$WARPFST" lm prune "$lm" --max-words=500 -q -o words.arpa
grep -qx 'ngram 1=503' words.arpa
[ -z "$(comm -23 <(ngrams words.arpa) <(ngrams large.arpa))" ]
printf 'THE 17\nIS\nNOWHERE-TO-BE-FOUND\n' >list.txt
"$WARPFST" lm prune "$lm" --vocabulary=list.txt -q -o list.arpa
grep -qx 'ngram 1=5' list.arpa
"$WARPFST" lm prune "$lm" --criterion=difference --threshold=1e-5 -q | "$WARPFST" lm info - | grep '^3-grams' > /dev/null

# Every command that reads a model accepts Sphinx's binary files.
data=$SOURCE_DIR/tests/data/lm
printf 'a b c\nb b a a g\nd\n' >letters.txt
for order in 1 2 3 4 5; do
  gzip -dc "$data/sphinx$order.lm.bin.gz" >trie.bin
  "$WARPFST" lm perplexity trie.bin letters.txt | sed 's/\(\.[0-9]\{3\}\)[0-9]*/\1/' >trie.txt
  "$WARPFST" lm perplexity "$data/sphinx$order.arpa" letters.txt | sed 's/\(\.[0-9]\{3\}\)[0-9]*/\1/' >arpa.txt
  cmp trie.txt arpa.txt
  "$WARPFST" lm convert - G.fst <trie.bin
  "$WARPFST" lm prune trie.bin --threshold=1e-3 -q -o small.arpa
  [ "$(ngrams small.arpa | wc -l)" -le "$(ngrams "$data/sphinx$order.arpa" | wc -l)" ]
done

# Errors.
expect 2 'max_ngrams' "$WARPFST" lm prune "$lm" --max-ngrams=many
expect 2 'no word of the language model is left' "$WARPFST" lm prune "$lm" --vocabulary=/dev/null
expect 3 '/nowhere' "$WARPFST" lm prune "$lm" --vocabulary=/nowhere
head -c 1000 trie.bin >cut.bin
expect 3 'cut.bin: .*file ends early' "$WARPFST" lm info cut.bin
expect 3 'cannot' "$WARPFST" lm prune "$lm" -o /nowhere/small.arpa
