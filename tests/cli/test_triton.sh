# The backend for Triton Inference Server, in a real server on the CPU. The server is that of NVIDIA's PyPI package nvidia-pytriton, which ./run test installs
# into build/triton. Exit status 77: there is no server.
# shellcheck shell=bash
server=${WARPFST_TRITON_SERVER:-$SOURCE_DIR/build/triton/pytriton/tritonserver/bin/tritonserver}
[ -x "$server" ] || { echo "no $server: ./run test installs it" >&2; exit 77; }
ctc=$SOURCE_DIR/examples/ctc
mkdir -p backends/warpfst models scores
cp "$BUILD_DIR/triton/libtriton_warpfst.so" backends/warpfst/
cp -r "$SOURCE_DIR/triton/models/warpfst" models/
mkdir models/warpfst/1
"$WARPFST" mkgraph ctc --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" -o models/warpfst/1/graph.wfst -q
cp -r models/warpfst models/short # a second model, whose sequences may idle for half a second
sed -i 's/\(max_sequence_idle_microseconds\): 60000000/\1: 500000/' models/short/config.pbtxt
# A third model, with a transducer. Its encoder outputs are the same scores.
mkdir -p models/transducer/1 expected
python3 "$SOURCE_DIR/tests/cli/toy_transducer.py" models/transducer/1/toy.safetensors "$(wc -l <"$ctc/tokens_phone.txt")"
"$WARPFST" mkgraph ctc --topology=transducer --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" -o models/transducer/1/graph.wfst -q
sed 's/{ key: "graph" .*/&\n  { key: "transducer" value: { string_value: "toy.safetensors" } },/' models/warpfst/config.pbtxt >models/transducer/config.pbtxt
for file in $(find "$ctc/logp_phone" -name '*.npy' | sort | head -60); do ln -s "$file" scores/; done
printf 'IT 8\n' >boost
decode() { # MODEL FLAGS...
  local settings=("models/$1/1/graph.wfst" scores --acoustic-scale=0.7 --beam=15 --blank=0 --frame-shift=0.04 --format=json "${@:2}")
  "$WARPFST" decode "${settings[@]}" -o "expected/$1.json" 2>log
  "$WARPFST" decode "${settings[@]}" --boost boost -o "expected/$1-boosted.json" 2>log
}
decode warpfst --max-active=7000
decode transducer --transducer=models/transducer/1/toy.safetensors
timeout 300 python3 "$SOURCE_DIR/tests/cli/triton_client.py" "$server" "$PWD/models" "$PWD/backends" scores expected || { tail -40 server.log >&2; exit 1; }

# Errors in a model's configuration are reported when it is loaded.
rm -r models/short models/transducer
refuse() { # PATTERN SED-SCRIPT
  sed "$2" "$SOURCE_DIR/triton/models/warpfst/config.pbtxt" >models/warpfst/config.pbtxt
  timeout 60 "$server" --model-repository="$PWD/models" --backend-directory="$PWD/backends" --allow-http=false --allow-grpc=false --allow-metrics=false >load.log 2>&1 && { echo "loaded: $2" >&2; exit 1; }
  grep -q "$1" load.log || { echo "no '$1'" >&2; tail -20 load.log >&2; exit 1; }
}
refuse 'no such parameter: bean' 's/"beam"/"bean"/'
refuse 'graph.fst' 's/graph.wfst/graph.fst/'
refuse 'parameter `graph` is missing' 's/{ key: "graph" .*//'
refuse 'acoustic_scale' 's/"0.7"/"loud"/'
