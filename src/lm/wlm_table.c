/* wlm_table.c - builds the in-memory look-up table of a mapped language model. */
#include "lm/wlm_table.h"

#include <math.h>

#include "base/callbacks.h"
#include "base/memory.h"
#include "lm/wlm_read.h"

#define MALFORMED "%s: state %llu is malformed; see wf__wlm_verify"

struct builder {
  const wf__wlm *lm;
  wf__wlm_arc_table *table;
  uint64_t num_arcs, num_buckets; /* so far; can exceed those of the file only if the file is
                                     damaged and states share arcs */
};

/* Adds an arc. If a damaged file has two arcs of a state for one word, only the first counts, as in
 * look-ups in the file. */
static void add(wf__wlm_arc_table *table, const wf__wlm_view *view, uint32_t state,
                const wf__wlm_arc *arc) {
  uint64_t slot = wf__wlm_line(table, state, arc->word) * WF__WLM_LINE,
           end = table->num_lines * WF__WLM_LINE;
  for (; table->slots[slot].state != 0; slot = slot + 1 < end ? slot + 1 : 0)
    if (table->slots[slot].state == state && table->slots[slot].word == arc->word) return;
  table->slots[slot] =
      (wf__wlm_slot){state, arc->word, arc->cost, arc->next < view->num_states ? arc->next : 0};
}

/* Adds the arcs [first, first + count) of a state; false if the file is malformed. */
static bool add_arcs(struct builder *builder, uint32_t state, const uint8_t *arcs, uint64_t first,
                     uint64_t count, uint64_t num) {
  const wf__wlm_view *view = &builder->lm->view;
  builder->num_arcs += count;
  if (first + count > num || builder->num_arcs > view->num_small + view->num_large) return false;
  for (uint64_t i = first; i < first + count; i++) {
    wf__wlm_arc arc = wf__wlm_arc_at(view, arcs, i);
    add(builder->table, view, state, &arc);
  }
  return true;
}

static bool add_state(struct builder *builder, uint32_t state) {
  const wf__wlm_view *view = &builder->lm->view;
  const wf__wlm_state *record = &view->states[state];
  uint64_t first = record->where & (WF__WLM_LARGE - 1),
           count = record->where >> (WF__WLM_FIRST_BITS + 1);
  builder->table->hops[state] =
      (wf__wlm_hop){record->backoff < state ? record->backoff : 0, record->backoff_cost};
  if (!(record->where & WF__WLM_LARGE))
    return count <= WF__WLM_SMALL &&
           add_arcs(builder, state, view->small, first, count, view->num_small);
  builder->num_buckets += count;
  if (first + count > view->num_buckets || builder->num_buckets > view->num_buckets) return false;
  for (uint64_t b = first; b < first + count; b++) {
    uint64_t head = wf__wlm_head(&view->buckets[b]),
             base = head & (((uint64_t)1 << WF__WLM_BASE_BITS) - 1),
             size = head >> WF__WLM_BASE_BITS & 15;
    if (size > WF__WLM_BUCKET ||
        !add_arcs(builder, state, view->large, base, size, view->num_large))
      return false;
  }
  return true;
}

static wf_status fill(struct builder *builder, const wf_progress *progress, wf_error *err) {
  const wf__wlm_view *view = &builder->lm->view;
  for (uint64_t s = 1; s < view->num_states; s++) {
    if (!add_state(builder, (uint32_t)s))
      return wf__fail(err, WF_ERR_FORMAT, MALFORMED, builder->lm->input.path,
                      (unsigned long long)s);
    if (s % 65536 == 0)
      WF__TRY(wf__progress(progress, "making the look-up table",
                           (double)s / (double)view->num_states, err));
  }
  return WF_OK;
}

static wf_status make(const wf__wlm *lm, wf__wlm_arc_table *table, const wf_progress *progress,
                      wf_error *err) {
  const wf__wlm_view *view = &lm->view;
  const uint64_t line_bytes = WF__WLM_LINE * sizeof(wf__wlm_slot),
                 num_lines = (view->num_small + view->num_large) / 3 + 1; /* three quarters full */
  if (num_lines > UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "%s: too many n-grams for a look-up table", lm->input.path);
  *table = (wf__wlm_arc_table){.memory = wf__calloc(num_lines + 1, line_bytes),
                               .hops = wf__alloc(view->num_states, sizeof *table->hops),
                               .num_lines = num_lines};
  if (table->memory == NULL || table->hops == NULL)
    return wf__fail_memory(err, num_lines * line_bytes, "a look-up table");
  table->slots = (wf__wlm_slot *)(void *)(((uintptr_t)table->memory + line_bytes - 1) / line_bytes *
                                          line_bytes);
  table->hops[0] = (wf__wlm_hop){0, 0};
  struct builder builder = {.lm = lm, .table = table};
  return fill(&builder, progress, err);
}

wf_status wf__wlm_make_table(wf__wlm *lm, const wf_progress *progress, wf_error *err) {
  if (atomic_load(&lm->table) != NULL) return WF_OK;
  wf__wlm_arc_table *table = wf__calloc(1, sizeof *table);
  if (table == NULL) return wf__fail_memory(err, sizeof *table, "a look-up table");
  wf_status status = make(lm, table, progress, err);
  if (status == WF_OK)
    atomic_store(&lm->table, table);
  else
    wf__wlm_table_free(table);
  return status;
}

void wf__wlm_table_free(wf__wlm_arc_table *table) {
  if (table == NULL) return;
  free(table->memory);
  free(table->hops);
  free(table);
}
