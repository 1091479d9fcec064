# warpfst decode on bad input: each case gives the expected exit code and message, and the other utterances are still decoded.
# shellcheck shell=bash
python=$SOURCE_DIR/build/venv/bin/python
test -x "$python" || { echo "no $python: ./run test makes it from tests/python-requirements.txt"; exit 1; }
fail() { echo "FAILED: $*"; exit 1; }
# expect CODE PATTERN ARGUMENTS...: runs `warpfst decode ARGUMENTS`, standard output to out.txt
expect() {
  local want=$1 pattern=$2 code=0
  shift 2
  "$WARPFST" decode "$@" > out.txt 2> err.txt || code=$?
  [ "$code" = "$want" ] || { cat err.txt; fail "exit code $code, not $want: decode $*"; }
  grep -qe "$pattern" err.txt || { cat err.txt; fail "no '$pattern' on standard error: decode $*"; }
  ! grep -qe "Sanitizer\|runtime error" err.txt || { cat err.txt; fail "decode $*"; }
}
prints() { cmp <(printf "$1") out.txt || { cat out.txt; fail "expected $1"; }; } # standard output of the last run

# A graph over 2 columns: label 1 once or more, then label 2 once. Words: 1 on the first arc, 2 on the last.
cat > g.txt <<'E2'
0 1 1 1
1 1 1 0
1 2 2 2 0.5
2
E2
"$WARPFST" compile g.txt -o g.wfst
cat > make.py <<'E2'
import kaldiio, numpy as np, os
rng = np.random.RandomState(1)
m = {'u%d' % i: -rng.rand(3 + i, 2).astype('f4') for i in range(5)}
kaldiio.save_ark('good.ark', m)
bad = {k: v.copy() for k, v in m.items()}
bad['u1'][2, 1] = np.nan
bad['u3'][0, 0] = np.inf
kaldiio.save_ark('nan.ark', bad)
bad['u1'][2, 1] = -1e30
bad['u3'] = m['u3']
kaldiio.save_ark('huge.ark', bad)
special = dict(m)
special['u1'] = m['u1'][:0]                                  # no frames
special['u2'] = m['u2'][:1]                                  # one frame: too short for the graph
special['u3'] = np.full((4, 2), -np.inf, 'f4')               # nothing possible
special['u4'] = np.where([[0, 1]] * 7, m['u4'], -np.inf).astype('f4')  # the first arc's column is impossible
os.mkdir('special')
for k, v in special.items(): np.save('special/' + k, v)
os.mkdir('good')
for k, v in m.items(): np.save('good/' + k, v)
E2
"$python" make.py
all='u0 1 2\nu1 1 2\nu2 1 2\nu3 1 2\nu4 1 2\n'
expect 0 "^5 utterances (0 narrowed)" g.wfst good.ark && prints "$all"
expect 0 "^5 utterances" g.wfst good && prints "$all"

# --- scores that are not log-posteriors, with a CTC graph: one warning, an error, or nothing, by --check-scores. Probabilities are an error ----
printf '<eps> 0\n<blk> 1\na 2\n' > tokens.txt
printf '0 0 <blk> 0\n0 0 a 2\n0\n' > ctc.txt
"$WARPFST" compile ctc.txt --isymbols=tokens.txt --keep-isymbols -o ctc.wfst
"$python" -c '
import numpy as np, os
for name, score in (("probabilities", 0.5), ("base10", np.log10(0.5))):
    os.mkdir(name)
    for i in range(3): np.save("%s/u%d" % (name, i), np.full((5, 2), score, "f4"))'
expect 0 "warning: the scores look like logarithms to base 10" ctc.wfst base10
[ "$(grep -c warning err.txt)" = 1 ] || fail "$(cat err.txt)"
expect 1 "utterance 'u2': the scores look like logarithms to base 10" ctc.wfst base10 --check-scores=error
expect 1 "utterance 'u2': the scores look like probabilities.*take the natural logarithm" ctc.wfst probabilities
[ "$(grep -c warning err.txt)" = 1 ] || fail "$(cat err.txt)"
expect 1 "utterance 'u0': from frame 0: the scores look like probabilities" ctc.wfst probabilities --chunk=0.1
expect 0 "^3 utterances" ctc.wfst probabilities --check-scores=off
! grep -q warning err.txt || fail "$(cat err.txt)"
expect 0 "^3 utterances" g.wfst probabilities # hybrid scores need not be posteriors
! grep -q warning err.txt || fail "$(cat err.txt)"

# --- scores ----------------------------------------------------------------------------------------------------------------------
expect 1 "utterance 'u1': score of frame 2, column 1 is NaN" g.wfst nan.ark && prints 'u0 1 2\nu1\nu2 1 2\nu3\nu4 1 2\n'
grep -q "utterance 'u3': score of frame 0, column 0 is inf" err.txt
grep -q "^3 utterances (2 more failed, 0 narrowed)" err.txt
expect 1 "." g.wfst nan.ark --format=plain && prints '1 2\n\n1 2\n\n1 2\n'
expect 1 "." g.wfst nan.ark --format=trn && prints '1 2 (u0)\n(u1)\n1 2 (u2)\n(u3)\n1 2 (u4)\n'
expect 1 "." g.wfst nan.ark --format=ctm
[ "$(cut -d ' ' -f 1 out.txt | uniq | paste -sd ' ')" = "u0 u2 u4" ] || fail "$(cat out.txt)"
expect 1 "." g.wfst nan.ark --format=json
grep -qxF '{"key": "u1", "error": "score of frame 2, column 1 is NaN"}' out.txt
# The other utterances decode as if the bad ones were not there.
expect 0 "." g.wfst good.ark --format=json && cp out.txt good.json
expect 1 "." g.wfst nan.ark --format=json && grep -v error out.txt | cmp - <(grep -v '"u[13]"' good.json)
# A failed utterance counts as empty: 4 of 10 words are wrong, as `warpfst score` also reports.
printf 'u0 1 2\nu1 1 2\nu2 1 2\nu3 1 2\nu4 1 2\n' > ref.txt
expect 1 "^WER 40.00% (4 of 10 words)" g.wfst nan.ark --ref=ref.txt
expect 1 '"failed": 2.*"wer": 40.0000, "words": 10' g.wfst nan.ark --ref=ref.txt --json
expect 0 "^WER 0.00% (0 of 4 words; 3 utterances without a reference)" g.wfst good.ark --ref=<(head -2 ref.txt)
expect 1 "utterance 'u1': score of frame 2, column 1 is -1e+30" g.wfst huge.ark && prints 'u0 1 2\nu1\nu2 1 2\nu3 1 2\nu4 1 2\n'

# No frames, one frame, no possible path: these give results with flags.
expect 0 "^5 utterances (4 not final, 0 narrowed)" g.wfst special --format=json && cp out.txt special.json
"$python" -c "
import json
o = {x['key']: x for x in map(json.loads, open('special.json'))}
want = {'u0': ('1 2', 3, ['times_estimated']), 'u1': ('', 0, ['not_final']), 'u2': ('1', 1, ['not_final', 'times_estimated']), 'u3': ('', 4, ['not_final', 'died']), 'u4': ('', 7, ['not_final', 'died'])}
assert {k: (x['text'], x['frames'], x['flags']) for k, x in o.items()} == want, o"
# A graph whose start state is final accepts an utterance without frames.
printf '0 0.25\n0 0 1 1\n' | "$WARPFST" compile - -o loop.wfst
"$python" -c "
import numpy as np
np.save('none.npy', np.zeros((0, 2), 'f4'))"
expect 0 "^1 utterance (" loop.wfst none.npy --format=json
grep -qF '"text": "", "words": [], "cost": 0.25, "graph_cost": 0.25, "acoustic_cost": 0, "frames": 0, "flags": []}' out.txt || fail "$(cat out.txt)"

# The scores have too few columns for the graph's labels: an error of that utterance. Others of the batch with enough columns are decoded.
printf '0 1 3 1\n1 1 3 0\n1\n' | "$WARPFST" compile - -o wide.wfst
"$python" -c "
import kaldiio, numpy as np
kaldiio.save_ark('mixed.ark', {'thin': np.zeros((3, 2), 'f4'), 'wide': np.zeros((3, 3), 'f4')})"
expect 1 "utterance 'thin': scores have 2 columns, the graph reads column 2 (input labels up to 3)" wide.wfst mixed.ark && prints 'thin\nwide 1\n'
expect 1 "^0 utterances (5 more failed, 0 narrowed), 0.000 h in 0.00 s: RTFx 0.0, 0 frames/s, 0 tokens" wide.wfst good.ark && prints 'u0\nu1\nu2\nu3\nu4\n'

# Truncated archives: the utterances before the cut are decoded, the loss is reported, later sources are still read.
size=$(stat -c %s good.ark)
head -c $((size - 60)) good.ark > cut.ark
expect 3 "utterance 'u4': cut.ark: byte [0-9]*: file ends early.*the rest of that archive is lost" g.wfst cut.ark && prints 'u0 1 2\nu1 1 2\nu2 1 2\nu3 1 2\nu4\n'
expect 3 "rest of that archive is lost" g.wfst cut.ark good/u4.npy && prints 'u0 1 2\nu1 1 2\nu2 1 2\nu3 1 2\nu4\nu4 1 2\n'
expect 3 "standard input: byte [0-9]*: file ends early" g.wfst - < cut.ark
gzip -c good.ark > good.ark.gz
head -c 150 good.ark.gz > cut.ark.gz
expect 3 "gzip stream ends early" g.wfst cut.ark.gz
for at in $(seq 1 7 $((size - 1))); do # cut after every 7th byte
  head -c $at good.ark > cut.ark
  code=0
  "$WARPFST" decode g.wfst cut.ark > out.txt 2> err.txt || code=$?
  whole=$(awk -v at=$at 'BEGIN {end = 0; n = 0; for (i = 0; i < 5; i++) {end += 18 + (3 + i) * 8; if (end <= at) n++} print n}')
  [ "$(grep -c '1 2' out.txt || true)" = "$whole" ] || fail "cut at $at of $size: not $whole utterances: $(cat out.txt err.txt)"
  grep -q "^$whole utterances\? " err.txt || fail "cut at $at: $(cat err.txt)"
  [ $code = 3 ] || { [ $code = 0 ] && [ $(((at - whole * 18 - 4 * whole * (whole + 5)))) = 0 ]; } || fail "cut at $at: exit code $code"
done

# Files of a folder: bad files are reported, the others are decoded.
cp -r good folder
echo garbage > folder/u1.npy
"$python" - <<'E2'
import numpy as np
def npy(name, text, payload=b''):
    text = text.encode() + b'\n'
    open(name, 'wb').write(b'\x93NUMPY\x01\x00' + len(text).to_bytes(2, 'little') + text + payload)
npy('folder/u2.npy', "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776), }")
npy('folder/u3.npy', "{'descr': '<c8', 'fortran_order': False, 'shape': (3, 2), }", bytes(48))
npy('huge_rows.npy', "{'descr': '<f4', 'fortran_order': False, 'shape': (2000000000, 2), }", bytes(64))
npy('negative.npy', "{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 2), }", bytes(24))
npy('cube.npy', "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 2), }", bytes(48))
npy('vector.npy', "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", bytes(24))
open('long.npy', 'wb').write(b'\x93NUMPY\x01\x00\xff\xff{')
open('magic.npy', 'wb').write(b'\x93NUMPY')
open('empty.npy', 'wb')
E2
expect 1 "utterance 'u1': folder/u1.npy: not an npy file" g.wfst folder && prints 'u0 1 2\nu1\nu2\nu3\nu4 1 2\n'
grep -q "utterance 'u2': .*folder/u2.npy" err.txt && grep -q "utterance 'u3': .*'<c8'" err.txt || fail "$(cat err.txt)"
expect 1 "takes 16000000000 bytes, the file has 64" g.wfst huge_rows.npy
expect 1 "negative.npy.*dimension" g.wfst negative.npy
expect 1 "npy array of 3 dimensions" g.wfst cube.npy
expect 1 "npy array of 1 dimensions" g.wfst vector.npy
for name in long magic empty; do expect 1 "utterance '$name': " g.wfst $name.npy; done
printf 'u0 good/u0.npy\nu9 good/u9.npy\nu4 good/u4.npy\n' > missing.scp
expect 1 "utterance 'u9': good/u9.npy: cannot open" g.wfst missing.scp && prints 'u0 1 2\nu9\nu4 1 2\n'
expect 3 "nothing.ark: cannot open" g.wfst nothing.ark
mkdir hollow
expect 3 "hollow: the folder holds no .npy or .sen files" g.wfst hollow
expect 3 "'touch ran |' is a pipe" g.wfst 'touch ran |' && [ ! -e ran ]
: > nothing
expect 0 "^0 utterances" g.wfst nothing && prints ''
expect 3 "nothing like this\|not a\|lost" g.wfst g.wfst

# --- graphs ----------------------------------------------------------------------------------------------------------------------
for format in native vector const; do
  "$WARPFST" convert g.wfst --format=$format -o whole.$format
  size=$(stat -c %s whole.$format)
  for at in 0 1 3 4 17 40 $((size / 2)) $((size - 5)) $((size - 1)); do
    head -c $at whole.$format > cut.$format
    expect 3 "cut.$format" cut.$format good.ark && prints ''
  done
done
# Native files have checksums, so any changed byte is detected. OpenFst's files have none: a changed byte gives a graph or an error, never a crash.
cat > flip.py <<'E2'
import sys
data = bytearray(open(sys.argv[1], 'rb').read()); at = int(sys.argv[2]) % len(data)
data[at] ^= int(sys.argv[3])
open('flipped', 'wb').write(data)
E2
for at in 3 9 30 70 130 200 260 300 340 380; do
  "$python" flip.py whole.native $at 16
  expect 3 "flipped" flipped good.ark
done
for at in $(seq 0 9 200); do
  "$python" flip.py whole.vector $at 128
  code=0
  "$WARPFST" decode flipped good.ark > out.txt 2> err.txt || code=$?
  [ $code -le 4 ] && ! grep -qe "Sanitizer\|runtime error" err.txt || { cat err.txt; fail "byte $at changed: exit code $code"; }
done
expect 3 "good.ark: not an fst file" good.ark good.ark
expect 3 "nothing.wfst: cannot open" nothing.wfst good.ark
"$WARPFST" compile - -o empty.wfst < /dev/null
expect 3 "empty.wfst: decoding graph: the fst is empty" empty.wfst good.ark
printf '0 0 0 0 -1\n0 1 1 1\n1\n' | "$WARPFST" compile - -o cycle.wfst
expect 3 "cycle.wfst: decoding graph: a cycle of epsilon arcs through state 0 has negative cost" cycle.wfst good.ark
printf '0 0 0 0 0\n0 1 1 1\n1 1 1 0\n1 1 0 0 0\n1\n' | "$WARPFST" compile - -o zero.wfst # a cycle of cost 0 is allowed
expect 0 "^5 utterances" zero.wfst good.ark && prints 'u0 1\nu1 1\nu2 1\nu3 1\nu4 1\n'
printf '0 1 2147483646 1\n1\n' | "$WARPFST" compile - -o label.wfst
expect 4 "label.wfst: input label 2147483646 is too large for a decoding graph, at most 67108864" label.wfst good.ark
printf '0 1 1 1\n' | "$WARPFST" compile - -o endless.wfst # no final state anywhere
expect 0 "^5 utterances (5 not final, 0 narrowed)" endless.wfst good.ark
printf '0 1 1 1\n1\n' | "$WARPFST" compile - -o short.wfst # all paths have one frame, so no token survives the second
expect 0 "not final" short.wfst good.ark --format=json
[ "$(grep -c '"died"' out.txt)" = 5 ] || fail "$(cat out.txt)"
# tables
printf '1 0\n' > one
expect 3 "g.wfst: the graph has input label 2, the column table ends at label 1" g.wfst good.ark --columns=one
printf '1 0\nx 1\n' > letters
expect 3 "letters:2: 'x 1', expected .label column. with a label" g.wfst good.ark --columns=letters
printf '1 0\n\n2 1\n2000000000 1\n' > far
expect 3 "far:4: '2000000000 1', expected .label column. with a label from 1 to 67108864 and one column for each label" g.wfst good.ark --columns=far
for line in '2 1 3' '2' '2 -1' '2 2147483647' '2 99999999999999999999' '0 1' '-2 1' '1 1' '2 x'; do
  printf '1 0\n%s\n' "$line" > wrong
  expect 3 "wrong:2: '$line', expected" g.wfst good.ark --columns=wrong
done
expect 3 "no.txt: cannot open" g.wfst good.ark --columns=no.txt
expect 3 "no.txt: cannot open" g.wfst good.ark --words=no.txt
printf 'a\xff 1\n' > latin1
expect 3 "latin1:1: symbol is not UTF-8" g.wfst good.ark --words=latin1
printf 'eins 1\nzwei\n' > half
expect 3 "half:2" g.wfst good.ark --words=half
printf 'eins 1\n' > partly # a word that is not in the table appears as its number
expect 0 "." g.wfst good/u0.npy --words=partly && prints 'u0 eins 2\n'
expect 3 "no.txt: cannot open" g.wfst good.ark --ref=no.txt

# --- output ----------------------------------------------------------------------------------------------------------------------
expect 3 "/nowhere/out.txt: cannot write" g.wfst good.ark -o /nowhere/out.txt
expect 3 "g.txt/out: cannot write" g.wfst good.ark -o g.txt/out
expect 3 "hollow: cannot write" g.wfst good.ark -o hollow
expect 3 "/dev/full: cannot write: No space left" g.wfst good.ark -o /dev/full
expect 3 "/dev/full: cannot write" g.wfst good.ark --summary=/dev/full
code=0
"$WARPFST" decode g.wfst good.ark > /dev/full 2> err.txt || code=$?
[ $code = 3 ] && grep -q "standard output: cannot write: No space left" err.txt || fail "full standard output: $code, $(cat err.txt)"
# If the disk is full, the old file stays unchanged, and no temporary file is left.
mkdir target
echo old > target/out.json
awk 'BEGIN {for (i = 0; i < 400; i++) print "key" i, "good/u4.npy"}' > many.scp
code=0
(trap '' XFSZ; ulimit -f 4; exec "$WARPFST" decode g.wfst many.scp --format=json -o target/out.json) 2> err.txt || code=$?
[ $code = 3 ] && grep -q "target/out.json: cannot write: File too large" err.txt || fail "full disk: $code, $(cat err.txt)"
[ "$(ls target)" = out.json ] && [ "$(cat target/out.json)" = old ] || fail "half a file: $(ls target)"
# A run that fails leaves no output file. A run with failed utterances leaves one.
expect 3 "." g.wfst nothing.ark -o target/new && [ ! -e target/new ]
expect 1 "." g.wfst nan.ark -o target/new && [ "$(wc -l < target/new)" = 5 ]

# --- command line ----------------------------------------------------------------------------------------------------------------
expect 2 "too few arguments" g.wfst
expect 2 "unknown flag --bean" g.wfst good.ark --bean=3
expect 2 "unknown flag -z" g.wfst good.ark -z
expect 2 "\-\-beam is given twice" g.wfst good.ark --beam=3 --beam 4
expect 2 "\-\-output is given twice" g.wfst good.ark -o x --output=y
expect 2 "\-\-max_active is given twice" g.wfst good.ark --max-active=3 --max_active=3
expect 2 "\-\-words needs a value" g.wfst good.ark --words
for flag in --beam=x --beam=-1 --beam=nan --beam=1e31 --max-active=0 --max-active=1.5 --acoustic-scale=inf --num-threads=-1 --batch=0 --batch=x --format=xml --frame-shift=0 --blank=-2; do
  expect 2 "${flag%%=*}\|$(sed 's/--//; s/=.*//; s/-/_/g' <<< "$flag")" g.wfst good.ark $flag && prints ''
done
expect 0 "^5 utterances (0 narrowed)" g.wfst good.ark --beam=1e30 --max-active=2147483647 --min-active=2147483647 && prints "$all"
expect 0 "^5 utterances (.* 5 narrowed)" g.wfst good.ark --max-active=1 --min-active=0
expect 0 "^5 utterances" g.wfst good.ark --beam=0 --min-active=0 --max-tokens=1
expect 2 "device" g.wfst good.ark --device=tpu
for device in cuda: cuda:x 'cuda:0,' 'cuda:0,all' cuda:-1 CUDA; do expect 2 "unknown device '$device'" g.wfst good.ark --device=$device; done
expect 2 "gpu.memory" g.wfst good.ark --device=cuda --gpu-memory=-1
expect 5 "device cuda:63\|no GPU\|without CUDA\|there are" g.wfst good.ark --device=cuda:63
expect 0 "." g.wfst good.ark --acoustic-scale=0 && prints "$all"
expect 0 "." g.wfst -- good.ark && prints "$all"
[ -z "$(find . -name '*.tmp.*')" ] || fail "half-written files: $(find . -name '*.tmp.*')"
