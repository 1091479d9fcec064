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
 * defaults. An older caller's smaller struct_size is fine: the fields it does not know keep their
 * defaults. */
wf_status wf__options_take(const wf_option_table *table, const void *options, void *copy,
                           wf_error *err);

#endif
