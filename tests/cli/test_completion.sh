# The scripts of `warpfst completion` complete commands, subcommands, flags and their values. The test calls their functions the way the shells do;
# zsh and fish are tested where they are installed.
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
expect '--no-connect' compose --no-con
expect '' compose --output ''
expect '' compose 'fi'
expect '' no-such-command --
ask ''
[ "${#COMPREPLY[@]}" -gt 20 ] || fail "commands: ${COMPREPLY[*]}"
commands=("${COMPREPLY[@]}")
flags=0
for command in "${commands[@]}"; do # every flag in the help of every command is offered
  case $command in help | version | transcribe | serve) continue ;; esac
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
expect 'decode' help decod
expect 'lattice' help latt
expect 'prune' help lattice prun
expect 'transcribe' transc

# --- zsh: its functions that show candidates are replaced by ones that print them --------------------------------------------------
if command -v zsh > /dev/null; then
  "$WARPFST" completion zsh > script.zsh
  zsh -n script.zsh || fail 'zsh: syntax'
  cat > ask.zsh <<'END'
compdef() { registered=$*; }
source ./script.zsh
[[ $registered = '_warpfst warpfst' ]] || exit 1
_describe() {
  local word
  for word in "$@"; do
    case $word in -*|flag|command|part|'') ;; *) print -rl -- "${(P@)word}" ;; esac
  done
}
compadd() { shift; print -rl -- "$@"; }
compset() { :; }
_files() { print files; }
words=("$@") CURRENT=$#
_warpfst
END
  zshows() { # WANT WORDS...: WANT is among the candidates
    local want=$1
    shift
    zsh -f ask.zsh "$WARPFST" "$@" > out.txt 2> err.txt
    grep -qxe "$want" out.txt && [ ! -s err.txt ] || fail "zsh: '$*': no '$want' in $(cat out.txt err.txt)"
  }
  zshows 'shortestpath:the best path, or the n best paths' ''
  zshows 'help:print help' ''
  zshows 'transcribe:transcribe recordings' help ''
  zshows 'prune:keep the paths near the best' lattice ''
  zshows 'prune:keep the paths near the best' help lattice ''
  zshows '--beam=:keep tokens within.*' decode -
  zshows '--greedy:with a transducer.*' decode --gr
  zshows '--no-connect:.*' compose --
  zshows 'alt_sequence' compose --filter=
  zshows 'alt_sequence' compose --filter ''
  zshows 'files' decode --words=
  zshows 'files' decode ''
  zshows '--n=:.*' lattice nbest --
fi

# --- fish ------------------------------------------------------------------------------------------------------------------------------
if command -v fish > /dev/null; then
  "$WARPFST" completion fish > script.fish
  mkdir -p bin
  ln -sf "$WARPFST" bin/warpfst
  fshows() { # WANT LINE
    HOME=$PWD PATH=$PWD/bin:$PATH fish --no-config -c "source script.fish; complete -C '$2'" > out.txt 2> err.txt
    grep -qxe "$1" out.txt && [ ! -s err.txt ] || fail "fish: '$2': no '$1' in $(cat out.txt err.txt)"
  }
  tab=$'\t'
  fshows "shortestpath${tab}the best path, or the n best paths" 'warpfst shortest'
  fshows "version${tab}print the version" 'warpfst '
  fshows "transcribe${tab}transcribe recordings" 'warpfst help tr'
  fshows "prune${tab}keep the paths near the best" 'warpfst lattice pr'
  fshows "prune${tab}keep the paths near the best" 'warpfst help lattice pr'
  fshows "--beam=${tab}keep tokens within.*" 'warpfst decode --be'
  fshows "--no-connect${tab}.*" 'warpfst compose --no'
  fshows '--filter=alt_sequence' 'warpfst compose --filter=alt'
  fshows 'alt_sequence' 'warpfst compose --filter al'
  fshows "--n=${tab}.*" 'warpfst lattice nbest --n'
  fshows 'script.fish' 'warpfst decode scr'
fi
"$WARPFST" completion tcsh > out.txt 2>&1 && fail "no error for an unknown shell"
exit 0
