/* flag_rules.h - names of flags as they are typed. The rules themselves are in cli.h. */
#ifndef WARPFST_CLI_FLAG_RULES_H
#define WARPFST_CLI_FLAG_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* Do the first `size` bytes of `name` name the flag? '-' and '_' are the same. */
bool cli_same_name(const char *flag, const char *name, size_t size);
/* "--max-active" of "max_active". */
void cli_flag_name(const char *flag, char *out, size_t size);

#endif
