#!/usr/bin/env bash
# lm convert to a .wlm file, info, verify and query of it; then decode --lm on real speech. Decoding with a graph of the pruned model and the difference to the
# large model (--lm) must give the same words and costs as decoding with a graph of the large model.
set -euo pipefail
ctc="$SOURCE_DIR/examples/ctc"
"$WARPFST" lm prune "$ctc/lm3.arpa.gz" --max-ngrams=1500,0 -q -o small.arpa

# The large model gives every word the same score as the ARPA file.
"$WARPFST" lm convert "$ctc/lm3.arpa.gz" -q -o large.wlm
"$WARPFST" lm verify large.wlm
"$WARPFST" lm convert "$ctc/lm3.arpa.gz" --pack=exact -q -o packed.wlm
"$WARPFST" lm query --ids "$ctc/lm3.arpa.gz" "$ctc/text" >want
for model in large packed; do
  "$WARPFST" lm query --ids $model.wlm "$ctc/text" >got
  python3 - <<'PY'
def words(name): return [word for line in open(name) for word in line.split()]
want, got = words("want"), words("got")
assert len(want) == len(got) > 10000
for a, b in zip(want, got): # the costs of </s> are summed in another order
    assert a == b or abs(float(a) - float(b)) < 2e-6, (a, b)
PY
done
"$WARPFST" lm info large.wlm | grep -x '3-grams               13293' > /dev/null
"$WARPFST" lm info --json packed.wlm | python3 -c "
import json, sys
info = json.load(sys.stdin)
assert info['packed'] and info['cost_bits'] == 32 and not info['difference'] and info['ngrams'] == [1888, 9132, 13293], info"
zcat "$ctc/lm3.arpa.gz" | "$WARPFST" lm convert - -q -o piped.wlm
cmp large.wlm piped.wlm
[ "$("$WARPFST" lm info <(zcat "$ctc/lm3.arpa.gz") | head -4)" = "$("$WARPFST" lm info "$ctc/lm3.arpa.gz" | head -4)" ] # looking at the file's first bytes does not take them from a pipe

# The old name says the new one.
"$WARPFST" lm build --arpa "$ctc/lm3.arpa.gz" -q -o old.wlm 2>said
cmp large.wlm old.wlm
grep -q "'lm build' is now 'lm convert'" said

# A .wlm file can be packed again.
"$WARPFST" lm convert large.wlm --pack=exact -q -o again.wlm
cmp packed.wlm again.wlm

# Packing with a codebook reports the rounding error, and the file is smaller.
"$WARPFST" lm convert "$ctc/lm3.arpa.gz" --pack=codebook --cost-bits=6 -o rounded.wlm 2>said
grep -q 'costs rounded to 6 bits: off by 0\.0[0-9]* nats on average' said
[ "$(stat -c %s rounded.wlm)" -lt "$(stat -c %s packed.wlm)" ]

# Building with little memory (external sort) gives the same file.
"$WARPFST" lm convert "$ctc/lm3.arpa.gz" --memory=1048576 --temporary=. -q -o sorted.wlm
cmp large.wlm sorted.wlm

zcat "$ctc/lm3.arpa.gz" >full.arpa
"$WARPFST" lm convert <(cat full.arpa) -q -o piped.wlm # a named pipe
cmp large.wlm piped.wlm
[ "$("$WARPFST" lm info <(zcat "$ctc/lm3.arpa.gz") | head -4)" = "$("$WARPFST" lm info "$ctc/lm3.arpa.gz" | head -4)" ] # looking at the file's first bytes does not take them from a pipe

# A killed build leaves no files, neither while it reads nor at other moments.
mkdir interrupted
mkfifo half.arpa
"$WARPFST" lm convert half.arpa --memory=1048576 --temporary=interrupted -q -o interrupted/x.wlm &
build=$!
exec 9>half.arpa
head -c 600000 full.arpa >&9
kill -KILL $build
wait $build || true
exec 9>&-
[ -z "$(ls -A interrupted)" ] || { ls -lA interrupted; exit 1; }
for signal in KILL INT; do
  for delay in 0.01 0.02 0.03 0.04 0.05 0.06 0.08 0.1; do
    "$WARPFST" lm convert "$ctc/lm3.arpa.gz" --subtract small.arpa --memory=1048576 -q -o interrupted/x.wlm &
    build=$!
    sleep $delay
    kill -$signal $build 2>/dev/null || true
    wait $build || true
    rm -f interrupted/x.wlm # the build may have finished first
    [ -z "$(ls -A interrupted)" ] || { ls -lA interrupted; exit 1; }
  done
done

# Decoding.
"$WARPFST" lm convert "$ctc/lm3.arpa.gz" --subtract small.arpa -q -o difference.wlm
for model in small large; do
  lm=small.arpa
  [ $model = small ] || lm="$ctc/lm3.arpa.gz"
  "$WARPFST" mkgraph ctc --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$lm" --backoff=failure -q -o TLG_$model.wfst
done
mkdir logp
for file in $(ls "$ctc/logp_phone" | head -8); do cp "$ctc/logp_phone/$file" logp/; done
flags=(--acoustic-scale=0.7 --beam=15 --max-active=1000000 --max-tokens=1000000 --num-threads=1 --format=json)
"$WARPFST" decode TLG_large.wfst logp "${flags[@]}" -o large.json 2>/dev/null
"$WARPFST" decode TLG_small.wfst logp "${flags[@]}" -o small.json 2>/dev/null
"$WARPFST" decode TLG_small.wfst logp --lm=difference.wlm "${flags[@]}" -o fly.json 2>/dev/null
"$WARPFST" decode TLG_small.wfst logp --lm=difference.wlm --lm-table "${flags[@]}" -o table.json 2>/dev/null
cmp fly.json table.json
"$WARPFST" decode TLG_small.wfst logp --lm=difference.wlm --lm-scale=0 "${flags[@]}" -o zero.json 2>/dev/null
"$WARPFST" decode TLG_small.wfst logp --lm=difference.wlm --recombine=state "${flags[@]}" -o state.json 2>/dev/null
python3 - <<'PY'
import json
def read(name): return [json.loads(line) for line in open(name + ".json")]
large, small, fly, zero, state = map(read, ("large", "small", "fly", "zero", "state"))
assert len(large) == 8
for a, b in zip(large, fly):
    assert a["text"] == b["text"] and abs(a["cost"] - b["cost"]) < 1e-4, (a, b)
    assert abs(b["cost"] - b["graph_cost"] - b["acoustic_cost"] - b["scorer_cost"]) < 1e-6
for a, b in zip(small, zero):
    assert a["text"] == b["text"] and abs(a["cost"] - b["cost"]) < 1e-4
assert any(a["text"] != b["text"] for a, b in zip(small, fly))
for a, b in zip(fly, state):  # recombining by state is an approximation: never a lower cost
    assert b["cost"] > a["cost"] - 1e-4
PY

# Other formats are converted in a file that goes with the model.
mkdir temporary
gzip -k large.wlm
for model in large.wlm "$ctc/lm3.arpa.gz" large.wlm.gz; do
  TMPDIR=$PWD/temporary "$WARPFST" decode TLG_small.wfst logp --lm="$model" "${flags[@]}" -q -o "format.$(basename "$model").json" 2>/dev/null
  cmp format.large.wlm.json "format.$(basename "$model").json"
done
TMPDIR=$PWD/temporary "$WARPFST" lm verify full.arpa
[ -z "$(ls -A temporary)" ] || { ls -A temporary; exit 1; }

# As an acceptor: one state for each state of the model, and a failure arc from each except the empty history.
"$WARPFST" lm convert large.wlm --backoff=failure --backoff-symbol='#phi' --write-words=phi.words -o D.fst
states=$("$WARPFST" lm info large.wlm | awk '$1 == "states" {print $2}')
[ "$("$WARPFST" info D.fst | awk '$1 == "states" {print $2}')" = "$states" ]
phi=$(awk '$1 == "#phi" {print $2}' phi.words)
[ "$("$WARPFST" print --numeric D.fst - | awk -v phi="$phi" '$3 == phi {print $1}' | sort -u | wc -l)" = $((states - 1)) ]

# Errors.
fails() { # CODE TEXT COMMAND...
  local code=0
  "${@:3}" >out 2>err || code=$?
  [ "$code" = "$1" ] && grep -q -- "$2" err || { cat out err; echo "expected exit $1 and '$2', got $code: ${*:3}"; exit 1; }
}
head -c 100000 large.wlm >cut.wlm
fails 3 'the header says' "$WARPFST" decode TLG_small.wfst logp --lm=cut.wlm
fails 3 'not a language model made by' "$WARPFST" decode TLG_small.wfst logp --lm=<(cat small.arpa)
fails 3 'phi.words: not an ARPA file' "$WARPFST" decode TLG_small.wfst logp --lm=phi.words
TMPDIR=none fails 3 'none' "$WARPFST" decode TLG_small.wfst logp --lm=small.arpa
fails 2 'difference.wlm: the difference of two models has no probabilities' "$WARPFST" lm convert difference.wlm -o D.fst
fails 2 'difference.wlm: the difference of two models has no perplexity' "$WARPFST" lm perplexity difference.wlm "$ctc/text"
fails 2 'difference.wlm: already the difference of two models' "$WARPFST" lm convert difference.wlm -o x.wlm
fails 2 'an option of .wlm files is not for this output' "$WARPFST" lm convert small.arpa --pack=exact -o D.fst
fails 2 'words is not for this output' "$WARPFST" lm convert small.arpa --words=phi.words -o x.wlm
fails 2 'expected one model and one output' "$WARPFST" lm build small.arpa
fails 3 'cannot open' "$WARPFST" lm convert none.arpa -o x.wlm
for kind in iARPA qARPA; do
  { echo $kind; echo; cat full.arpa; } >irst.arpa
  fails 3 "irst.arpa:1: $kind is a format of IRSTLM" "$WARPFST" lm convert irst.arpa -o x.wlm
  fails 3 "irst.arpa:1: $kind is a format of IRSTLM" "$WARPFST" lm info irst.arpa
done
head -5000 full.arpa | gzip >short.arpa.gz
fails 3 'the file ends within' "$WARPFST" lm convert short.arpa.gz -o x.wlm
head -c 40000 "$ctc/lm3.arpa.gz" >broken.arpa.gz
fails 3 'gzip stream ends early' "$WARPFST" lm convert broken.arpa.gz -o x.wlm
[ ! -e x.wlm ]
python3 - <<'PY'
data = bytearray(open("large.wlm", "rb").read())
data[len(data) // 2] ^= 1
open("bad.wlm", "wb").write(data)
PY
fails 3 'are damaged' "$WARPFST" lm verify bad.wlm
fails 3 'lattices need recombine=pair' "$WARPFST" decode TLG_small.wfst logp --lm=difference.wlm --recombine=state --lattice-beam=4
