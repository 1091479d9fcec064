#!/usr/bin/env bash
# Fails where a shell script of the repository has a fault that shellcheck warns of. Its notes are matters of taste and
# left out. Exit status 77: shellcheck is not installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v shellcheck >/dev/null || { echo 'shellcheck is not installed'; exit 77; }
mapfile -t scripts < <(find bench examples packaging tests tools -name run -prune -o -name '*.sh' -print -o -name '*.sbatch' -print)
[ "${#scripts[@]}" -ge 40 ] || { echo "only ${#scripts[@]} scripts found"; exit 1; }
shellcheck --severity=warning .ci/run "${scripts[@]}"
shellcheck --severity=warning --external-sources --check-sourced run # and tools/run/*.sh, which it sources
