/* cmd_completion.c - `warpfst completion SHELL`: a script that completes commands, their parts,
 * flags and values in bash, zsh or fish.
 * The scripts read the output of `warpfst help`, so they always match the installed program. */
#include <string.h>

#include "cli.h"

/* awk programs that the three scripts share. Each prints a candidate, a tab and its meaning. Rows
 * of the help begin with two blanks; a meaning that does not fit beside a flag is in the next line.
 * In PARTS, c is the command. */
#define COMMANDS "/^  [a-z]+  +[^ ]/ {w = $1; sub(/^ +[a-z]+ +/, \"\"); print w \"\\t\" $0}"
#define PARTS \
  "$1 == c && /^  / && NF > 2 {w = $2; sub(/^ +[a-z]+ +[a-z0-9-]+ +/, \"\"); print w \"\\t\" $0}"
#define FLAGS                                                                     \
  "/^  (-., )?--[a-z]/ {sub(/^  (-., )?/, \"\"); w = $1; sub(/^[^ ]+ */, \"\"); " \
  "if ($0 == \"\") {getline; sub(/^ +/, \"\")} print w \"\\t\" $0; "              \
  "if (match($0, /--no-[a-z0-9_-]+/)) print substr($0, RSTART, RLENGTH) \"\\tnot \" w}"

static const char bash_script[] =
    "# bash completion for warpfst. Load it with:  source <(warpfst completion bash)\n"
    "_warpfst() {\n"
    "  local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} "
    "prev=${COMP_WORDS[COMP_CWORD-1]} first=1 flag= command part help parts values\n"
    "  COMPREPLY=()\n"
    "  if [ \"${COMP_WORDS[1]}\" = help ] && [ \"$COMP_CWORD\" -gt 1 ]; then first=2; fi\n"
    "  if [ \"$COMP_CWORD\" = \"$first\" ]; then\n"
    "    values=$(COLUMNS=1000 \"$program\" help 2> /dev/null | awk '" COMMANDS
    "' | cut -f 1)\n"
    "    [ \"$first\" = 2 ] || values=\"$values help version\"\n"
    "    COMPREPLY=($(compgen -W \"$values\" -- \"$cur\"))\n"
    "    return\n"
    "  fi\n"
    "  command=${COMP_WORDS[first]} part=${COMP_WORDS[first+1]}\n"
    "  help=$(COLUMNS=1000 \"$program\" \"$command\" --help 2> /dev/null) || return 0\n"
    "  parts=$(awk -v c=\"$command\" '" PARTS
    "' <<< \"$help\" | cut -f 1)\n"
    "  if [ -n \"$parts\" ] && [ \"$COMP_CWORD\" = $((first + 1)) ]; then\n"
    "    [ \"$first\" = 2 ] || parts=\"$parts --help\"\n"
    "    COMPREPLY=($(compgen -W \"$parts\" -- \"$cur\"))\n"
    "    return\n"
    "  fi\n"
    "  [ -z \"$parts\" ] || help=$(COLUMNS=1000 \"$program\" \"$command\" \"$part\" --help "
    "2> /dev/null) || return 0\n"
    "  # bash splits words at '=': --flag = value\n"
    "  if [ \"$cur\" = = ]; then flag=$prev cur=\n"
    "  elif [ \"$prev\" = = ]; then flag=${COMP_WORDS[COMP_CWORD-2]}\n"
    "  elif [[ $prev == --* ]]; then flag=$prev\n"
    "  fi\n"
    "  values=$(awk '" FLAGS
    "' <<< \"$help\" | cut -f 1)\n"
    "  if [ -n \"$flag\" ]; then\n"
    "    flag=$(grep -e \"^$flag=\" <<< \"$values\")\n"
    "    case $flag in\n"
    "      *'|'*) flag=${flag#*=}; COMPREPLY=($(compgen -W \"${flag//|/ }\" -- \"$cur\")); "
    "return ;;\n"
    "      ?*) return ;; # a file or a number: left to the shell\n"
    "    esac\n"
    "  fi\n"
    "  if [[ $cur == -* ]]; then\n"
    "    COMPREPLY=($(compgen -W \"$(sed 's/=.*/=/' <<< \"$values\")\" -- \"$cur\"))\n"
    "    case ${COMPREPLY[*]} in *' '*) ;; *=) compopt -o nospace 2> /dev/null ;; esac\n"
    "  fi\n"
    "}\n"
    "complete -o default -F _warpfst warpfst\n";

static const char zsh_script[] =
    "#compdef warpfst\n"
    "# zsh completion for warpfst. Load it with:  source <(warpfst completion zsh)\n"
    "_warpfst() {\n"
    "  local program=${words[1]} tab=$'\\t' first=2 help row flag values\n"
    "  local -a rows parts valued plain\n"
    "  if [[ ${words[2]} == help && $CURRENT -gt 2 ]]; then first=3; fi\n"
    "  if [[ $CURRENT == $first ]]; then\n"
    "    rows=(${(f)\"$(COLUMNS=1000 $program help 2> /dev/null | awk '" COMMANDS
    "')\"})\n"
    "    [[ $first == 3 ]] || rows+=(\"help${tab}print help\" \"version${tab}print the version\")\n"
    "    rows=(\"${(@)rows/$tab/:}\")\n"
    "    _describe command rows\n"
    "    return\n"
    "  fi\n"
    "  local command=${words[first]} part=${words[first+1]}\n"
    "  help=$(COLUMNS=1000 $program $command --help 2> /dev/null) || return 1\n"
    "  parts=(${(f)\"$(awk -v c=$command '" PARTS
    "' <<< $help)\"})\n"
    "  if [[ $#parts -gt 0 && $CURRENT == $((first + 1)) ]]; then\n"
    "    parts=(\"${(@)parts/$tab/:}\")\n"
    "    _describe part parts\n"
    "    return\n"
    "  fi\n"
    "  if [[ $#parts -gt 0 ]]; then\n"
    "    help=$(COLUMNS=1000 $program $command $part --help 2> /dev/null) || return 1\n"
    "  fi\n"
    "  rows=(${(f)\"$(awk '" FLAGS
    "' <<< $help)\"})\n"
    "  if [[ ${words[CURRENT]} == --*=* ]]; then\n"
    "    flag=${words[CURRENT]%%=*}\n"
    "    compset -P '*='\n"
    "  else\n"
    "    flag=${words[CURRENT-1]}\n"
    "  fi\n"
    "  for row in $rows; do\n"
    "    values=${row%%$tab*}\n"
    "    if [[ $values == $flag=* ]]; then\n"
    "      values=${values#*=}\n"
    "      if [[ $values == *'|'* ]]; then compadd -- ${(s:|:)values}; else _files; fi\n"
    "      return\n"
    "    fi\n"
    "    if [[ $values == *=* ]]; then valued+=(\"${values%%=*}=:${row#*$tab}\")\n"
    "    else plain+=(\"$values:${row#*$tab}\"); fi\n"
    "  done\n"
    "  if [[ ${words[CURRENT]} == -* ]]; then\n"
    "    _describe -o flag valued -S '' -- plain\n"
    "  else\n"
    "    _files\n"
    "  fi\n"
    "}\n"
    "compdef _warpfst warpfst\n";

static const char fish_script[] =
    "# fish completion for warpfst. Load it with:  warpfst completion fish | source\n"
    "function __warpfst_complete\n"
    "    set -l tokens (commandline -opc)\n"
    "    set -l program $tokens[1]\n"
    "    set -l words\n"
    "    set -l asks 0\n"
    "    for token in $tokens[2..]\n"
    "        if test \"$token\" = help -a (count $words) -eq 0 -a $asks = 0\n"
    "            set asks 1\n"
    "        else\n"
    "            set -a words $token\n"
    "        end\n"
    "    end\n"
    "    if test (count $words) -eq 0\n"
    "        env COLUMNS=1000 $program help 2> /dev/null | awk '" COMMANDS
    "'\n"
    "        test $asks = 1; or printf 'help\\tprint help\\nversion\\tprint the version\\n'\n"
    "        return\n"
    "    end\n"
    "    set -l help (env COLUMNS=1000 $program $words[1] --help 2> /dev/null | string collect)\n"
    "    set -l parts (printf '%s\\n' $help | awk -v c=$words[1] '" PARTS
    "')\n"
    "    if test (count $parts) -gt 0\n"
    "        if test (count $words) -eq 1\n"
    "            printf '%s\\n' $parts\n"
    "            return\n"
    "        end\n"
    "        set help (env COLUMNS=1000 $program $words[1] $words[2] --help 2> /dev/null | "
    "string collect)\n"
    "    end\n"
    "    set -l current (commandline -ct)\n"
    "    for row in (printf '%s\\n' $help | awk '" FLAGS
    "')\n"
    "        set -l pair (string split -m 1 \\t -- $row)\n"
    "        set -l flag (string split -m 1 = -- $pair[1])\n"
    "        if string match -q -- '*|*' \"$flag[2]\"\n"
    "            for value in (string split '|' -- $flag[2])\n"
    "                if test \"$tokens[-1]\" = $flag[1]\n"
    "                    echo $value\n"
    "                else if string match -q -- \"$flag[1]=*\" $current\n"
    "                    echo $flag[1]=$value\n"
    "                end\n"
    "            end\n"
    "        end\n"
    "        if string match -q -- '-*' $current\n"
    "            if test (count $flag) -gt 1; set flag[1] $flag[1]=; end\n"
    "            printf '%s\\t%s\\n' $flag[1] $pair[2]\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c warpfst -n 'test (count (commandline -opc)) -lt 2' -f\n"
    "complete -c warpfst -a '(__warpfst_complete)'\n";

int cmd_completion(int argc, char **argv) {
  static const struct {
    const char *shell, *script;
  } scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
  cli_parser parser = {
      .usage = "bash|zsh|fish",
      .about =
          "Prints a script that completes warpfst's commands, flags and values. "
          "Load it in the shell's start-up file:\n"
          "  source <(warpfst completion bash)        in ~/.bashrc\n"
          "  source <(warpfst completion zsh)         in ~/.zshrc, after compinit\n"
          "  warpfst completion fish | source         in ~/.config/fish/config.fish",
      .min_args = 1,
      .max_args = 1};
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
    if (strcmp(parser.args[0], scripts[i].shell) != 0) continue;
    printf("%s", scripts[i].script);
    return CLI_OK;
  }
  return cli_usage("no completion for shell '%s', expected bash, zsh or fish", parser.args[0]);
}
