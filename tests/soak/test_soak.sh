#!/usr/bin/env bash
# test_soak.sh SOAK - runs the soak test on the imitated GPU. A few seeds of each kind must show no difference. With --plant, the changed result must be
# detected, and the printed seed must repeat the task.
set -euo pipefail
soak=$1
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
fail() { echo "$1" >&2; exit 1; }

"$soak" --seed=1 --seeds="${WARPFST_TEST_SEEDS:-12}" --threads=2 | tee "$TMPDIR/out.txt"
grep -q '^soak: [1-9][0-9]* utterances, [1-9][0-9]* operations, [1-9][0-9]* seeds, [0-9.]* s, 0 differences$' "$TMPDIR/out.txt" || fail 'no closing line'

for kind in batches streams fsts recurrent transducers graphs alignments; do
  status=0
  "$soak" --only=$kind --seed=100 --seeds=3 --plant >"$TMPDIR/out.txt" 2>&1 || status=$?
  [ $status = 1 ] || fail "$kind: exit status $status though a result was changed: $(cat "$TMPDIR/out.txt")"
  seed=$(sed -n "s/^seed \([0-9]*\): $kind: .*: the result differs$/\1/p" "$TMPDIR/out.txt")
  [ -n "$seed" ] || fail "$kind: no seed in $(cat "$TMPDIR/out.txt")"
  grep -q "^again: --seed=$seed --seeds=1$" "$TMPDIR/out.txt" || fail "$kind: nothing on how to repeat it"
  "$soak" --seed="$seed" --seeds=1 | grep -q '1 seeds.*, 0 differences$' || fail "$kind: seed $seed differs without the change"
done

# Threads that stop are noticed, with what they wait for.
status=0
"$soak" --seed=1 --threads=2 --stall=1 --hang >"$TMPDIR/out.txt" 2>&1 || status=$?
[ $status = 1 ] || fail "exit status $status though all threads stopped: $(cat "$TMPDIR/out.txt")"
grep -q '^no progress for 1 s: thread 1, seed [12] (.*): begins; it is in$' "$TMPDIR/out.txt" || fail "the stall is not shown: $(cat "$TMPDIR/out.txt")"
grep -q 'pause' "$TMPDIR/out.txt" || fail "what the threads wait for is not shown: $(cat "$TMPDIR/out.txt")"
grep -q '^soak: hangs after 3 s' "$TMPDIR/out.txt" || fail "no closing line: $(cat "$TMPDIR/out.txt")"
