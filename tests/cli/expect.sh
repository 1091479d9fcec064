# expect.sh - functions to test exit codes and messages of commands; sourced by other scripts.
# shellcheck shell=bash
fail() { echo "$*" >&2; exit 1; }
expect() { # CODE PATTERN COMMAND...: the command exits with CODE, and its standard error matches PATTERN
  local want=$1 pattern=$2 code=0
  shift 2
  "$@" >out.txt 2>err.txt || code=$?
  [ "$code" = "$want" ] || fail "exit $code, not $want: $*: $(cat err.txt)"
  grep -q -- "$pattern" err.txt || fail "no '$pattern' from: $*: $(cat err.txt)"
}
