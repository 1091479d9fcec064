/* string_pool.h - hash-consed label strings: strings as 32-bit numbers, for residual outputs and
 * pushed labels.
 *
 *   0                        the empty string
 *   WF__STRING_ONE | label   a string of one label
 *   k                        cell k: a label followed by another string (`rest`); each distinct
 *                            (label, rest) has one cell
 *
 * Equal strings have equal numbers, so comparing them is cheap. A string is a linked list, which
 * begins with the label that was added last. The caller decides whether that is the front of the
 * output (pushing) or its back (determinization).
 *
 * While an operation runs, its arcs have such numbers in place of output labels. At the end,
 * wf__strings_expand expands them into chains of arcs with input epsilon. */
#ifndef WF_FSTOPS_STRING_POOL_H
#define WF_FSTOPS_STRING_POOL_H

#include "base/map64.h"
#include "fst/fst.h"

#define WF__STRING_ONE 0x80000000u

typedef struct wf__string_cell {
  uint32_t label;
  uint32_t rest;
  uint32_t size;
} wf__string_cell;

typedef struct wf__strings {
  WF__VEC(wf__string_cell) cells; /* cell 0 is not used */
  wf__map64 map;                  /* rest << 32 | label -> cell */
} wf__strings;

wf_status wf__strings_init(wf__strings *strings, wf_error *err);
void wf__strings_free(wf__strings *strings);

/* Makes the string of `label` (not 0) followed by `rest`. */
wf_status wf__string_put(wf__strings *strings, uint32_t label, uint32_t rest, uint32_t *out,
                         wf_error *err);

/* Concatenates the labels of `front` and `back`. */
wf_status wf__string_concat(wf__strings *strings, uint32_t front, uint32_t back, uint32_t *out,
                            wf_error *err);

static inline uint32_t wf__string_of(int32_t label) {
  return label == 0 ? 0 : WF__STRING_ONE | (uint32_t)label;
}
static inline uint32_t wf__string_size(const wf__strings *strings, uint32_t string) {
  return string == 0 ? 0 : string & WF__STRING_ONE ? 1 : strings->cells.data[string].size;
}
/* The first label, and the string without it. The string must not be empty. */
static inline uint32_t wf__string_label(const wf__strings *strings, uint32_t string) {
  return string & WF__STRING_ONE ? string & ~WF__STRING_ONE : strings->cells.data[string].label;
}
static inline uint32_t wf__string_rest(const wf__strings *strings, uint32_t string) {
  return string & WF__STRING_ONE ? 0 : strings->cells.data[string].rest;
}
/* The string without its first `count` labels. */
static inline uint32_t wf__string_drop(const wf__strings *strings, uint32_t string,
                                       uint32_t count) {
  while (count-- > 0) string = wf__string_rest(strings, string);
  return string;
}

/* Expands the strings that the arcs of `csr` have as olabels. The arc gets the first label. The
 * others go on arcs of cost 0 with input epsilon, through new states that are appended. Arcs to the
 * same state share equal tails. `reversed`: strings list their labels from the last to the first.
 * Arcs into `final_sink` (a state number, or UINT32_MAX) keep their input label along the whole
 * chain. Errors: more than `max_states` states (WF_ERR_NOT_DETERMINIZABLE). */
wf_status wf__strings_expand(const wf__strings *strings, bool reversed, uint32_t final_sink,
                             uint64_t max_states, wf__csr *csr, wf_error *err);

#endif
