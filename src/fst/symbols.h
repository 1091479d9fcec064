/* symbols.h - symbol tables from the inside: bytes in, and the binary form that OpenFst embeds in
 * fst files.
 *
 *   i32 magic 2125658996 | i32 size, name | i64 next key | i64 count | count x {i32 size, symbol,
 *   i64 key} */
#ifndef WF_FST_SYMBOLS_H
#define WF_FST_SYMBOLS_H

#include "base/input.h"

#define WF__SYMBOLS_MAGIC 2125658996

/* wf_symbols_add for `size` bytes, free of NUL, that need no NUL behind them. */
wf_status wf__symbols_add_bytes(wf_symbols *symbols, const char *text, size_t size, int64_t key,
                                int64_t *out_key, wf_error *err);
/* wf_symbols_read from bytes in memory. */
wf_status wf__symbols_read_input(const wf__input *input, wf_symbols **out, wf_error *err);

/* Reads a binary table at the cursor and leaves the cursor behind it. */
wf_status wf__symbols_read_binary(wf__cursor *cursor, wf_symbols **out, wf_error *err);
/* The bytes of a table; `*out` is for free(). */
wf_status wf__symbols_encode(const wf_symbols *symbols, uint8_t **out, uint64_t *size,
                             wf_error *err);

#endif
