# Kaldi models: graphs and decoding results must equal those of Kaldi's own code for the same random models (kaldi_oracle.py, with the packages of
# tests/python-requirements.txt).
# shellcheck shell=bash
# The files named `settings` (written by kaldi_oracle.py) assign these variables.
# shellcheck disable=SC2154
python=${WARPFST_PYTHON:-$SOURCE_DIR/build/venv/bin/python}
oracle=$SOURCE_DIR/tests/cli/kaldi_oracle.py
"$python" -c 'import kaldi_hmm_gmm, kaldifst' || { echo "no Kaldi for $python: ./run test installs tests/python-requirements.txt"; exit 1; }
source "$SOURCE_DIR/tests/cli/expect.sh"
mkgraph() { "$WARPFST" mkgraph hmm -q "$@"; }
# decode OUTPUT GRAPH [FLAGS]
decode() {
  local output=$1
  shift
  "$WARPFST" decode "$@" scores.ark --words=lang/words.txt --beam=1000 --max-active=1000000 --format=json -o "$output" 2>err.txt || fail "seed $seed: $(cat err.txt)"
}
check() { python3 "$SOURCE_DIR/tests/cli/kaldi_check.py" "$@" || fail "seed $seed: the results differ from Kaldi's"; }

# 1. Contexts (width/central position) 1/0, 2/1, 3/1, 2/0, 3/0, 3/2, 4/1; one pdf class per state and two; phones with and without position in the word;
# text and binary files.
for seed in $(seq 0 9); do
  "$python" "$oracle" "$seed" "$seed" || fail "the oracle fails at seed $seed"
  cd "$seed" || exit
  . ./settings
  scales="--transition-scale=$transition_scale --self-loop-scale=$self_loop_scale"
  for model in final.mdl final.bin; do "$WARPFST" am columns "$model" | cmp - columns || fail "seed $seed: columns of $model"; done
  "$WARPFST" am info . --json >info.json
  grep -q "\"kind\": \"kaldi\", \"phones\": $num_phones, \"width\": $width, \"central\": $central, \"labels\": $num_ids, \"columns\": $num_pdfs," info.json || fail "seed $seed: $(cat info.json)"
  mkgraph --am=final.mdl --lang=lang $scales -o ours.fst --format=vector
  mkgraph --am=final.bin --tree=tree.bin --lang=lang $scales -o binary.fst --format=vector
  cmp ours.fst binary.fst || fail "seed $seed: text and binary differ"
  "$WARPFST" randequivalent --npath=100 --max-length=60 --seed="$seed" ours.fst HCLG.fst || fail "seed $seed: the graph differs from Kaldi's"
  # A lexicon instead of L_disambig.fst. (With two phones of right context there can be too few disambiguation symbols: docs/reference/hmm.md.)
  if [ $((width - central)) -le 2 ]; then
    mkgraph --am=final.mdl --lang=lang --lexicon=lexicon.txt $scales -o lexicon.fst --format=vector
    "$WARPFST" randequivalent --npath=100 --max-length=60 ours.fst lexicon.fst || fail "seed $seed: lexicon.txt and L_disambig.fst give different graphs"
    # Silence probabilities of words: the same if all are that of the option. Others give another graph.
    awk '{word = $1; $1 = ""; print word, 1, 0.5, 1, 1, $0}' lexicon.txt >silprob.txt
    mkgraph --am=final.mdl --lang=lang --lexicon=silprob.txt $scales -o silprob.fst --format=vector
    "$WARPFST" randequivalent --npath=100 --max-length=60 lexicon.fst silprob.fst || fail "seed $seed: silence probabilities of 0.5 give another graph"
    awk '{word = $1; $1 = ""; print word, 1, 0.1, 1, 0.5, $0}' lexicon.txt >silprob.txt
    mkgraph --am=final.mdl --lang=lang --lexicon=silprob.txt $scales -o silprob.fst --format=vector
    ! "$WARPFST" randequivalent --npath=100 --max-length=60 lexicon.fst silprob.fst 2>err.txt || fail "seed $seed: silence probabilities make no difference"
  fi
  python3 "$SOURCE_DIR/tests/cli/garbage_check.py" "$WARPFST" "$seed" || fail "seed $seed: <unk> is not any sequence of phones"
  # Decoding: our graph with its table of columns; Kaldi's graphs, with self-loops after or before the forward transitions, with the model.
  decode ours.json ours.fst
  decode kaldi.json HCLG.fst --am=final.bin
  decode table.json HCLG.fst --columns=columns
  decode before.json HCLG.before.fst --am=final.mdl
  check words.ref ours.json kaldi.json table.json
  check before.ref before.json
  cd .. || exit
done
# The comparison detects a different graph.
cd 0 || exit
. ./settings
mkgraph --am=final.mdl --lang=lang --transition-scale="$transition_scale" --self-loop-scale=0.3 -o other.fst
code=0
"$WARPFST" randequivalent --npath=100 --max-length=60 other.fst HCLG.fst 2>err.txt || code=$?
[ $code = 1 ] || fail "another self-loop scale makes no difference"
cd .. || exit

# 2. The default self-loop scale is 0.1, or 1 for models that have separate self-loop pdf classes (chain models).
cd 7 || exit
. ./settings
[ "$split" = 1 ] || fail "seed 7 does not give a chain model"
mkgraph --am=. --lang=lang -o default.fst && mkgraph --am=. --lang=lang --self-loop-scale=1 -o one.fst
cmp default.fst one.fst || fail "the default for chain models is not 1"
cd ../8 || exit
mkgraph --am=. --lang=lang -o default.fst && mkgraph --am=. --lang=lang --self-loop-scale=0.1 -o tenth.fst
cmp default.fst tenth.fst || fail "the default is not 0.1"

# 3. Errors give the reason.
expect 3 'final.mdl: line .*: expected' mkgraph --am=final.mdl --tree=final.mdl --lang=lang -o no.fst
expect 3 "tree: line 1: expected '<TransitionModel>', found 'ContextDependency'" "$WARPFST" am info tree
expect 3 'model and tree do not belong together' mkgraph --am=final.mdl --tree=../9/tree --lang=lang -o no.fst
mkdir alone
cp final.mdl alone/
expect 2 'no tree beside it' mkgraph --am=alone --lang=lang -o no.fst
head -c 300 final.bin >cut.bin
expect 3 'cut.bin: byte 29[0-9]: file ends early' "$WARPFST" am columns cut.bin
expect 3 'phones.txt' mkgraph --am=final.mdl --lang=. -o no.fst
expect 2 'exclude' "$WARPFST" decode HCLG.fst scores.ark --am=final.mdl --columns=columns
grep -v P0 lang/phones.txt >few.txt
mkdir -p few/phones
cp few.txt few/phones.txt
cp lang/*.fst lang/words.txt few/
"$WARPFST" am info final.mdl --lang=few >out.txt # phones without a name are shown by their number
printf '0 1 99 1\n1\n' | "$WARPFST" compile - -o few/L_disambig.fst
expect 2 'input label 99' mkgraph --am=final.mdl --lang=few -o no.fst
[ ! -e no.fst ] || fail "a failed build left a file"
