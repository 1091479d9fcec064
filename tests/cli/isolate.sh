#!/usr/bin/env bash
# Runs a test script in a fresh folder that is removed afterwards. Any failing command fails the test.
set -euo pipefail
script=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
bash -euo pipefail "$script"
