/* string_pool.h - label strings as numbers, for residual outputs and pushed labels.
 *
 *   0                        the empty string
 *   WF__STRING_ONE | label   a string of one label
 *   k                        cell k: a label before another string, each distinct (label, rest)
 *                            once
 *
 * Equal strings have equal numbers, so comparing is free. A string is a list read from the label
 * last put; whether that end is the front (pushing) or the back (determinization) of the output is
 * the user's affair.
 *
 * While an operation runs its arcs carry such numbers in place of output labels, and final costs
 * may carry a string too; at the end wf__strings_expand spells them out along chains of arcs with
 * epsilon input. */
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

/* label, then rest. label > 0. */
wf_status wf__string_put(wf__strings *strings, uint32_t label, uint32_t rest, uint32_t *out,
                         wf_error *err);

/* All labels of `front`, then those of `back`. */
wf_status wf__string_concat(wf__strings *strings, uint32_t front, uint32_t back, uint32_t *out,
                            wf_error *err);

static inline uint32_t wf__string_of(int32_t label) {
  return label == 0 ? 0 : WF__STRING_ONE | (uint32_t)label;
}
static inline uint32_t wf__string_size(const wf__strings *strings, uint32_t string) {
  return string == 0 ? 0 : string & WF__STRING_ONE ? 1 : strings->cells.data[string].size;
}
/* Both of a string that is not empty. */
static inline uint32_t wf__string_label(const wf__strings *strings, uint32_t string) {
  return string & WF__STRING_ONE ? string & ~WF__STRING_ONE : strings->cells.data[string].label;
}
static inline uint32_t wf__string_rest(const wf__strings *strings, uint32_t string) {
  return string & WF__STRING_ONE ? 0 : strings->cells.data[string].rest;
}
/* Without its first `count` labels. */
static inline uint32_t wf__string_drop(const wf__strings *strings, uint32_t string,
                                       uint32_t count) {
  while (count-- > 0) string = wf__string_rest(strings, string);
  return string;
}

/* In `csr`, whose arcs have strings as olabels, replaces each string by its labels: the first on
 * the arc, the others on arcs of cost 0 with input epsilon through new states behind the old ones.
 * Equal tails to one state are shared. `reversed`: strings are read from their last label. Arcs
 * into `final_sink` (a state number, or UINT32_MAX) keep their input label along the whole chain.
 */
wf_status wf__strings_expand(const wf__strings *strings, bool reversed, uint32_t final_sink,
                             wf__csr *csr, wf_error *err);

#endif
