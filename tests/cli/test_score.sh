# Checks warpfst matrix against numpy and kaldiio, and warpfst score against sclite (Debian package sctk).
# shellcheck shell=bash
python=$SOURCE_DIR/build/venv/bin/python
sclite() { sctk sclite "$@"; }
test -x "$python" || { echo "no $python: ./run test makes it from tests/python-requirements.txt"; exit 1; }
command -v sctk > /dev/null || { echo "sclite is missing: install the package sctk"; exit 1; }
fails_with() { # CODE PATTERN COMMAND...
  local want=$1 pattern=$2 code=0
  shift 2
  "$@" > out.txt 2> err.txt || code=$?
  [ "$code" = "$want" ] && grep -q -e "$pattern" err.txt || { echo "expected code $want and '$pattern', got $code from: $*"; cat err.txt; exit 1; }
}

# --- matrices: we read what kaldiio and numpy write, and they read what we write ----------------------------------------
cat > make.py <<'E2'
import kaldiio, numpy as np, os, struct
rng = np.random.RandomState(5)
m = {f'utt-{i}': (-20 * rng.rand(n, 37)).astype('f4') for i, n in enumerate([1, 2, 9, 120, 300])}
kaldiio.save_ark('float.ark', m, scp='float.scp')
kaldiio.save_ark('double.ark', {k: v.astype('f8') for k, v in m.items()})
kaldiio.save_ark('text.ark', m, text=True)
for method, name in ((2, 'cm'), (3, 'cm2'), (5, 'cm3')):
    kaldiio.save_ark(name + '.ark', m, scp=name + '.scp', compression_method=method)
# an encoder of Kaldi's CM format: random percentiles and bytes, whose values are computed in doubles
with open('own.ark', 'wb') as f:
    own = {}
    for i, rows in enumerate([1, 7, 260]):
        cols, low, span = 21, -50.25, 48.5
        p = np.sort(rng.randint(0, 65536, (cols, 4)), axis=1)
        b = rng.randint(0, 256, (cols, rows))
        f.write(b'own%d \0BCM ' % i + struct.pack('<ffii', low, span, rows, cols) + p.astype('<u2').tobytes() + b.astype('u1').tobytes())
        q = low + span * p / 65535.0
        own['own%d' % i] = np.stack([np.interp(b[c], [0, 64, 192, 255], q[c]) for c in range(cols)], 1).astype('f4')
np.savez('own.npz', **own)
np.savez('want.npz', **m)
os.mkdir('npy')
for (k, v), dtype in zip(m.items(), ['f4', 'f2', 'f8', 'f4', 'f4']):
    np.save(f'npy/{k}.npy', np.asfortranarray(v.astype(dtype)) if len(v) > 100 else v.astype(dtype))
os.mkdir('units')
np.save('units/u.npy', (rng.rand(5, 4) * 255).astype('u1'))
E2
"$python" make.py
cat > same.py <<'E2'
import kaldiio, numpy as np, sys
want = dict(np.load(sys.argv[1])); got = sys.argv[2]; tol = float(sys.argv[3])
if got.endswith('/'): have = {k: np.load(got + k + '.npy') for k in want}
else: have = dict(kaldiio.load_scp(got) if got.endswith('.scp') else kaldiio.load_ark(got))
assert list(have) == list(want), (list(have), list(want))
for k in want:
    assert have[k].shape == want[k].shape, k
    assert np.abs(have[k].astype('f8') - want[k]).max() <= tol, (k, np.abs(have[k] - want[k]).max())
E2
for name in float double text; do
  "$WARPFST" matrix copy $name.ark -o out.ark --scp=out.scp
  cmp out.ark float.ark
  "$python" same.py want.npz out.scp 0
  "$WARPFST" matrix copy out.scp -o out/
  "$python" same.py want.npz out/ 0
  "$WARPFST" matrix copy - -o text.out --format=text < $name.ark
  "$python" same.py want.npz text.out 0
done
"$WARPFST" matrix copy float.ark -o small.ark --format=compressed
"$python" same.py want.npz small.ark 0.12
"$WARPFST" matrix copy own.ark -o own.out
"$python" same.py own.npz own.out 2e-5
"$WARPFST" matrix copy npy -o npy.ark
"$python" same.py want.npz npy.ark 0.01
for name in cm cm2 cm3; do # kaldiio and we must decode kaldiio's compressed files to the same values
  "$WARPFST" matrix copy $name.ark -o $name.out
  "$WARPFST" matrix copy scp:$name.scp -o $name.scp.out
  cmp $name.out $name.scp.out
  "$python" -c "
import kaldiio, numpy as np
a = dict(kaldiio.load_ark('$name.ark')); b = dict(kaldiio.load_ark('$name.out'))
assert list(a) == list(b) and len(a) == 5
assert all(np.abs(a[k] - b[k]).max() < 2e-5 for k in a)"
done
"$WARPFST" matrix copy units/u.npy -o u.ark --scale=-0.10239488
"$python" -c "
import kaldiio, numpy as np
assert np.abs(dict(kaldiio.load_ark('u.ark'))['u'] + 0.10239488 * np.load('units/u.npy')).max() < 1e-5"
"$WARPFST" matrix info float.ark --json > info.json
"$python" -c "
import json, numpy as np
w = dict(np.load('want.npz'))
for line in open('info.json'):
    o = json.loads(line); m = w.pop(o['key'])
    assert (o['frames'], o['columns']) == m.shape and abs(o['min'] - m.min()) < 1e-4 and abs(o['max'] - m.max()) < 1e-4 and abs(o['mean'] - m.mean()) < 1e-4
assert not w"

# --- errors: each is reported, fails only its own utterance, and sets the exit code -------------------------------------------
cp -r npy faulty && echo garbage > faulty/utt-2.npy
fails_with 1 "utt-2" "$WARPFST" matrix copy faulty -o faulty.ark
test "$("$WARPFST" matrix info faulty.ark 2> /dev/null | wc -l)" = 4
head -c 20000 float.ark > cut.ark
fails_with 3 "rest of that archive is lost" "$WARPFST" matrix info cut.ark
fails_with 3 "pipe" "$WARPFST" matrix info "cat float.ark |"
fails_with 3 "cannot open" "$WARPFST" matrix info nothing.ark
fails_with 2 "no output" "$WARPFST" matrix copy float.ark
"$python" -c "
import kaldiio, numpy as np
kaldiio.save_ark('nan.ark', {'n': np.array([[0, np.nan]], 'f4')})"
fails_with 1 "n: frame 0, column 1: score is NaN" "$WARPFST" matrix info nan.ark

# --- word error rate: the same counts and alignments of every utterance as sclite -------------------------------------------
cat > text.py <<'E2'
import random, sys
random.seed(int(sys.argv[1])); words = sys.argv[2].split(); mode = sys.argv[3]
ref, hyp = open('ref.trn', 'w'), open('hyp.trn', 'w')
rt, ht = open('ref.txt', 'w'), open('hyp.txt', 'w')
for i in range(400):
    v = words[:random.randint(1, len(words))]
    r = [random.choice(v) for _ in range(random.randint(0, 25))]
    if mode == 'random': h = [random.choice(v) for _ in range(random.randint(0, 25))]
    else:  # a recogniser's errors
        h = []
        for w in r:
            x = random.random()
            if x < 0.1: h.append(random.choice(words))
            elif x < 0.17: continue
            elif x < 0.25: h += [random.choice(words), w]
            else: h.append(w)
    key = 'spk%d-%03d' % (i % 3, i)
    for trn, txt, w in ((ref, rt, r), (hyp, ht, h)):
        print(' '.join(w), '(%s)' % key, file=trn); print(key, *w, file=txt)
E2
cat > compare.py <<'E2'
# sclite's alignment report against ours: ids, counts and both aligned lines.
import re, sys
def read(path):
    out, key = {}, None
    for line in open(path, encoding='utf-8'):
        if line.startswith('id: '): key = line[4:].strip(); out[key] = {}
        elif key and line.startswith('Scores:'): out[key]['counts'] = line.split(')')[-1].split()
        elif key and line[:4] in ('REF:', 'HYP:'): out[key][line[:3]] = re.sub(r'\*+', '*', line[5:].lower()).split()  # sclite pads with one star per byte
    return out
a, b = read('sclite.txt'), read('ours.txt')
assert set(a) == set(b) and len(a) == int(sys.argv[1]), (len(a), len(b))
for k in a:
    assert a[k]['counts'] == b[k]['counts'], (k, a[k], b[k])
    for side in ('REF', 'HYP'): assert a[k].get(side, []) == b[k].get(side, []), (k, a[k], b[k])
E2
compare() { # sclite options ... -- our options ...
  local theirs=()
  while [ "$1" != -- ]; do theirs+=("$1"); shift; done
  shift
  sclite -r ref.trn trn -h hyp.trn trn -i rm "${theirs[@]}" -o pralign stdout > sclite.txt
  "$WARPFST" score ref.trn hyp.trn --align "$@" > ours.txt
  "$python" compare.py 400
  "$WARPFST" score ref.txt hyp.txt --align "$@" | cmp - ours.txt
}
"$python" text.py 1 "a b c d" random
compare -- --ignore-case
"$python" text.py 2 "the a an of on in The OF cat hat" noisy
compare -- --ignore-case
compare -s --
"$python" text.py 3 "eins zwei drei grün weiß schön" noisy
compare -s -e utf-8 --
compare -s -e utf-8 -c -- --cer
"$python" text.py 4 "one two three four five six seven eight nine oh" noisy
compare -- --ignore-case
# totals
sclite -r ref.trn trn -h hyp.trn trn -i rm -o rsum stdout | tr -s ' |' ' ' | awk '$1 == "Sum" {print $3, $4, $5, $6, $7, $9}' > want.txt
"$WARPFST" score ref.trn hyp.trn --json | "$python" -c "
import json, sys
o = json.load(sys.stdin)
print(o['words'], o['correct'], o['sub'], o['del'], o['ins'], o['wrong_utterances'])" > have.txt
cmp want.txt have.txt

# formats, options, exit codes
cat > r.txt <<'E2'
u1 one two three
u2 four <unk> five
u3 six
E2
printf 'u1 1 0 0.1 one\nu1 1 0.1 0.1 too\nu1 1 0.2 0.1 three 0.5\nu2 1 0 1 four\nu2 1 1 1 five\n' > h.ctm
printf '{"key": "u1", "text": "one too three"}\n{"key": "u2", "text": "four five"}\n{"key": "u3", "error": "x"}\n' > h.json
"$WARPFST" score r.txt h.ctm --ignore='<unk>' > out.txt
grep -qx '%WER 33.33 \[ 2 / 6, 0 ins, 1 del, 1 sub \]' out.txt
grep -qx '%SER 66.67 \[ 2 / 3 \]' out.txt
fails_with 1 "counted as deletions: u3" "$WARPFST" score r.txt h.json --ignore='<unk>'
grep -q '%WER 33.33' out.txt
echo '<unk> 7' > filter
"$WARPFST" score r.txt h.json --filter=filter --missing=skip --per-utt > out.txt 2> /dev/null
grep -q '%WER 20.00 \[ 1 / 5, 0 ins, 0 del, 1 sub \]' out.txt
grep -qx "u1	3	2	1	0	0	33.33" out.txt
"$WARPFST" score r.txt h.json --filter=filter --missing=skip --per-utt --json 2> /dev/null | "$python" -c "
import json, sys
o = json.load(sys.stdin); assert [u['key'] for u in o['per_utterance']] == ['u1', 'u2'] and o['wer'] == 20.0 and o['missing'] == 1"
echo "u9 nine" > extra.txt
fails_with 3 "no utterance is in both" "$WARPFST" score r.txt extra.txt
fails_with 3 "given twice" "$WARPFST" score r.txt <(cat r.txt r.txt)
fails_with 3 "cannot open" "$WARPFST" score r.txt nothing.txt
fails_with 2 "format" "$WARPFST" score r.txt r.txt --ref-format=xml
cat r.txt extra.txt > more.txt
fails_with 1 "no reference, left out: u9" "$WARPFST" score r.txt more.txt
grep -q '%WER 0.00' out.txt
"$WARPFST" score --help | grep -- "--missing=delete|skip" > /dev/null
"$WARPFST" matrix copy --help | grep -- "--scp=FILE" > /dev/null
