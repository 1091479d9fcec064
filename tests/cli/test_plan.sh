# `warpfst plan` without a GPU: the memory that a batch or streams need, how many streams fit, and which option to lower if they do not fit.
# shellcheck shell=bash
fail() { echo "$1" >&2; exit 1; }
printf '0 1 1 1\n1 1 2 0\n1\n' | "$WARPFST" compile - graph.wfst
plan() { "$WARPFST" plan graph.wfst --device=cuda --processors=132 --max-active=4000 --max-tokens=4000 "$@"; }
plan --streams=1000 --json > streams.json
plan --streams=0 > streams.txt
grep -q '^available_bytes *not known$' streams.txt
plan --utterances=400 --frames=1000 --json > batch.json
read -r total each < <(python3 - <<'PY'
import json
streams, batch = json.load(open("streams.json")), json.load(open("batch.json"))
assert streams["stream_bytes"] == 32000 and streams["lanes"] == 132 and streams["gpus"] == 1, streams
assert streams["total_bytes"] == streams["graph_bytes"] + streams["lane_bytes"] + 1000 * streams["stream_bytes"], streams
assert batch["total_bytes"] == sum(batch[name + "_bytes"] for name in ("graph", "lane", "trace", "score", "result")), batch
print(streams["total_bytes"], streams["stream_bytes"])
PY
)
[ "$(plan --streams=0 --gpu-memory="$total" | sed -n 's/^max_streams *//p')" = 1000 ]
[ "$(plan --streams=0 --scored --gpu-memory="$((total * 2))" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["stream_bytes"])')" = $((2 * each)) ]
status=0
plan --streams=1001 --gpu-memory="$total" 2> err.txt || status=$?
[ "$status" = 4 ] || fail "exit status $status for too many streams"
grep -q 'lower max_tokens (4000)' err.txt
plan --streams=5 --utterances=5 2> err.txt && fail "a batch and streams at once"
plan 2> err.txt && fail "neither a batch nor streams"
[ "$("$WARPFST" plan graph.wfst --streams=5 | sed -n 's/^gpus *//p')" = 0 ]
