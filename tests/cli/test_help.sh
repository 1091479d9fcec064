# Help: `help COMMAND` is `COMMAND --help`; lines fit the terminal; words, defaults and commands in it are whole.
# shellcheck shell=bash
source "$SOURCE_DIR/tests/cli/expect.sh"
run() { # FILE ARGUMENTS...
  local file=$1
  shift
  "$WARPFST" "$@" > "$file" 2> err.txt || fail "$*: $(cat err.txt)"
}

# --- every command ---------------------------------------------------------------------------------------------------------------
unset COLUMNS
run commands.txt help
names=$(sed -nE 's/^  ([a-z]+)  +[^ ].*/\1/p' commands.txt | grep -vE '^(transcribe|serve)$')
[ "$(wc -l <<< "$names")" -gt 40 ] || fail "commands: $names"
helps=0
check() { # COMMAND [PART]
  local width words
  run wide.txt help "$@"
  run other.txt "$@" --help
  cmp wide.txt other.txt || fail "help $*"
  grep -q "^usage: warpfst $*" wide.txt || fail "help $*: $(head -1 wide.txt)"
  words=$(COLUMNS=1000 "$WARPFST" help "$@" | sed 's/ \\$//' | tr -s ' \n' '\n\n' | cksum)
  for width in 60 80 ''; do # without COLUMNS, 100
    COLUMNS=$width "$WARPFST" help "$@" > narrow.txt
    width=${width:-100}
    # longer only if one word is: names of flags with their choices, paths
    awk -v width=$width '{row = $0; sub(/^ */, ""); if (length(row) > width && / / && !/^--[^ ]*$/) {print row; bad = 1}} END {exit bad}' narrow.txt || fail "help $*: wider than $width"
    [ "$(sed 's/ \\$//' narrow.txt | tr -s ' \n' '\n\n' | cksum)" = "$words" ] || fail "help $*: other words at $width columns"
  done
  helps=$((helps + 1))
}
for name in $names; do
  check "$name"
  for part in $(sed -nE "s/^  $name ([a-z]+) .*/\\1/p" wide.txt); do check "$name" "$part"; done
done
[ $helps -gt 65 ] || fail "only $helps commands seen"
COLUMNS=60 "$WARPFST" help > out.txt
awk 'length($0) > 60 {bad = 1} END {exit bad}' out.txt || fail "$(cat out.txt)"
for columns in 0 -5 x 1 99999999999999999999; do COLUMNS=$columns "$WARPFST" help decode > out.txt || fail "COLUMNS=$columns"; done

# --- commands that are too long for a line can be copied ----------------------------------------------------------------------------
COLUMNS=60 "$WARPFST" help decode > out.txt
{ echo 'warpfst() { echo "$#"; }'; sed -n '/^  warpfst/,/[^\\]$/p' out.txt; } > commands.sh
[ "$(grep -c ' \\$' commands.sh)" = 6 ] && [ "$(bash commands.sh | tr '\n' ' ')" = '6 10 9 7 6 ' ] || fail "the examples do not survive: $(cat commands.sh; bash commands.sh)"

# --- defaults and values -----------------------------------------------------------------------------------------------------------
export COLUMNS=1000
says() { # COMMAND ROW
  "$WARPFST" help "$1" | grep -e "^ *$2" > /dev/null || fail "help $1: no row '$2'"
}
says decode '--beam=NATS .* (default: 15)$'
says decode '--min-active=ARCS .* (default: -1)$'
says decode '--gpu-memory=BYTES .* (default: 0; may end in K, M, G or T)$'
says decode '--rnnlm-memory=BYTES .* (default: 512M; '
says decode '--format=text|plain|ctm|json|trn|srt|vtt$'
says decode '--greedy .* (default: off)$'
says prune '--weight=NATS .* (default: no limit)$'
says compose '--connect .* (default: on; --no-connect)$'

# --- names that are not there --------------------------------------------------------------------------------------------------------
expect 2 "unknown command 'dcode': did you mean 'decode'?" "$WARPFST" help dcode
expect 2 "unknown subcommand 'prun': did you mean 'prune'?" "$WARPFST" help lattice prun
expect 2 "'transcribe' is only in the Python package: pip install '.\[audio\]'" "$WARPFST" help transcribe
expect 2 "'serve' is only in the Python package: pip install '.\[serve\]'" "$WARPFST" help serve
exit 0
