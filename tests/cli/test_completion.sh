# The script of `warpfst completion bash` completes commands, subcommands, flags and their values. The test calls its function the way bash does.
# shellcheck shell=bash
fail() { echo "$1" >&2; exit 1; }
"$WARPFST" completion bash > script.bash
bash -n script.bash
set +eu # the script must work in a user's shell, which does not set these options
source script.bash
complete -p warpfst | grep _warpfst > /dev/null || fail "not registered"
ask() { # WORDS...: the cursor is at the last one
  COMP_WORDS=("$WARPFST" "$@") COMP_CWORD=$#
  _warpfst
}
expect() { # REPLY WORDS...
  local want=$1
  shift
  ask "$@"
  [ "${COMPREPLY[*]}" = "$want" ] || fail "'$*' completes to '${COMPREPLY[*]}' instead of '$want'"
}
expect 'shortestdistance shortestpath' short
expect 'prune' prun
expect '--nshortest=' shortestpath --nsh
expect '--unique' shortestpath --u
expect 'sequence' compose --filter = seq
expect 'sequence' compose --filter seq
expect 'auto sequence alt_sequence match no_match trivial null' compose --filter =
expect '--no-connect' compose --no-c
expect '' compose --output ''
expect '' compose 'fi'
expect '' no-such-command --
ask ''
[ "${#COMPREPLY[@]}" -gt 20 ] || fail "commands: ${COMPREPLY[*]}"
commands=("${COMPREPLY[@]}")
flags=0
for command in "${commands[@]}"; do # every flag in the help of every command is offered
  case $command in help | version) continue ;; esac
  "$WARPFST" "$command" --help > help.txt || fail "$command --help"
  parts=$(sed -nE "s/^  $command ([a-z]+) .*/\1/p" help.txt)
  for part in ${parts:-''}; do
    "$WARPFST" "$command" $part --help > help.txt || fail "$command $part --help"
    ask "$command" $part --
    for flag in $(grep -oE '^  (-., )?--[a-z0-9_-]+' help.txt | grep -oE -- '--.*'); do
      case " ${COMPREPLY[*]} " in *" $flag "* | *" $flag= "*) flags=$((flags + 1)) ;; *) fail "$command $part: $flag is not offered" ;; esac
    done
  done
done
[ "$flags" -gt 60 ] || fail "only $flags flags seen"
"$WARPFST" completion fish > out.txt 2>&1 && fail "no error for an unknown shell"
exit 0
