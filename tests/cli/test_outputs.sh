# Outputs that are no plain files: standard output by its other names, links, FIFOs, process substitution, gzip, Kaldi's forms.
# shellcheck shell=bash
source "$SOURCE_DIR/tests/cli/expect.sh"
printf '0 1 1 1\n1\n' > a.txt
"$WARPFST" compile a.txt a.fst

# --- descriptors, links --------------------------------------------------------------------------------------------------------------
{ printf head; "$WARPFST" compile a.txt -o /dev/stdout; printf tail; } > out
cmp <(printf head; cat a.fst; printf tail) out
"$WARPFST" compile a.txt /dev/fd/7 7> seven
cmp a.fst seven
[ "$(find . -maxdepth 1 -name '7*' | wc -l)" = 0 ] || fail "a file is named after a descriptor"
"$WARPFST" compile a.txt >(cat > substituted)
for _ in $(seq 50); do cmp -s a.fst substituted && break; sleep 0.1; done
cmp a.fst substituted
mkdir real
ln -s real/x.fst link.fst
for _ in 1 2; do "$WARPFST" compile a.txt link.fst; done
[ -L link.fst ] || fail "the link was replaced"
cmp a.fst real/x.fst

# --- FIFOs ---------------------------------------------------------------------------------------------------------------------------
mkfifo fifo
(sleep 0.5; cat fifo > late) &
"$WARPFST" compile a.txt fifo
wait
cmp a.fst late
seq 1 100000 | awk '{print $1 - 1, $1, 1, 1} END {print 100000}' | "$WARPFST" compile - long.fst
for how in "print --numeric long.fst -o" "shortestdistance long.fst -o" "print --strings long.fst -o"; do
  head -c 1 fifo > /dev/null &
  # shellcheck disable=SC2086
  expect 3 'fifo: cannot write: Broken pipe' timeout 20 "$WARPFST" $how fifo
  wait
done
[ -p fifo ] || fail "the FIFO was replaced"
set +o pipefail
said=$("$WARPFST" print --numeric long.fst 2>&1 | head -n 1) # a pipe on standard output ends the program, without a message
set -o pipefail
[ "$said" = "$(printf '0\t1\t1\t1')" ] || fail "standard output: $said"

# --- gzip ----------------------------------------------------------------------------------------------------------------------------
"$SOURCE_DIR/build/venv/bin/python" - <<'PY'
import numpy as np
for name, path in ("u", [0, 1, 0]), ("v", [1, 1, 0]):
    m = np.full((3, 2), -9, np.float32)
    m[range(3), path] = -0.001
    np.save(name + ".npy", m)
PY
printf '<blk> 0\nY 1\n' > tokens.txt
printf 'yes Y\n' > lexicon.txt
printf '\\data\\\nngram 1=3\n\n\\1-grams:\n-99\t<s>\n-1\t</s>\n-1\tyes\n\n\\end\\\n' > m.arpa
"$WARPFST" mkgraph ctc --tokens=tokens.txt --lexicon=lexicon.txt --lm=m.arpa -q -o g.wfst.gz 2> /dev/null
[ "$(gunzip -c g.wfst.gz | head -c 5 | tail -c 4)" = WFST ] || fail "g.wfst.gz is no native file in gzip"
gunzip -c g.wfst.gz > g.wfst
decode=("$WARPFST" decode g.wfst.gz u.npy v.npy)
"${decode[@]}" --lattice=lat.ark -o hyp --summary=sum.json 2> /dev/null
"${decode[@]}" --lattice=lat.1.gz -o hyp.gz --summary=sum.json.gz 2> /dev/null
cmp hyp <(gunzip -c hyp.gz)
cmp lat.ark <(gunzip -c lat.1.gz)
gunzip -t sum.json.gz
[ "$("$WARPFST" lattice nbest lat.1.gz 2> /dev/null)" = "$("$WARPFST" lattice nbest lat.ark 2> /dev/null)" ] || fail "n-best of lat.1.gz"
"$WARPFST" lattice mbr lat.ark --sausages=s.json.gz -o mbr.txt 2> /dev/null
[ "$(gunzip -c s.json.gz | wc -l)" = 2 ] || fail "sausages"
"$WARPFST" matrix copy u.npy -o m.ark.gz 2> /dev/null
[ "$("$WARPFST" matrix info m.ark.gz 2> /dev/null)" = "$("$WARPFST" matrix info u.npy 2> /dev/null)" ] || fail "m.ark.gz"
expect 2 'must be a plain file, but m.ark.gz is gzip' "$WARPFST" matrix copy u.npy -o m.ark.gz --scp=m.scp
expect 2 'must be a plain file, but m.wlm.gz is gzip' "$WARPFST" lm convert m.arpa -o m.wlm.gz

# --- Kaldi's forms -------------------------------------------------------------------------------------------------------------------
mkdir kaldi
"${decode[@]}" -o ark,t:kaldi/hyp --lattice=ark,t:kaldi/lat.txt 2> /dev/null
cmp hyp kaldi/hyp
grep -q '^u *$' kaldi/lat.txt || fail "kaldi/lat.txt is no text"
"$WARPFST" matrix copy u.npy v.npy -o ark,scp:kaldi/m.ark,kaldi/m.scp 2> /dev/null
[ "$("$WARPFST" matrix info scp:kaldi/m.scp 2> /dev/null)" = "$("$WARPFST" matrix info kaldi/m.ark 2> /dev/null)" ] || fail "ark,scp"
"$WARPFST" matrix copy u.npy -o ark,t:- 2> /dev/null | grep -q '^u *\[' || fail "ark,t:- is no text"
expect 3 'is a pipe; commands are not run' "${decode[@]}" '--lattice=ark:|gzip -c > kaldi/no.gz' -o h
expect 3 'is a pipe; commands are not run' "${decode[@]}" -o '| cat > kaldi/no'
expect 3 'scp:kaldi/no.scp: a script file alone' "$WARPFST" matrix copy u.npy -o scp:kaldi/no.scp
expect 3 'results are text' "${decode[@]}" -o ark,b:kaldi/no
expect 2 'asks for text (t), which contradicts' "$WARPFST" matrix copy u.npy --format=compressed -o ark,t:kaldi/no
expect 2 "no table of Kaldi: give 'kaldi/no'" "$WARPFST" compile a.txt ark:kaldi/no
expect 2 "no table of Kaldi: give 'kaldi/no'" "$WARPFST" matrix copy u.npy --format=npy -o ark:kaldi/no
[ "$(find . -name '*:*' -o -name '*no*' | wc -l)" = 0 ] || fail "files: $(find . -name '*:*' -o -name '*no*')"
