# warpfst decode on input that is wrong: the exit code, the message, and that the other utterances are none the worse.
python=$SOURCE_DIR/build/venv/bin/python
fail() { echo "FAILED: $*"; exit 1; }
# expect CODE PATTERN ARGUMENTS...: exit code and a line of stderr; results in out.txt
expect() {
  local code=$1 pattern=$2 have=0
  "$WARPFST" decode "${@:3}" > out.txt 2> err.txt || have=$?
  [ "$have" = "$code" ] || fail "exit $have, not $code, of: decode ${*:3}: $(cat err.txt)"
  grep -Eq -- "$pattern" err.txt || fail "no '$pattern' from: decode ${*:3}: $(cat err.txt)"
}
# summary PATTERN: how the last run was summed up
told() { grep -Eq -- "$1" out.txt || fail "no '$1' in: $(cat out.txt)"; }

# A graph that reads columns 0 and 1, and says word 7 for column 1 twice in a row.
printf '0 0 1 0\n0 1 2 7 0.5\n1 1 2 0\n1 2 2 0 1\n2 0.25\n' > g.txt
"$WARPFST" compile g.txt -o g.fst
printf '<eps> 0\nseven 7\n' > words.txt
"$python" -c "
import numpy as np
np.random.seed(1)
good = -np.random.rand(6, 2).astype('f4')
def save(name, m): np.save(name + '.npy', m)
import os
for f in ('mixed', 'fine'): os.mkdir(f)
for f in ('mixed', 'fine'): save(f + '/a_good', good); save(f + '/z_good', good * 2)
bad = good.copy(); bad[3, 1] = np.nan; save('mixed/b_nan', bad)
bad = good.copy(); bad[2, 0] = np.inf; save('mixed/c_inf', bad)
bad = good.copy(); bad[4, 1] = -3e30; save('mixed/d_huge', bad)
save('mixed/e_narrow', good[:, :1])
save('mixed/f_empty', good[:0])
save('mixed/g_one', good[:1])
bad = good.copy(); bad[2] = -np.inf; save('mixed/h_dead', bad)
open('mixed/i_cut.npy', 'wb').write(open('mixed/a_good.npy', 'rb').read()[:-5])
open('mixed/j_text.npy', 'w').write('hello')
save('mixed/k_cube', np.zeros((2, 3, 4), 'f4'))
open('mixed/l_header.npy', 'wb').write(b'\x93NUMPY\x01\x00v\x00' + b\"{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999, 999999999), }\".ljust(117) + b'\n')
"
# --- one bad utterance fails by itself
expect 1 "'b_nan': score of frame 3, column 1 is NaN" g.fst mixed --words=words.txt --format=json
for pattern in 'score of frame 2, column 0 is inf' 'score of frame 4, column 1 is -3e\+30' \
  'scores have 1 columns, the graph reads column 1' 'i_cut' 'j_text' 'k_cube' 'l_header' '8 (more )?failed'; do
  grep -Eq -- "$pattern" err.txt || fail "no '$pattern' in: $(cat err.txt)"
done
told '"key": ?"f_empty".*not_final'
told '"key": ?"g_one".*not_final'
told '"key": ?"h_dead".*died'
told '"key": ?"b_nan".*"error"'
cp out.txt mixed.json
"$WARPFST" decode g.fst fine --words=words.txt --format=json > fine.json 2> /dev/null
for key in a_good z_good; do
  [ "$(grep "\"$key\"" mixed.json)" = "$(grep "\"$key\"" fine.json)" ] || fail "$key suffers from its neighbours"
done

# --- the graph
head -c 60 g.fst > cut.fst
expect 3 'cut.fst' cut.fst fine
expect 3 'nowhere.fst: cannot open' nowhere.fst fine
: > empty
expect 3 'empty' empty fine
printf '0 1 1 1 0\n1 2 0 0 -1\n2 1 0 0 0.5\n2\n' > cycle.txt && "$WARPFST" compile cycle.txt -o cycle.fst
expect 3 'cycle of epsilon arcs .*negative' cycle.fst fine
printf '0 0 900 0\n0\n' > wide.txt && "$WARPFST" compile wide.txt -o wide.fst
expect 1 'the graph reads column 899' wide.fst fine
printf '' > none.txt && "$WARPFST" compile none.txt -o none.fst
expect 2 'the fst is empty' none.fst fine

# --- symbols, references, output
expect 3 'nowords.txt: cannot open' g.fst fine --words=nowords.txt
printf 'caf\xe9 7\n' > latin1.txt
expect 3 'latin1.txt:1: .*UTF-8' g.fst fine --words=latin1.txt
expect 3 'noref: cannot open' g.fst fine --ref=noref
expect 3 'cannot write' g.fst fine -o no/such/folder/out
expect 3 'cannot write|/dev/full' g.fst fine -o /dev/full
mkdir quiet
expect 2 'holds no .npy' g.fst quiet
expect 3 'nofile' g.fst nofile
expect 3 'pipe|executed' g.fst 'touch ran |'
[ ! -e ran ] || fail "a command in a score path was run"
[ -z "$(find . -name '*.tmp.*')" ] || fail "half-written files: $(find . -name '*.tmp.*')"

# --- usage
expect 2 'unknown flag --bean' g.fst fine --bean=3
expect 2 'beam' g.fst fine --beam=-1
expect 2 'beam' g.fst fine --beam=wide
expect 2 'max_active' g.fst fine --max-active=0
expect 2 'too few arguments' g.fst
expect 2 'device' g.fst fine --device=tpu
expect 5 'device cuda:63|no GPU|without CUDA|there are' g.fst fine --device=cuda:63
expect 0 '2 utterances' g.fst fine --beam=1e30 --max-active=1
expect 0 '2 utterances' g.fst fine --beam=0 --max-tokens=1 --min-active=0

# --- an archive that ends in the middle: what came before is decoded, the rest is told
"$WARPFST" matrix copy fine -o both.ark 2> /dev/null
head -c $(($(wc -c < both.ark) - 7)) both.ark > cut.ark
expect 3 'z_good' g.fst cut.ark --words=words.txt --format=json
[ "$(grep '"a_good"' out.txt)" = "$(grep '"a_good"' fine.json)" ] || fail "the utterance before the cut"
expect 3 'the rest of that archive is lost' g.fst - --words=words.txt < cut.ark
