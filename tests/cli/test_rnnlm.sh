# `warpfst rnnlm` gives every word the score that faster-rnnlm gives; output formats, training, rescoring, messages and exit codes.
# shellcheck shell=bash
data=$SOURCE_DIR/tests/data/rnnlm

expect() { # CODE PATTERN COMMAND...: the command exits with CODE, and a line of its output or standard error matches PATTERN
  local code=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>&1 || got=$?
  [ "$got" = "$code" ] || { echo "exit code $got, not $code: $*"; cat out.txt; exit 1; }
  grep -q -- "$pattern" out.txt || { echo "no '$pattern': $*"; cat out.txt; exit 1; }
}

# The same lines as faster-rnnlm prints; each word's score within 1e-5.
same_scores() { # OURS EXPECTED
  paste -d' ' "$1" "$2" | awk '
    $1 == "w" { if (NF != 6 || $4 != "w" || $2 != $5 || ($3 - $6)^2 > 1e-10) { print "line " NR ": " $0; exit 1 } words++; next }
    { if (NF != 2 || ($1 - $2)^2 > 1e-6) { print "line " NR ": " $0; exit 1 } sentences++ }
    END { if (words < 3000 || sentences != 283) { print words " words, " sentences " sentences"; exit 1 } }'
}
for model in sigmoid relu2_maxent2; do
  "$WARPFST" rnnlm score "$data/$model" "$data/test" --per-word >"$model.out"
  same_scores "$model.out" "$data/$model.expected"
  "$WARPFST" rnnlm score "$data/$model" --per-word --threads=2 <"$data/test" | cmp - "$model.out"
  "$WARPFST" rnnlm score "$data/$model" "$data/test" | cmp - <(grep -v '^w ' "$model.out")
done

# The perplexity follows from the per-word scores.
"$WARPFST" rnnlm perplexity "$data/sigmoid" "$data/test" --json >perplexity.json
awk '$1 == "w" { sum += $3; n++ } END { printf "%.4f\n", 10 ^ (-sum / n) }' sigmoid.out >wanted
sed 's/.*"perplexity": \([0-9.]*\).*/\1/' perplexity.json | xargs printf '%.4f\n' | cmp - wanted

# Unknown words, empty lines.
printf 'w1 nothing\n\nw1\n' | "$WARPFST" rnnlm score "$data/sigmoid" >oov.txt
[ "$(head -1 oov.txt)" = OOV ] && [ "$(wc -l <oov.txt)" = 2 ]
printf 'w1 nothing\n' | "$WARPFST" rnnlm score "$data/sigmoid" --unk=w2 | cmp - <(echo 'w1 w2' | "$WARPFST" rnnlm score "$data/sigmoid")
expect 0 '^Sentences with unknown words, left out:.1$' "$WARPFST" rnnlm perplexity "$data/sigmoid" <(printf 'w1 nothing\nw1\n')

expect 0 '"output": "hierarchical softmax", "arity": 2' "$WARPFST" rnnlm info "$data/sigmoid" --json
expect 0 '^layers  *2 x relu$' "$WARPFST" rnnlm info "$data/relu2_maxent2"

expect 0 'rnnlm score' "$WARPFST" rnnlm --help
expect 2 'rnnlm score' "$WARPFST" rnnlm
expect 2 "unknown subcommand 'scores'" "$WARPFST" rnnlm scores
expect 2 'threads' "$WARPFST" rnnlm score "$data/sigmoid" --threads=-1
expect 3 'cannot open' "$WARPFST" rnnlm info nowhere
expect 3 'cannot open' "$WARPFST" rnnlm score "$data/sigmoid" nowhere
expect 2 "no word 'nothing'" "$WARPFST" rnnlm score "$data/sigmoid" "$data/test" --unk=nothing
cp "$data/sigmoid" cut
zcat "$data/sigmoid.nnet.gz" >whole.nnet
head -c 10000 whole.nnet >cut.nnet
expect 3 'truncated' "$WARPFST" rnnlm info cut

# Training: progress of each epoch; the written model has the perplexity of the last epoch.
"$WARPFST" rnnlm train "$data/test" "$data/test" -o mine --hidden=8 --maxent-cells=5000 --max-epochs=3 --json >epochs.json
[ "$(grep -c '"valid_perplexity"' epochs.json)" = 3 ]
wanted=$(sed -n '$s/.*"valid_perplexity": \([0-9]*\.[0-9][0-9][0-9]\).*/\1/p' epochs.json)
"$WARPFST" rnnlm perplexity mine "$data/test" | grep "^Perplexity:	${wanted%?}" > /dev/null
expect 0 '^MaxEnt order  *3$' "$WARPFST" rnnlm info mine
expect 0 '^epoch  1 ' "$WARPFST" rnnlm train "$data/test" "$data/test" gru --layer=gru --hidden=8 --max-epochs=1 --num-threads=2
expect 0 '^layers  *1 x gru$' "$WARPFST" rnnlm info gru
expect 2 'no model to write' "$WARPFST" rnnlm train "$data/test" "$data/test"
expect 3 'cannot open' "$WARPFST" rnnlm train nowhere "$data/test" -o bad
[ ! -e bad ]

# Trained on the same text, the perplexity is at most 1% above that of faster-rnnlm (tests/data/rnnlm/README.md).
reach() { # PERPLEXITY FLAGS...
  local most=$1
  shift
  "$WARPFST" rnnlm train "$data/train.gz" "$data/valid.gz" -o reached --hidden=16 "$@" >reached.log
  "$WARPFST" rnnlm perplexity reached "$data/test" >reached.txt
  awk -v most="$most" '$1 == "Perplexity:" { print; exit !($2 <= 1.01 * most) }' reached.txt || { echo "perplexity above $most: $*"; cat reached.log; exit 1; }
}
reach 86.2273
reach 85.9111 --maxent-cells=1000000 --maxent-order=3
reach 85.9111 --maxent-cells=1000000 --maxent-order=3 --num-threads=2
reach 83.2086 --maxent-cells=1000000 --maxent-order=4 --layer=gru

# PyTorch models in safetensors files, checked against the same equations in numpy.
python=${WARPFST_PYTHON:-$SOURCE_DIR/build/venv/bin/python}
"$python" -c 'import numpy' || { echo "no numpy for $python: python3 -m venv build/venv && build/venv/bin/pip install -r tests/python-requirements.txt"; exit 1; }
"$python" "$SOURCE_DIR/tests/cli/rnnlm_torch.py" make >models.txt
while read -r model; do
  "$WARPFST" rnnlm score "$model.safetensors" "$model.text" --per-word --threads=2 >"$model.out"
done <models.txt
# shellcheck disable=SC2046 # each name is one argument
"$python" "$SOURCE_DIR/tests/cli/rnnlm_torch.py" compare $(cat models.txt)
[ "$(wc -l <models.txt)" = 18 ]
expect 0 '"output": "softmax"' "$WARPFST" rnnlm info torch1.safetensors --json
head -n 3 torch1.words >fewer.words
cp torch1.safetensors fewer.safetensors
expect 3 'ids from 0, one for each row' "$WARPFST" rnnlm info fewer.safetensors
head -c 3000 torch1.safetensors >fewer.safetensors
expect 3 'that fit' "$WARPFST" rnnlm info fewer.safetensors

# Rescoring: every option, against costs computed in Python; malformed lists.
cat >ngram.arpa <<'ARPA'
\data\
ngram 1=9
ngram 2=3
\1-grams:
-99	<s>	-0.3
-1.1	</s>
-2	<unk>
-0.5	w1	-0.2
-0.8	w2	-0.1
-0.9	w3	-0.4
-1.3	w4
-1.5	w5
-1.6	w6
\2-grams:
-0.2	<s> w1
-0.6	w1 w2
-0.3	w3 </s>
\end\
ARPA
sed 's/^-0\.5\tw1/-1.0\tw1/; s/^-0\.6\tw1 w2/-0.4\tw1 w2/' ngram.arpa >small.arpa
"$python" "$SOURCE_DIR/tests/cli/rnnlm_rescore.py" "$WARPFST" "$data/sigmoid" ngram.arpa small.arpa unheard
printf 'key 1 2\n' >short.txt
expect 3 "short.txt:1: expected 'KEY RANK" "$WARPFST" rnnlm rescore "$data/sigmoid" short.txt
printf 'key 1 2 x w1\n' >short.txt
expect 3 "short.txt:1: expected 'KEY RANK" "$WARPFST" rnnlm rescore "$data/sigmoid" short.txt
expect 2 'needs --ngram or --small' "$WARPFST" rnnlm rescore "$data/sigmoid" nbest.txt --rnnlm-weight=0.5
