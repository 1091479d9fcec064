/* symbols.h - internal interface to symbol tables, and the binary form that OpenFst embeds in fst
 * files:
 *
 *   i32 magic 2125658996 | i32 size, name | i64 next key | i64 count | count x {i32 size, symbol,
 *   i64 key} */
#ifndef WF_FST_SYMBOLS_H
#define WF_FST_SYMBOLS_H

#include "base/input.h"

#define WF__SYMBOLS_MAGIC 2125658996

/* wf_symbols_add for `size` bytes, which contain no NUL and need not end with one. */
wf_status wf__symbols_add_bytes(wf_symbols *symbols, const char *text, size_t size, int64_t key,
                                int64_t *out_key, wf_error *err);
/* wf_symbols_find for the `size` bytes at `text`, which need not end in NUL. */
int64_t wf__symbols_find_bytes(const wf_symbols *symbols, const char *text, size_t size);
/* Adds an entry of a table that OpenFst wrote, whatever its key and bytes, and whether or not its
 * text or key are in the table. */
wf_status wf__symbols_append(wf_symbols *symbols, const char *text, size_t size, int64_t key,
                             wf_error *err);
/* The bytes of the i-th entry, also with NULs. */
wf__span wf__symbols_bytes(const wf_symbols *symbols, size_t i);
/* The next key that a binary table stores: at least one more than all keys. */
int64_t wf__symbols_next_key(const wf_symbols *symbols);
void wf__symbols_raise_next_key(wf_symbols *symbols, int64_t key);
/* Why a text of the table cannot be a field in a line of text: "is empty" or "holds a blank, a tab,
 * a line end or a NUL byte". NULL: it can. */
const char *wf__symbols_field_fault(const wf_symbols *symbols, wf__span text);
/* wf_symbols_read from bytes in memory. */
wf_status wf__symbols_read_input(const wf__input *input, wf_symbols **out, wf_error *err);

/* The table's name for messages: not empty. */
const char *wf__symbols_shown(const wf_symbols *symbols);
/* Is the text the input label of a word class in decoding graphs, such as "#<contact>" of <contact>
 * and "#{$NAME}" of $NAME, or, in those of transducers, "#1<contact>"? */
bool wf__is_class_label(const char *text, size_t size);
/* Does the file start with the magic number of a binary table? */
bool wf__symbols_is_binary(const wf__input *input);
/* Reads a file that is a binary table. */
wf_status wf__symbols_read_whole(const wf__input *input, wf_symbols **out, wf_error *err);
/* Reads a binary table at the cursor, and moves the cursor past it. */
wf_status wf__symbols_read_binary(wf__cursor *cursor, wf_symbols **out, wf_error *err);
/* Writes a table in binary form to `*out`, which the caller frees with free(). */
wf_status wf__symbols_encode(const wf_symbols *symbols, uint8_t **out, uint64_t *size,
                             wf_error *err);

#endif
