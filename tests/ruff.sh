#!/usr/bin/env bash
# Fails where ruff finds a fault in the repository's Python (pyproject.toml has its settings), and where it does not see one.
# ./run test installs it into build/venv. Exit status 77: ruff is not installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ruff=build/venv/bin/ruff
wanted=$(sed -n 's/^ruff==/ruff /p' tests/python-requirements.txt)
[ -x "$ruff" ] || ruff=$(command -v ruff) || { echo 'ruff is not installed'; exit 77; }
[ "$("$ruff" --version)" = "$wanted" ] || { echo "$ruff is not $wanted"; exit 77; }
"$ruff" check --no-cache .
[ "$("$ruff" check --no-cache --show-files . | wc -l)" -ge 100 ] || { echo 'ruff sees few files'; exit 1; }
! echo 'import os' | "$ruff" check --no-cache --quiet --stdin-filename=bench/unused.py - >/dev/null || { echo 'an unused import passes'; exit 1; }
