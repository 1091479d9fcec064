/* cmd_completion.c - `warpfst completion bash`: a script that completes commands, their parts and
 * flags in a shell.
 * The script parses the output of `warpfst COMMAND --help`, so it always matches the installed
 * program. */
#include <string.h>

#include "cli.h"
#include "commands.h"

static const char *const script_head =
    "# bash completion for warpfst. Load it with:  source <(warpfst completion bash)\n"
    "_warpfst() {\n"
    "  local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} "
    "prev=${COMP_WORDS[COMP_CWORD-1]} flag= help parts values\n"
    "  COMPREPLY=()\n"
    "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
    "    COMPREPLY=($(compgen -W '";

static const char *const script_tail =
    "help version' -- \"$cur\"))\n"
    "    return\n"
    "  fi\n"
    "  help=$(\"$program\" \"${COMP_WORDS[1]}\" --help 2> /dev/null) || return 0\n"
    "  parts=$(sed -nE \"s/^  ${COMP_WORDS[1]} ([a-z0-9-]+)( .*|$)/\\1/p\" <<< \"$help\")\n"
    "  if [ -n \"$parts\" ] && [ \"$COMP_CWORD\" = 2 ]; then\n"
    "    COMPREPLY=($(compgen -W \"$parts --help\" -- \"$cur\"))\n"
    "    return\n"
    "  fi\n"
    "  [ -z \"$parts\" ] || help=$(\"$program\" \"${COMP_WORDS[1]}\" \"${COMP_WORDS[2]}\" --help "
    "2> /dev/null) || return 0\n"
    "  # bash splits words at '=': --flag = value\n"
    "  if [ \"$cur\" = = ]; then flag=$prev cur=\n"
    "  elif [ \"$prev\" = = ]; then flag=${COMP_WORDS[COMP_CWORD-2]}\n"
    "  elif [[ $prev == --* ]]; then flag=$prev\n"
    "  fi\n"
    "  if [ -n \"$flag\" ]; then\n"
    "    values=$(sed -nE \"s/^  (-., )?$flag=([^ ]+).*/\\2/p\" <<< \"$help\")\n"
    "    case $values in\n"
    "      *'|'*) COMPREPLY=($(compgen -W \"${values//|/ }\" -- \"$cur\")); return ;;\n"
    "      ?*) return ;; # a file or a number: left to the shell\n"
    "    esac\n"
    "  fi\n"
    "  if [[ $cur == -* ]]; then\n"
    "    values=$(sed -nE 's/^  (-., )?(--[a-z0-9_-]+=?).*/\\2/p' <<< \"$help\"; grep -oE -- "
    "'--no-[a-z0-9_-]+' <<< \"$help\")\n"
    "    COMPREPLY=($(compgen -W \"$values\" -- \"$cur\"))\n"
    "    case ${COMPREPLY[*]} in *' '*) ;; *=) compopt -o nospace 2> /dev/null ;; esac\n"
    "  fi\n"
    "}\n"
    "complete -o default -F _warpfst warpfst\n";

int cmd_completion(int argc, char **argv) {
  cli_parser parser = {.usage = "bash",
                       .about =
                           "Prints a script that completes warpfst's commands, flags and values. "
                           "Load it with: source <(warpfst completion bash)",
                       .min_args = 1,
                       .max_args = 1};
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (strcmp(parser.args[0], "bash") != 0)
    return cli_usage("no completion for shell '%s', expected bash", parser.args[0]);
  printf("%s", script_head);
#define CLI_NAME(function, name, group, summary) printf("%s ", name);
  CLI_COMMANDS(CLI_NAME)
  printf("%s", script_tail);
  return CLI_OK;
}
