/* openfst_types.h - what the readers of OpenFst's file types share. openfst_read.c reads the header
 * and the symbol tables, and calls the reader of the type.
 *
 *   openfst_read.c      vector, const
 *   openfst_compact.c   compact_acceptor and its kin
 *   openfst_edit.c      edit
 *   openfst_ngram.c     ngram (OpenGrm)
 *   openfst_lookahead.c arc_lookahead, ilabel_lookahead, olabel_lookahead
 *   openfst_parts.c     weights, alignment and so on */
#ifndef WF_FST_OPENFST_TYPES_H
#define WF_FST_OPENFST_TYPES_H

#include "fst/fst_formats.h"

#define WF__OPENFST_ADDON_MAGIC 446681434

/* The weights of a log64 file as they are: of arcs [num_arcs] and final [num_states]. */
typedef struct wf__wide_weights {
  double *arcs, *finals;
} wf__wide_weights;

typedef struct wf__openfst_header {
  wf__span fst_type, arc_type;
  int32_t version;
  uint32_t flags;
  int64_t start, num_states, num_arcs;
  wf_semiring semiring;
  wf_fst_format format;
  size_t weight_bytes, arc_bytes; /* in the file */
  size_t index_bytes;             /* of the numbers in the states of a const fst */
  /* Arcs lead to states below this number; 0: below the number of states of the file. The edits of
   * an edit fst have arcs to states of the whole. */
  uint64_t target_limit;
  int depth;              /* of fsts in fsts */
  wf__wide_weights *wide; /* vector and const files of log64 arcs fill it; NULL: not wanted */
} wf__openfst_header;

/* True if the text is the name. */
bool wf__span_is(wf__span text, const char *name);
/* Returns false for NaN, -infinity and finite values outside the range of float32. */
bool wf__load_weight(const uint8_t *at, size_t weight_bytes, float *out);
/* Skips to the next multiple of 16 bytes if the file has aligned blocks. */
wf_status wf__openfst_align(wf__cursor *cursor, const wf__openfst_header *h, wf_error *err);
/* Reads an i64 number of items that take `bytes` each, and checks that the file has room for them.
 */
wf_status wf__openfst_read_count(wf__cursor *cursor, size_t bytes, uint64_t *out, const char *what,
                                 wf_error *err);
/* Reserves memory for the arrays, with one spare element each for wf__fst_from_csr. */
wf_status wf__openfst_reserve(wf__csr *csr, uint64_t num_states, uint64_t num_arcs, wf_error *err);
/* Reads an fst that is part of another one. `limit` as target_limit. */
typedef wf_status wf__openfst_reader(wf__cursor *cursor, const wf__openfst_header *outer,
                                     uint64_t limit, wf__csr *csr, wf_error *err);

/* Is it a compact type? */
bool wf__openfst_is_compact(wf__span fst_type);
wf_status wf__openfst_read_compact(wf__cursor *cursor, const wf__openfst_header *h, wf__csr *csr,
                                   wf_error *err);
wf_status wf__openfst_read_edit(wf__cursor *cursor, const wf__openfst_header *h,
                                wf__openfst_reader *read_inner, wf__csr *csr, wf_error *err);
wf_status wf__openfst_read_ngram(wf__cursor *cursor, const wf__openfst_header *h, wf__csr *csr,
                                 wf_error *err);
/* Skips what follows the fst within a look-ahead fst of this type. */
wf_status wf__openfst_skip_lookahead(wf__cursor *cursor, wf__span fst_type, wf_error *err);

#endif
