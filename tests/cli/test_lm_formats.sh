#!/usr/bin/env bash
# Every command that takes an n-gram model takes every format, and gives what it gives with the ARPA file.
set -euo pipefail
data=$SOURCE_DIR/tests/data/lm
mkdir arpa gz kenlm sphinx wlm packed
cp "$data/sphinx3.arpa" arpa/lm
gzip -c arpa/lm >gz/lm
cp "$data/kenlm3.trie.bin" kenlm/lm
cp "$data/sphinx3.lm.bin.gz" sphinx/lm
"$WARPFST" lm convert arpa/lm --format=wlm -q -o wlm/lm
"$WARPFST" lm convert kenlm/lm --format=wlm --pack=exact -q -o packed/lm

# Scores, graphs and lattices of letters, of no model.
printf '%s\n' '<blk> 0' 'a 1' 'b 2' 'c 3' 'd 4' 'e 5' 'f 6' 'g 7' >tokens.txt
printf '%s\n' 'a a' 'b b' 'c c' 'd d' 'e e' 'f f' 'g g' >lexicon.txt
printf '%s\n' '<eps> 0' 'g 1' 'f 2' 'e 3' 'd 4' 'c 5' 'b 6' 'a 7' '#0 8' >words.txt
printf '%s\n' 'a b c d' 'g f' 'c c a' 'e b a d d f' >text.txt
mkdir logp
python3 - <<'PY'
import math, random, struct
random.seed(4)
for u in range(4):
    rows = [[random.gauss(0, 2) for _ in range(8)] for _ in range(20)]
    rows = [[x - math.log(sum(map(math.exp, row))) for x in row] for row in rows]
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (20, 8), }"
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    with open(f"logp/u{u}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + b"".join(struct.pack("<8f", *row) for row in rows))
PY
"$WARPFST" mkgraph ctc --tokens=tokens.txt --lexicon=lexicon.txt --words=words.txt -q -o loop.wfst
"$WARPFST" decode loop.wfst logp --words=words.txt --lattice-beam=6 --lattice=lat.ark -q -o best.txt 2>/dev/null
printf '%s\n' 'u 1 2.0 3.0 a b' 'u 2 2.5 3.0 a c' 'u 3 3.5 2.0 g f e' >nbest.txt
for _ in $(seq 50); do cat text.txt; done >train.txt
"$WARPFST" rnnlm train train.txt text.txt rnnlm --hidden=8 --max-epochs=2 2>/dev/null >/dev/null

for format in arpa gz kenlm sphinx wlm packed; do
  lm=$format/lm
  "$WARPFST" lm info --json "$lm" | grep -o '"order": [0-9]*\|, [0-9]*, [0-9]*\]\|"states": [0-9]*' >info.$format # KenLM adds <unk> to the unigrams
  "$WARPFST" lm query "$lm" text.txt --words=words.txt >query.$format
  "$WARPFST" lm perplexity "$lm" text.txt >perplexity.$format
  "$WARPFST" lm arpa "$lm" --words=words.txt | grep -v '<unk>\|ngram 1=' >written.$format
  "$WARPFST" lm prune "$lm" --words=words.txt --max-ngrams=30,40 -q >small.lm
  "$WARPFST" lm perplexity small.lm text.txt >pruned.$format
  "$WARPFST" lm mix "$lm" "$data/sphinx2.arpa" --tune=text.txt -q -o mixture.lm
  "$WARPFST" lm perplexity mixture.lm text.txt >mixed.$format
  "$WARPFST" lm convert "$lm" --words=words.txt --backoff-symbol='#0' --drop-unk -o G.fst
  "$WARPFST" info G.fst | grep -E '^(states|arcs)' >acceptor.$format
  "$WARPFST" lm convert "$lm" --format=wlm -q -o again
  "$WARPFST" lm query again text.txt | sed 's/=[0-9]*//g' >converted.$format
  "$WARPFST" mkgraph ctc --tokens=tokens.txt --lexicon=lexicon.txt --words=words.txt --lm="$lm" -q -o $format.wfst 2>/dev/null
  "$WARPFST" equal arpa.wfst $format.wfst
  decode() { "$WARPFST" decode loop.wfst logp --words=words.txt --format=json "$@" 2>/dev/null | grep -o '"text": "[^"]*"\|"cost": [0-9.]*'; }
  decode --lm="$lm" >fly.$format
  decode --lm="$lm" --lm-table >table.$format
  decode --lm="$data/sphinx2.arpa" --lm-subtract="$lm" --lm-subtract-scale=0.3 >subtracted.$format
  decode --beam=5 --history-merge-order=2 --rnnlm=rnnlm --rnnlm-ngram="$lm" --rnnlm-weight=0.5 --rnnlm-small="$lm" >rnnlm.$format
  "$WARPFST" rnnlm rescore rnnlm nbest.txt --ngram="$lm" --small="$lm" --rnnlm-weight=0.5 >list.$format
  "$WARPFST" lattice rescore lat.ark --lm="$lm" --words=words.txt -o new.ark 2>/dev/null
  "$WARPFST" lattice rescore new.ark --lm="$data/sphinx2.arpa" --old-lm="$lm" --words=words.txt -o old.ark 2>/dev/null
  for lattice in new old; do
    "$WARPFST" lattice nbest $lattice.ark --n=3 --words=words.txt --format=json -q 2>/dev/null | grep -o '"text": "[^"]*"\|"cost": [-0-9.]*' >$lattice.$format
  done
done

python3 - arpa gz kenlm sphinx wlm packed <<'PY'
import re, sys
def words(name, format):
    return re.split(r"[\s,=:{}\[\]]+", open(f"{name}.{format}").read())
def equal(a, b):
    try:
        return a == b or abs(float(a) - float(b)) < 1e-4 * (1 + abs(float(a)))
    except ValueError:
        return False
for name in "info query perplexity written pruned mixed acceptor converted fly table subtracted rnnlm list new old".split():
    want = words(name, "arpa")
    for format in sys.argv[1:]:
        got = words(name, format)
        assert len(want) == len(got) > 3, (name, format, len(want), len(got))
        wrong = [pair for pair in zip(want, got) if not equal(*pair)]
        assert not wrong, (name, format, wrong[:3])
PY
