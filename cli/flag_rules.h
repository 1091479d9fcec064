/* flag_rules.h - compares and formats names of flags. cli.h defines the rules. */
#ifndef WARPFST_CLI_FLAG_RULES_H
#define WARPFST_CLI_FLAG_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* True if the first `size` bytes of `name` equal the name `flag`. '-' and '_' are the same. */
bool cli_same_name(const char *flag, const char *name, size_t size);
/* "max_active" -> "--max-active". */
void cli_flag_name(const char *flag, char *out, size_t size);

#endif
