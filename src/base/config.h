/* config.h - how a call takes its options.
 *
 *     wf_compose_options o;
 *     WF__TRY(wf__options_take(wf__compose_table(), options, &o, err));
 *
 * The tables themselves: option_tables.h. */
#ifndef WF_BASE_CONFIG_H
#define WF_BASE_CONFIG_H

#include "base/error.h"

/* Copies the caller's options over the defaults into `*copy` after checking them; NULL means
 * defaults. Fields that an older caller does not know keep their defaults. */
wf_status wf__options_take(const wf_option_table *table, const void *options, void *copy,
                           wf_error *err);

/* Structures whose first field is the size that the caller knows; this library knows `size` bytes.
 *
 * Checks the size, and that what a newer caller has beyond `size` is zero. `name` for messages. */
wf_status wf__struct_check(const char *name, const void *theirs, size_t size, wf_error *err);
/* Copies the fields that both know into `own`, whose size becomes `size`. The others stay. */
void wf__struct_take(const void *theirs, void *own, size_t size);
/* Copies the fields that both know to the caller. What only the caller knows becomes zero. */
void wf__struct_give(const void *own, size_t size, void *theirs);

#endif
