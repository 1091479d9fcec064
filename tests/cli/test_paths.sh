# shortestpath, prune, randgen, equal, equivalent and randequivalent with files, pipes and OpenFst's option names; exit codes.
# shellcheck shell=bash
fail() { echo "$1" >&2; exit 1; }
code() { local want=$1 got=0; shift; "$@" > out.txt 2> err.txt || got=$?; [ "$got" = "$want" ] || { cat err.txt >&2; fail "exit $got instead of $want: $*"; }; }

printf '%s\n' '0 1 1 10 0.5' '0 1 2 20 0.75' '1 2 3 30 1' '1 3 4 40 0.25' '2 0.5' '3 1' '0 2.5' | fstcompile > a.fst

# the best path: arguments, -o and pipes give the same bytes; OpenFst agrees on the path
"$WARPFST" shortestpath a.fst -o one.fst
"$WARPFST" shortestpath a.fst two.fst
"$WARPFST" shortestpath < a.fst > three.fst
cmp one.fst two.fst; cmp one.fst three.fst
diff <(fstprint one.fst) - <<END
0	1	1	10	0.5
1	2	4	40	0.25
2	1
END
fstshortestpath a.fst | fstisomorphic - one.fst

# n best, in order, with both spellings of the option
"$WARPFST" shortestpath --nshortest=3 a.fst n.fst
"$WARPFST" shortestpath -nshortest 3 a.fst m.fst
cmp n.fst m.fst
[ "$(fstprint n.fst | grep -c '^0[[:space:]]')" = 3 ] || fail "three paths expected"
# OpenFst promises no order of the n-best arcs, so the paths' costs are compared
costs() { python3 - "$1" <<'PY'
import subprocess, sys
arcs, final = {}, {}
for line in subprocess.run(["fstprint", sys.argv[1]], capture_output=True, text=True, check=True).stdout.splitlines():
    f = line.split()
    if len(f) >= 4: arcs.setdefault(f[0], []).append((f[1], float(f[4]) if len(f) == 5 else 0.0))
    else: final[f[0]] = float(f[1]) if len(f) == 2 else 0.0
    start = locals().get("start", f[0])
def walk(s, c):
    out = [round(c + final[s], 4)] if s in final else []
    return out + [x for t, w in arcs.get(s, []) for x in walk(t, c + w)]
print(sorted(walk(start, 0.0)))
PY
}
"$WARPFST" shortestpath --nshortest=10 a.fst ours.fst
fstshortestpath --nshortest=10 a.fst theirs.fst
[ "$(costs ours.fst)" = "[1.75, 2.0, 2.0, 2.25, 2.5]" ] || fail "costs: $(costs ours.fst)"
[ "$(costs ours.fst)" = "$(costs theirs.fst)" ] || fail "OpenFst's costs: $(costs theirs.fst)"

# prune
"$WARPFST" prune --weight=0.25 a.fst p.fst
fstprune --weight=0.25 a.fst | fstisomorphic - p.fst
"$WARPFST" prune --nstate=3 a.fst p.fst
[ "$("$WARPFST" equal p.fst p.fst && fstinfo p.fst | awk '/# of states/ {print $4}')" = 3 ] || fail "nstate"

# exit codes of comparisons: 0 equal, 1 different (with the reason), 2 cannot be compared
code 0 "$WARPFST" equal a.fst a.fst
code 1 "$WARPFST" equal a.fst one.fst
grep -q '4 states in the first, 3 in the second' err.txt
code 1 "$WARPFST" equal -q a.fst one.fst
[ ! -s err.txt ] || fail "--quiet"
fstprint a.fst | sed 's/0\.75$/0.76/' | fstcompile > b.fst
code 1 "$WARPFST" equal a.fst b.fst
code 0 "$WARPFST" equal --delta=0.011 a.fst b.fst
code 2 "$WARPFST" equivalent a.fst a.fst
grep -q 'not an acceptor' err.txt
fstproject --project_type=input a.fst | fstarcsort > acc.fst
fstpush --push_weights acc.fst > pushed.fst
code 0 "$WARPFST" equivalent acc.fst pushed.fst
code 1 "$WARPFST" equal acc.fst pushed.fst
printf '%s\n' '0 1 1 1 0.5' '1 2 3 3 1.25' '2 0.5' | fstcompile > other.fst
code 1 "$WARPFST" equivalent acc.fst other.fst
grep -q 'after' err.txt
code 0 "$WARPFST" randequivalent --npath=50 --seed=3 --delta=0.001 --max_length=10 a.fst a.fst
code 1 "$WARPFST" randequivalent acc.fst other.fst

# randgen: the same seed gives the same paths, another seed others
"$WARPFST" randgen --npath=20 --seed=5 --max_length=10 --select=log_prob a.fst r1.fst
"$WARPFST" randgen --npath=20 --seed=5 --max_length=10 --select=log_prob a.fst r2.fst
"$WARPFST" randgen --npath=20 --seed=6 --max_length=10 a.fst r3.fst
cmp r1.fst r2.fst
cmp -s r1.fst r3.fst && fail "seeds do not matter"
code 0 "$WARPFST" randgen --keep_weights --npath=3 a.fst kept.fst

# errors
code 3 "$WARPFST" shortestpath nothing.fst out.fst
[ ! -e out.fst ] || fail "output of a failed run"
fstmap --map_type=to_log a.fst > log.fst
"$WARPFST" convert --arc_type=standard log.fst | "$WARPFST" shortestpath | "$WARPFST" equal - one.fst
"$WARPFST" shortestpath log.fst | fstmap --map_type=to_std | "$WARPFST" equal - one.fst # by cost, also in the log semiring
code 3 "$WARPFST" prune log.fst out.fst
grep -q convert err.txt
printf '%s\n' '0 0 1 1 -1' '0' | fstcompile > negative.fst
code 3 "$WARPFST" shortestpath negative.fst out.fst
grep -q 'negative' err.txt
code 2 "$WARPFST" shortestpath --nshortest=0 a.fst out.fst
code 2 "$WARPFST" shortestpath --nshortest=2 --unique a.fst out.fst
"$WARPFST" shortestpath --unique a.fst | "$WARPFST" equal - one.fst
code 2 "$WARPFST" equal a.fst
code 0 "$WARPFST" prune --help
