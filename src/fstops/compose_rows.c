/* compose_rows.c - dense composition: makes the plan, finds the pairs reached and those that reach
 * a final pair, and writes the arrays. */
#include "fstops/compose_rows.h"

#include <string.h>

#include "base/interrupt.h"

uint64_t wf__compose_rows_cells(const wf__compose_job *job, uint64_t *out_bytes) {
  const wf_fst_view *a = &job->a->view, *b = &job->b->view;
  uint64_t num_rows = a->num_states * (uint64_t)wf__num_filter_states(
                                          job->filter, job->a->has_epsilons, job->b->has_epsilons);
  uint64_t num_words = (b->num_states + 63) / 64, limit = (uint64_t)1 << 40;
  *out_bytes = UINT64_MAX;
  if (num_rows >= UINT32_MAX || a->num_arcs >= UINT32_MAX / 4 || b->num_arcs >= UINT32_MAX / 4 ||
      num_rows > limit / num_words / 64)
    return UINT64_MAX;
  /* three tables (reached, fresh, kept) of 8 bytes a word, and 1 for summaries */
  *out_bytes = num_rows * num_words * 3 * 9;
  return num_rows * b->num_states;
}

static uint64_t count_bits(const uint64_t *words, uint64_t count) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; i++) sum += (uint64_t)__builtin_popcountll(words[i]);
  return sum;
}

static wf_status compose(const wf__row_plan *plan, const wf__compose_job *job, uint64_t *reached,
                         uint64_t **kept, wf__compose_output *out, wf_error *err) {
  uint64_t num_words = plan->num_rows * plan->num_words;
  WF__TRY(wf__compose_reach(plan, job->pool, reached, err));
  WF__TRY(wf__interrupted(err)); /* an interrupted search is incomplete */
  if (count_bits(reached, num_words) > job->max_states)
    return wf__fail(err, WF_ERR_LIMIT, "the composition has more than %llu states (max_states)",
                    (unsigned long long)job->max_states);
  if (!job->connect) return wf__compose_fill(plan, job, reached, out, err);
  *kept = wf__calloc(num_words, sizeof **kept);
  if (*kept == NULL) return wf__fail_memory(err, num_words * sizeof **kept, "rows of bits");
  WF__TRY(wf__compose_coreach(plan, job->pool, reached, *kept, err));
  WF__TRY(wf__interrupted(err));
  return wf__compose_fill(plan, job, *kept, out, err);
}

wf_status wf__compose_rows(const wf__compose_job *job, wf__compose_output *out, bool *out_fits,
                           wf_error *err) {
  wf__row_plan plan;
  WF__TRY(wf__compose_plan(job, &plan, out_fits, err));
  if (!*out_fits) return WF_OK;
  uint64_t num_words = plan.num_rows * plan.num_words, *kept = NULL,
           *reached = wf__calloc(num_words, sizeof *reached);
  wf_status status = reached == NULL
                         ? wf__fail_memory(err, num_words * sizeof *reached, "rows of bits")
                         : compose(&plan, job, reached, &kept, out, err);
  if (status != WF_OK) wf__compose_output_free(out);
  free(reached);
  free(kept);
  wf__compose_plan_free(&plan);
  return status;
}
