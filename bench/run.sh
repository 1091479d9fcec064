#!/usr/bin/env bash
# run.sh WHAT [ARGUMENTS] - runs a benchmark; called by `./run bench`, which installs and builds what is needed.
#   fstops   operations on transducers, compared with OpenFst's
#   differential  operations on random machines, compared with OpenFst's results through pynini; not in `all`: installs pynini
#   grammar  a text-normalisation grammar, compiled and applied beside pynini; not in `all`: installs pynini
#   decode   speed of decoding
#   lm       reading and querying language models; with --device=cpu|cuda: decoding with a large one on the fly; with --part=fetch: ways to fetch n-grams from host memory
#   lm_scale a model of 1G n-grams: size, opening; `lm convert` within a memory limit; not in `all`
#   rnnlm    recurrent models: training, scoring, decoding
#   lattice  decoding with and without lattices, their size and oracle
#   features decoding with a language model, boosts, lattices and all of them, against the batch; needs a GPU; not in `all`
#   gpus     the same batches on one GPU and on all of a machine; needs several GPUs; not in `all`
#   stream   streams in real time: latency, capacity, memory of an hour; blank options; boosts
#   serve    `warpfst serve` under load: live streams, requests, clients that do wrong; not in `all`: installs its packages (30 MB)
#   triton   a Triton Inference Server with the backend, over gRPC: latency by number of streams; not in `all`: installs the server (55 MB)
#   boost    lists of boosted words, right and wrong ones: what they find and what they break, for every way to weigh them, and for peers; costs of added words; not in `all`
#   align    forced alignment, compared with torchaudio's; not in `all`: installs torch (3 GB)
#   compat   warpfst.compat, compared with pyctcdecode, flashlight-text and torchaudio: word error rate and speed; with --part=open: ways to recognise any word; not in `all`: builds KenLM, installs torch (3 GB)
#   ocr      a released model that reads lines of text, with 18,385 tokens: errors and time with word lists, language models and names; not in `all`: installs onnxruntime and the model (40 MB)
#   peers    other decoders beside ours in one run: error rate, speed and memory by beam, on the CPU or a GPU; not in `all`: installs them (50 MB; --wheels=FOLDER: uses those of a folder)
#   generation  a step of warpfst.generation by vocabulary and batch; with --device=cuda: on a GPU; with --peers: beside xgrammar's and llguidance's masks; not in `all`: installs these and torch (3 GB)
#   training a training step with the losses of warpfst.torch beside torch's ctc_loss, on the CPU or a GPU (--device=cuda); not in `all`: needs torch and the package
#   whisper  lists of words for Whisper tiny.en, right and wrong ones: what they find and what they break; not in `all`: installs torch and transformers (3 GB), needs the model (--help)
#   graph    building hybrid graphs step by step, compared with OpenFst's tools; not in `all`: OpenFst takes a quarter of an hour for the largest
#   hybrid   hybrid graphs built by mkgraph, step by step, and word error rates with them; not in `all`
#   compose  the published comparison of composition: tables for OpenFst, GTN, ours
#   rnnlm_hybrid  recurrent and n-gram models of Jane Austen's novels on the hybrid task: perplexity, word error rate; not in `all`
#   topologies  word error rates of correct and compact on real CTC scores, by beam; not in `all`
#   confidence  how reliable confidences of words are, by the factor on the costs of paths; not in `all`
#   accuracy  the word error rates that n-gram and recurrent models, boosts and all of them reach on real CTC scores of phones, characters and pieces; not in `all`
#   papers   curves of the published papers: large and recurrent language models by beam, cache sizes, CTC topologies; not in `all`
#   word_times  how many word times are exact, for every kind of graph; not in `all`
#   sweep    speed and word error rate by beam; with --min-active: by beam and min_active; not in `all`
#   spot     listed words in lattices: precision and recall; not in `all`
#   fly      a large n-gram model on the fly: exactness, word error rate and speed on the hybrid task; not in `all`
#   transducer_task  speed of transducers of real sizes with random weights, on a GPU; not in `all`
#   transducer_peers  NeMo's batched transducer decoders beside warpfst; not in `all`: needs torch and NeMo's wheel (--help)
#   transducer  word error rates and speed of transducers; not in `all`: needs models and encoder outputs (--help)
#   show [SERIES [TEXT]]  prints the recorded figures of a series, such as `decode`, in rows with TEXT; alone: a list of all series
#   all      all benchmarks that are not marked `not in all`
#   help     this text
# `WHAT --help` lists the arguments; --record writes the figures to bench/figures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p build/bench

build_openfst_ops() {
  local program=build/bench/openfst_ops source=bench/peers/openfst_ops.cc
  [ "$program" -nt "$source" ] && return
  echo "building $program" >&2
  g++ -O2 -std=c++17 -w "$source" -o "$program" -lfst
}

# Builds KenLM's query code and build_binary from the sources of the package that the tests use.
build_kenlm() {
  local folder=build/bench/kenlm program=build/bench/peer_kenlm
  [ "$program" -nt bench/peers/peer_kenlm.cc ] && return
  echo "building $program" >&2
  mkdir -p "$folder/objects"
  if ! ls "$folder"/kenlm-*.tar.gz >/dev/null 2>&1; then
    echo "downloading KenLM's sources into $folder" >&2
    build/venv/bin/python -m pip download --quiet --no-deps --no-binary kenlm -d "$folder" -r tests/kenlm-requirements.txt
  fi
  tar xzf "$folder"/kenlm-*.tar.gz --strip-components=1 -C "$folder"
  local flags=(-O3 -DNDEBUG -DKENLM_MAX_ORDER=6 -DHAVE_ZLIB -w -I"$folder") source
  for source in "$folder"/lm/*.cc "$folder"/util/*.cc "$folder"/util/double-conversion/*.cc; do
    case $source in *_test.cc | *_main.cc | *benchmark* | *fragment*) continue ;; esac
    g++ "${flags[@]}" -c "$source" -o "$folder/objects/$(basename "$source" .cc).o"
  done
  g++ "${flags[@]}" "$folder/lm/build_binary_main.cc" "$folder"/objects/*.o -lz -lpthread -o build/bench/kenlm_build_binary
  g++ "${flags[@]}" bench/peers/peer_kenlm.cc "$folder"/objects/*.o -lz -lpthread -o "$program"
}

# The wheel of NeMo, of which one file is run. Its dependencies are not installed.
download_nemo() {
  ls build/bench/nemo/*.whl >/dev/null 2>&1 && return
  echo "downloading NeMo's wheel into build/bench/nemo" >&2
  build/bench/boost_peers/bin/python -m pip download --quiet --no-deps -d build/bench/nemo nemo_toolkit==3.0.0
}

# Uses the Python package with the library that was just built.
use_package() {
  rm -rf build/bench/python && mkdir -p build/bench/python
  cp -r python/warpfst build/bench/python
  python3 python/generate_abi.py cc include build/bench/python/warpfst
  export WARPFST_LIBRARY=$PWD/build/release/libwarpfst.so.0.3 PYTHONPATH=$PWD/build/bench/python
}

# The script of a benchmark, in the folder of its subject. No two have the same name.
script() { echo bench/*/"$1.py"; }
usage() { sed -n '/^# run.sh /,/^set /s/^# \{0,1\}//p' bench/run.sh; }

what=${1:-help}
shift || true
case $what in
  fstops) build_openfst_ops && python3 bench/fstops/fstops.py "$@" ;;
  boost)
    case " $* " in *peers*) download_nemo ;; esac
    WARPFST_PEER_PYTHON=build/bench/boost_peers/bin/python NEMO_WHEEL='build/bench/nemo/*.whl' python3 bench/accuracy/boost.py "$@"
    ;;
  serve) use_package && build/bench/serve_packages/bin/python bench/serve/serve.py "$@" ;;
  triton) build/venv/bin/python bench/triton/triton.py "$@" ;;
  grammar) use_package && build/bench/differential_peers/bin/python bench/fstops/grammar.py "$@" ;;
  differential) build_openfst_ops && use_package && build/bench/differential_peers/bin/python bench/fstops/differential.py "$@" ;;
  ocr) build/bench/ocr_peers/bin/python bench/accuracy/ocr.py "$@" ;;
  training) python3 bench/python/training.py "$@" ;;
  generation)
    case " $* " in
      *' --device='*) python3 bench/generation/generation_gpu.py "$@" ;;
      *) use_package && build/bench/generation_peers/bin/python bench/generation/generation.py "$@" ;;
    esac
    ;;
  whisper) use_package && build/bench/generation_peers/bin/python "$(script "$what")" "$@" ;;
  align | compat) use_package && "build/bench/${what}_peers/bin/python" "$(script "$what")" "$@" ;;
  peers)
    case " $* " in
      *' --wheels='* | *' --fetch='* | *' --load='*) python3 bench/peers/peers.py "$@" ;;
      *) use_package && build/bench/peers_peers/bin/python bench/peers/peers.py "$@" ;;
    esac
    ;;
  word_times | spot | sweep) use_package && /usr/bin/python3 "$(script "$what")" "$@" ;;
  compose) build_openfst_ops && python3 bench/fstops/compose.py "$@" ;;
  lm)
    case " $* " in
      *' --part=fetch '*) python3 bench/lm/lm_fetch.py "$@" ;;
      *' --device='*) python3 bench/lm/lm_decode.py "$@" ;;
      *) build_kenlm && python3 bench/lm/lm.py "$@" ;;
    esac
    ;;
  graph)
    case " $* " in
      *' --device'*) python3 bench/graph/graph_device.py "$@" ;;
      *) python3 bench/graph/graph.py "$@" ;;
    esac
    ;;
  topologies | decode | features | gpus | rnnlm | lattice | stream | hybrid | fly | lm_scale | rnnlm_hybrid | accuracy | confidence | papers | transducer | transducer_task | transducer_peers | show) python3 "$(script "$what")" "$@" ;;
  all)
    for each in fstops decode lm rnnlm lattice stream compose; do
      printf '\n== %s\n' "$each"
      bash bench/run.sh "$each" "$@"
    done
    ;;
  help | --help | -h) usage ;;
  *) printf 'unknown benchmark "%s"\n\n' "$what" >&2; usage >&2; exit 2 ;;
esac
