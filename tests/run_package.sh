#!/usr/bin/env bash
# run_package.sh COMMAND... - runs the tests of the installed Python package that need only numpy, pytest and pyyaml, and no other programs, with
# COMMAND, which is Python on the system of the wheel (python3; qemu-aarch64-static .../python3). .github/workflows/wheels.yml runs
# it on every system.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
names=(abi added_words align bounds decoder fst graphs lattices limits line_tokens lm more_operations open_vocabulary options rescoring results
  scorers streams strings symbols topologies transducer transducer_errors transducer_words wrong_objects)
# shellcheck disable=SC2046
exec "$@" -m pytest -o addopts='-q -ra -p no:cacheprovider' -m "not more" \
  --deselect tests/python/test_align.py::test_hybrid_with_the_graph_of_a_transcript --deselect tests/python/test_bounds.py::test_one_tokenizer_for_many_languages \
  $(printf "tests/python/test_%s.py " "${names[@]}")
