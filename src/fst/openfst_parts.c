/* openfst_parts.c - what the readers of OpenFst's file types share. */
#include <string.h>

#include "fst/openfst_types.h"

enum { FLAG_ALIGNED = 4, ALIGNMENT = 16 };

bool wf__span_is(wf__span text, const char *name) {
  return text.size == strlen(name) && memcmp(text.data, name, text.size) == 0;
}

bool wf__load_weight(const uint8_t *at, size_t weight_bytes, float *out) {
  if (weight_bytes == 4) {
    memcpy(out, at, 4);
    return *out > -INFINITY;
  }
  double wide;
  memcpy(&wide, at, 8);
  *out = (float)wide;
  return *out > -INFINITY && (*out < INFINITY || wide == (double)INFINITY);
}

wf_status wf__openfst_reserve(wf__csr *csr, uint64_t num_states, uint64_t num_arcs, wf_error *err) {
  WF__TRY(wf__vec_grow(&csr->arc_off, num_states + 1, "states", err));
  WF__TRY(wf__vec_grow(&csr->final_cost, num_states + 1, "states", err));
  return wf__vec_grow(&csr->arcs, num_arcs + 1, "arcs", err);
}

wf_status wf__openfst_align(wf__cursor *cursor, const wf__openfst_header *h, wf_error *err) {
  const uint8_t *padding;
  if (!(h->flags & FLAG_ALIGNED)) return WF_OK;
  return wf__read_view(cursor, &padding,
                       (ALIGNMENT - wf__cursor_offset(cursor) % ALIGNMENT) % ALIGNMENT, "padding",
                       err);
}

wf_status wf__openfst_read_count(wf__cursor *cursor, size_t bytes, uint64_t *out, const char *what,
                                 wf_error *err) {
  int64_t count;
  WF__TRY(wf__read_i64(cursor, &count, what, err));
  if (count < 0 || (uint64_t)count > wf__cursor_left(cursor) / bytes)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%s: %lld, more than the file has room for",
                           what, (long long)count);
  *out = (uint64_t)count;
  return WF_OK;
}
