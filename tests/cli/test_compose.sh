# warpfst compose: several inputs, orders of states, limits, threads, the report of --stats.
# shellcheck shell=bash
set -euo pipefail

printf '0 1 1 2 0.5\n0 1 1 3 1\n1 0 2 2\n1\n' > a.txt
printf '0 1 2 7 1\n1 2 3 8\n0 0 3 9 2\n2 0 2 2\n1\n' > b.txt
printf '0 0 7 1\n0 0 9 2 0.25\n0 0 2 3\n0 0 8 4\n0\n' > c.txt
for name in a b c; do "$WARPFST" compile $name.txt $name.fst; done
fstarcsort --sort_type=olabel a.fst as.fst
fstarcsort --sort_type=ilabel b.fst bs.fst
fstarcsort --sort_type=ilabel c.fst cs.fst
fstcompose as.fst bs.fst > ab.fst
fstarcsort --sort_type=olabel ab.fst | fstcompose - cs.fst > abc.fst

# The last name is the output, unless -o names the output.
"$WARPFST" compose a.fst b.fst ours.fst
fstequal ours.fst ab.fst
"$WARPFST" compose a.fst b.fst c.fst -o ours.fst
fstequal ours.fst abc.fst
"$WARPFST" compose a.fst b.fst c.fst positional.fst
cmp ours.fst positional.fst
"$WARPFST" compose a.fst b.fst | fstequal - ab.fst

# Several at once: equal to pairs that are not trimmed in between, byte for byte. --pairwise trims.
fstcompose --connect=false as.fst bs.fst | fstarcsort --sort_type=olabel > whole.fst
fstcompose whole.fst cs.fst > lazy.fst
fstequal ours.fst lazy.fst
"$WARPFST" compose a.fst b.fst c.fst a.fst --pairwise -o pairs.fst
"$WARPFST" compose a.fst b.fst c.fst a.fst -o all.fst
fstequivalent --random --npath=100 pairs.fst all.fst

# Canonical order: the same paths, and the same bytes for any number of threads.
"$WARPFST" compose a.fst b.fst c.fst --order=canonical -o one.fst
"$WARPFST" compose a.fst b.fst c.fst --order=canonical --num-threads=2 -o two.fst
cmp one.fst two.fst
fstisomorphic one.fst abc.fst

"$WARPFST" compose a.fst b.fst ours.fst --stats 2> report
grep -q 'peak MiB' report
grep -Eq '^composed +[1-9]' report
"$WARPFST" compose a.fst b.fst ours.fst --json 2> report
grep -qE '^\{"states": [0-9]+, "arcs": [0-9]+, "seconds": [0-9.e-]+, "peak_bytes": [0-9]+\}$' report
"$WARPFST" compose a.fst b.fst c.fst ours.fst --stats 2> report
[ "$(grep -c '^composed' report)" = 1 ]
"$WARPFST" compose a.fst b.fst c.fst ours.fst --stats --pairwise 2> report
[ "$(grep -c '^composed' report)" = 2 ]

code() { local got=0; "$@" > out 2> err || got=$?; echo $got; }
[ "$(code "$WARPFST" compose a.fst b.fst x.fst --max-states=1)" = 4 ]
grep -q 'more than 1 states' err
[ "$(code "$WARPFST" compose a.fst b.fst x.fst --order=canonical --max-bytes=1)" = 4 ]
grep -q max_bytes err
[ "$(code "$WARPFST" compose a.fst b.fst x.fst --device=cuda)" = 3 ]
grep -q 'order=canonical' err
[ "$(code "$WARPFST" compose a.fst)" = 2 ]
