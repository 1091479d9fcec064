/* config.h - how a call reads its options.
 *
 *     wf_compose_options o;
 *     WF__TRY(wf__options_take(wf__compose_table(), options, &o, err));
 *
 * option_tables.h has the tables. */
#ifndef WF_BASE_CONFIG_H
#define WF_BASE_CONFIG_H

#include "base/error.h"

/* Copies the caller's options over the defaults into `*copy` after checking them; NULL means
 * defaults. Fields that an older caller does not know keep their defaults. */
wf_status wf__options_take(const wf_option_table *table, const void *options, void *copy,
                           wf_error *err);

/* For structures with struct_size as the first field; this library's version has `size` bytes.
 * Checks struct_size, and that the fields of a newer caller beyond `size` are zero. `name` is used
 * in messages. */
wf_status wf__struct_check(const char *name, const void *theirs, size_t size, wf_error *err);
/* Copies the fields that both versions have into `own`, and sets its struct_size to `size`. The
 * other fields of `own` stay unchanged. */
void wf__struct_take(const void *theirs, void *own, size_t size);
/* Copies the fields that both versions have to the caller. Fields that only the caller has become
 * zero. */
void wf__struct_give(const void *own, size_t size, void *theirs);

#endif
