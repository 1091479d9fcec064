# Decoding with a recurrent language model. It chooses between homophones by a word three positions earlier. Also its options, the summary, errors, and
# lattice rescoring.
# shellcheck shell=bash
cat >words.txt <<'END'
<eps> 0
red 1
read 2
book 3
box 4
the 5
END
# "red"/"read" and "book"/"box" sound alike: columns 0 and 1, 2 and 3. Each word takes one frame.
cat >graph.txt <<'END'
0 0 1 1 0.5
0 0 2 2 0.5
0 0 3 3 0.5
0 0 4 4 0.5
0 0 5 5 0.5
0 0
END
"$WARPFST" compile graph.txt graph.fst
{ for u in u1 u2 u3 u4 u5; do
  printf '%s  [\n -1 -1.2 -9 -9 -9\n -9 -9 -9 -9 -1\n -9 -9 -9 -9 -1\n -9 -9 -1.1 -1 -9 ]\n' "$u"
done; } >scores.ark
# Training text: 'read' is followed by 'book' three words later, 'red' by 'box'.
for _ in $(seq 300); do echo 'read the the book'; done >train
for _ in $(seq 90); do echo 'red the the box'; done >>train
shuf --random-source=<(yes) train >shuffled
"$WARPFST" rnnlm train shuffled shuffled -o lm --hidden=12 --learning-rate=0.3 >train.log
cat >small.arpa <<'END'
\data\
ngram 1=7
\1-grams:
-99	<s>
-0.7	</s>
-0.7	red
-0.7	read
-0.7	book
-0.7	box
-0.7	the
\end\
END
decode() { "$WARPFST" decode graph.fst scores.ark --words words.txt "$@" 2>log; }
expect() { # WANTED ARGUMENTS...: the words of every utterance
  local wanted=$1
  shift
  [ "$(decode "$@" | cut -d' ' -f2- | sort -u)" = "$wanted" ] || { echo "decode $*: $(cat log)"; decode "$@"; exit 1; }
}
expect 'red the the box'
expect 'read the the book' --rnnlm=lm
grep -q '^recurrent model: [1-9][0-9]* requests' log
expect 'read the the book' --rnnlm=lm --rnnlm-small=small.arpa --rnnlm-ngram=small.arpa --rnnlm-weight=0.7 --interpolation=linear
expect 'red the the box' --rnnlm=lm --rnnlm-scale=0.01
# Results do not depend on the cache, its memory, the number of threads, the batch size, or chunks.
decode --rnnlm=lm --rnnlm-small=small.arpa --format=json >wanted.json
for flags in --rnnlm-cache=none '--rnnlm-cache=shared --num-threads=1' '--rnnlm-memory=65536 --num-threads=3' --batch=1 '--chunk=0.02'; do
  decode --rnnlm=lm --rnnlm-small=small.arpa --format=json $flags | cmp - wanted.json || { echo "differs with $flags"; exit 1; }
done
# A shared cache gives more hits than a cache for each utterance; without a cache there are none.
hits() { decode --rnnlm=lm --num-threads=1 --summary=summary.json "$@" >/dev/null; sed 's/.*"rnnlm": {"requests": \([0-9]*\), "hits": \([0-9]*\).*/\1 \2/' summary.json; }
read -r requests none < <(hits --rnnlm-cache=none)
read -r _ shared < <(hits --rnnlm-cache=shared)
read -r _ own < <(hits)
[ "$none" = 0 ] && [ "$shared" -gt "$own" ] && [ "$requests" -ge "$shared" ] || { echo "requests $requests, hits $none, $own, $shared"; exit 1; }

fails() { # CODE PATTERN ARGUMENTS...
  local code=$1 pattern=$2 got=0
  shift 2
  decode "$@" >out || got=$?
  [ "$got" = "$code" ] && grep -q -- "$pattern" log || { echo "exit code $got: $*"; cat log; exit 1; }
}
fails 3 'cannot open' --rnnlm=nowhere
fails 2 'no n-gram model' --rnnlm=lm --rnnlm-weight=0.5
fails 2 "no word 'unheard'" --rnnlm=lm --rnnlm-unk=unheard

# Two passes: lattices made without the recurrent model, then rescored with it.
decode --lattice=lat.ark --lattice-beam=30 >first.txt
grep -q 'red the the box' first.txt
second() { # FLAGS...: words of the best sequences
  "$WARPFST" rnnlm lattice lat.ark --rnnlm=lm --words=words.txt -o scored.ark "$@"
  "$WARPFST" lattice mbr scored.ark --words=words.txt | cut -d' ' -f2- | sort -u
}
[ "$(second)" = 'read the the book' ]
[ "$(second --rnnlm-small=small.arpa --history-merge-order=4)" = 'read the the book' ]
# With order 2, contexts merge that differ only in earlier words: fewer states.
states() { "$WARPFST" lattice convert scored.ark -o - --format=text | grep -c '^[0-9]'; }
second >merged.txt
all=$(states)
second --history-merge-order=2 >merged.txt
[ "$(states)" -lt "$all" ]
got=0
"$WARPFST" rnnlm lattice lat.ark --words=words.txt -o scored.ark 2>log || got=$?
[ "$got" = 2 ] && grep -q 'no model given' log
