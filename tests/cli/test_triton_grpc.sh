# The backend in a real Triton Inference Server over gRPC with NVIDIA's tritonclient: flags and boosts of a request, then `./run bench triton` for a moment, which
# compares the results of its streams with those of `warpfst decode`. Exit status 77: no server or no tritonclient; ./run test installs both.
# shellcheck shell=bash
server=${WARPFST_TRITON_SERVER:-$SOURCE_DIR/build/triton/pytriton/tritonserver/bin/tritonserver}
python=${WARPFST_TRITON_PYTHON:-$SOURCE_DIR/build/venv/bin/python}
[ -x "$server" ] || { echo "no $server" >&2; exit 77; }
"$python" -c 'import tritonclient.grpc' 2>import.log || { echo "$python has no tritonclient" >&2; exit 77; }
[ -x "$BUILD_DIR/bench/bench_stream" ] || { echo 'no bench_stream: the benchmarks are not built' >&2; exit 77; }
export WARPFST_TRITON_SERVER=$server PYTHONPATH=$SOURCE_DIR/tests/cli
run() { timeout 200 "$python" "$SOURCE_DIR/bench/triton/triton.py" --build="$BUILD_DIR" --work="$PWD/work" "$@" >out.txt 2>err.txt || { cat out.txt err.txt work/server.log >&2; exit 1; }; }
run --streams=12 --seconds=3 --boosted=0.5 --phrases=3 --save=saved.json
grep -q '^| gRPC  *| *12 |' out.txt && grep -q '^| without server *| *12 |' out.txt && grep -q 'compute 30.1, latency mean 54.5, p99 78' out.txt || { cat out.txt >&2; exit 1; }
"$python" - <<'EOF'
import json
row = dict(json.load(open("saved.json"))["rows"])["gRPC"]
assert row["unanswered"] == 0 and row["checked"] >= 6 and 10 < row["realtime"] < 14 and row["p99_ms"] >= row["p50_ms"] >= row["compute_ms"] > 0, row
EOF
printf 'IT 8\n' >boost
"$WARPFST" decode work/TLG.wfst "$SOURCE_DIR/examples/ctc/logp_phone" --acoustic-scale=0.7 --beam=15 --max-active=7000 --blank=0 --boost boost --format=json -o boosted.json 2>log
timeout 100 "$python" "$SOURCE_DIR/tests/cli/triton_grpc.py" "$server" work boosted.json "$SOURCE_DIR/examples/ctc/logp_phone" || { tail -20 server.log >&2; exit 1; }
