/* string_pool.c - hash-consed label strings, and their expansion into chains of arcs. */
#include "fstops/string_pool.h"

#include <string.h>

wf_status wf__strings_init(wf__strings *strings, wf_error *err) {
  *strings = (wf__strings){0};
  WF__TRY(wf__vec_grow(&strings->cells, 16, "label strings", err));
  strings->cells.data[0] = (wf__string_cell){0};
  strings->cells.size = 1;
  return WF_OK;
}

void wf__strings_free(wf__strings *strings) {
  wf__vec_free(&strings->cells);
  wf__map64_free(&strings->map);
}

wf_status wf__string_put(wf__strings *strings, uint32_t label, uint32_t rest, uint32_t *out,
                         wf_error *err) {
  if (rest == 0) {
    *out = WF__STRING_ONE | label;
    return WF_OK;
  }
  uint32_t fresh = (uint32_t)strings->cells.size;
  bool is_new;
  if (strings->cells.size >= WF__STRING_ONE)
    return wf__fail(err, WF_ERR_LIMIT, "more than 2^31 output strings");
  WF__TRY(wf__map64_insert(&strings->map, (uint64_t)rest << 32 | label, fresh, out, &is_new,
                           "label strings", err));
  if (!is_new) return WF_OK;
  WF__TRY(wf__vec_grow(&strings->cells, 1, "label strings", err));
  strings->cells.data[strings->cells.size++] =
      (wf__string_cell){label, rest, wf__string_size(strings, rest) + 1};
  return WF_OK;
}

wf_status wf__string_concat(wf__strings *strings, uint32_t front, uint32_t back, uint32_t *out,
                            wf_error *err) {
  if (front == 0 || back == 0) {
    *out = front == 0 ? back : front;
    return WF_OK;
  }
  uint32_t size = wf__string_size(strings, front);
  WF__VEC(uint32_t) labels = {0};
  wf_status status = wf__vec_grow(&labels, size, "label strings", err);
  *out = back;
  for (; status == WF_OK && front != 0; front = wf__string_rest(strings, front))
    labels.data[labels.size++] = wf__string_label(strings, front);
  while (status == WF_OK && labels.size > 0)
    status = wf__string_put(strings, labels.data[--labels.size], *out, out, err);
  wf__vec_free(&labels);
  return status;
}

/* Chains under construction. The map finds the chain state whose arc emits `label` and leads to
 * `to`. */
struct chains {
  wf__csr *csr;
  wf__map64 map; /* to << 32 | label -> state */
  WF__VEC(uint32_t) labels;
  uint64_t max_states;
};

static wf_status chain_state(struct chains *chains, uint32_t to, uint32_t label, int32_t ilabel,
                             uint32_t *out, wf_error *err) {
  bool is_new;
  uint32_t fresh = (uint32_t)chains->csr->final_cost.size;
  WF__TRY(wf__map64_insert(&chains->map, (uint64_t)to << 32 | label, fresh, out, &is_new,
                           "output strings", err));
  if (!is_new) return WF_OK;
  if (fresh >= chains->max_states)
    return wf__fail(err, WF_ERR_NOT_DETERMINIZABLE,
                    "the outputs need more than %llu states (max_states)",
                    (unsigned long long)chains->max_states);
  WF__TRY(wf__csr_add_state(chains->csr, INFINITY, err));
  return wf__csr_push(chains->csr,
                      (wf_arc){.nextstate = to, .ilabel = ilabel, .olabel = (int32_t)label}, err);
}

wf_status wf__strings_expand(const wf__strings *strings, bool reversed, uint32_t final_sink,
                             uint64_t max_states, wf__csr *csr, wf_error *err) {
  struct chains chains = {.csr = csr, .max_states = max_states};
  uint64_t num_arcs = csr->arcs.size;
  wf_status status = WF_OK;
  for (uint64_t i = 0; i < num_arcs && status == WF_OK; i++) {
    wf_arc arc = csr->arcs.data[i];
    uint32_t string = (uint32_t)arc.olabel, size = wf__string_size(strings, string);
    int32_t ilabel = arc.nextstate == final_sink ? arc.ilabel : 0;
    chains.labels.size = 0;
    status = wf__vec_grow(&chains.labels, size + 1, "output strings", err);
    if (status != WF_OK) break;
    for (; string != 0; string = wf__string_rest(strings, string))
      chains.labels.data[chains.labels.size++] = wf__string_label(strings, string);
    arc.olabel = 0;
    if (size > 0) arc.olabel = (int32_t)chains.labels.data[reversed ? size - 1 : 0];
    for (uint32_t k = size; k-- > 1 && status == WF_OK;)
      status = chain_state(&chains, arc.nextstate, chains.labels.data[reversed ? size - 1 - k : k],
                           ilabel, &arc.nextstate, err);
    csr->arcs.data[i] = arc;
  }
  wf__map64_free(&chains.map);
  wf__vec_free(&chains.labels);
  return status;
}
