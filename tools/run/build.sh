# build.sh - verbs of ./run that build, or build and run something: build, demo, demo-hybrid, fuzz, bench. Sourced by ./run.
# shellcheck shell=bash

do_build() {
  needs_build
  build release
  echo "built build/release/warpfst; 'cmake --install build/release --prefix FOLDER' installs it with the library and the manual pages"
}

do_demo() {
  needs_demo
  build release warpfst_cli
  bash examples/demo.sh
}

do_demo_hybrid() {
  needs_demo_hybrid
  build release warpfst_cli
  bash examples/demo_hybrid.sh "$@"
}

do_fuzz() { # [SECONDS]
  needs_fuzz
  local seconds=${1:-60} target name log
  build fuzz
  for target in build/fuzz/fuzz/fuzz_*; do
    [ -x "$target" ] && [ -f "$target" ] || continue
    name=$(basename "$target") log=build/fuzz/$(basename "$target").log
    say "$name, $seconds s"
    mkdir -p "build/fuzz/corpus/$name"
    "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
      -artifact_prefix=build/fuzz/ "build/fuzz/corpus/$name" "fuzz/corpus/${name#fuzz_}" 2>"$log" \
      || { tail -40 "$log"; exit 1; }
    grep -E 'number_of_executed_units|peak_rss_mb' "$log"
  done
}

do_bench() { # [WHAT [ARGUMENTS...]]
  local what=${1:-all}
  shift || true
  case $what in help | --help | -h | show) bash bench/run.sh "$what" "$@"; return ;; esac
  needs_bench "$what"
  build develop
  bash bench/run.sh "$what" "$@"
}
