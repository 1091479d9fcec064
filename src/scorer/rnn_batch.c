/* rnn_batch.c - scores the requests of all searches of a batch to the recurrent scorer together.
 *
 *   requests of the lanes --results--> those not cached --(context, label)--> jobs,
 *   distinct ones --history--> groups a block of groups: hidden states by matrix products, then the
 *   costs of its jobs, both over the threads
 *
 * A job's cost is a function of its context and label: products sum in one order whatever the
 * batch (lm/rnnlm_math.h). So scores do not depend on other requests. */
#include <string.h>

#include "scorer/rnn_scorer.h"

enum {
  NONE = UINT32_MAX,
  JOBS_AT_ONCE = 128 /* for each thread */,
  BLOCKS_PER_THREAD = 4,
  DEVICE_HISTORIES = 1 << 16 /* histories in one launch */
};

wf_status wf__rnn_request_scores(const wf_scorer *self, void *memory,
                                 const wf__score_request *requests, uint64_t count,
                                 uint64_t num_requests, uint64_t *num_noted, wf_error *err) {
  wf__rnn_lane *lane = memory;
  const wf__rnn_memory *m = &lane->group->memory;
  int32_t num_labels = ((const wf__rnn_scorer *)self)->num_labels;
  lane->batched = true;
  for (uint64_t i = 0; i < count; i++) {
    if (requests[i].word >= num_labels) continue; /* not a word of the table; step handles it */
    wf__rnn_result *entry =
        wf__rnn_result_at(&m->results, requests[i].context, requests[i].word, lane->utterance);
    if (entry->word == 0)
      WF__TRY(wf__vec_push(&lane->requests, requests[i], "requests to a scorer", err));
    else
      __atomic_store_n(
          &entry->epoch, m->round_epoch,
          __ATOMIC_RELAXED); /* other threads may store the same value at the same time */
  }
  lane->counts.requests += num_requests;
  lane->counts.hits += num_requests - lane->requests.size;
  *num_noted = lane->requests.size;
  wf__rnn_report_counts(self, &lane->counts);
  return WF_OK;
}

bool wf__rnn_is_full(const wf_scorer *self, const void *memory) {
  return wf__rnn_memory_is_full(&((const wf__rnn_lane *)memory)->group->memory);
}

wf_status wf__rnn_keep(const wf_scorer *self, void *const *memories, const wf__context_vec *live,
                       size_t count, wf_error *err) {
  wf__rnn_memory *m = &((wf__rnn_lane *)memories[0])->group->memory;
  uint32_t place;
  for (size_t i = 0; i < count; i++) /* before the results that lead to them are evicted */
    for (uint64_t k = 0; k < live[i].size; k++)
      WF__TRY(wf__rnn_find((const wf__rnn_scorer *)self, m, live[i].data[k], &place, err));
  return wf__rnn_memory_keep(m, live, count, err);
}

/* --- from requests to jobs -------------------------------------------------------------- */

static wf_status find_job(const wf__rnn_scorer *rnn, wf__rnn_memory *m, wf__rnn_batch *b,
                          wf__score_request request, uint32_t *job, wf_error *err) {
  uint64_t mask = b->table.size - 1,
           at = wf__mix64(request.context + ((uint64_t)(uint32_t)request.word << 32)) & mask;
  for (; b->table.data[at] != 0; at = (at + 1) & mask) {
    *job = b->table.data[at] - 1;
    if (b->jobs.data[*job].label == request.word &&
        m->contexts.data[b->jobs.data[*job].place].hash == request.context)
      return WF_OK;
  }
  uint32_t place;
  WF__TRY(wf__rnn_find(rnn, m, request.context, &place, err));
  if (place == NONE)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the recurrent scorer has no context %llx in this utterance",
                    (unsigned long long)request.context);
  m->contexts.data[place].epoch = m->epoch;
  wf__rnn_job fresh = {
      .place = place, .label = request.word, .word = wf__rnn_word_of(rnn, request.word)};
  *job = (uint32_t)b->jobs.size;
  b->table.data[at] = *job + 1;
  return wf__vec_push(&b->jobs, fresh, "requests to a scorer", err);
}

static wf_status gather(const wf__rnn_scorer *rnn, wf__rnn_memory *m, wf__rnn_batch *b,
                        void *const *memories, size_t count, wf_error *err) {
  uint64_t total = 0, room = 64;
  for (size_t i = 0; i < count; i++) total += ((wf__rnn_lane *)memories[i])->requests.size;
  if (total > UINT32_MAX / 4)
    return wf__fail(err, WF_ERR_LIMIT, "%llu requests to the recurrent scorer at one time",
                    (unsigned long long)total);
  WF__TRY(wf__rnn_results_reserve(&m->results, total, err));
  while (room < 2 * total) room *= 2;
  b->jobs.size = b->readers.size = b->table.size = 0;
  WF__TRY(wf__vec_grow(&b->table, room, "requests to a scorer", err));
  b->table.size = room;
  memset(b->table.data, 0, room * sizeof *b->table.data);
  for (size_t i = 0; i < count; i++) {
    wf__rnn_lane *lane = memories[i];
    for (uint64_t q = 0; q < lane->requests.size; q++) {
      wf__score_request request = lane->requests.data[q];
      wf__rnn_reader reader = {
          .entry = wf__rnn_result_at(&m->results, request.context, request.word, lane->utterance)};
      if (reader.entry->word != 0) { /* requested twice in this frame */
        lane->counts.hits++;
        continue;
      }
      WF__TRY(find_job(rnn, m, b, request, &reader.job, err));
      *reader.entry = (wf__rnn_result){
          .context = request.context, .word = request.word, .utterance = lane->utterance};
      m->results.size++;
      WF__TRY(wf__vec_push(&b->readers, reader, "requests to a scorer", err));
    }
    lane->requests.size = 0;
  }
  return WF_OK;
}

/* Sorts jobs by history. Jobs that do not need the recurrent model are put with the root, whose
 * state always exists. */
static wf_status group_jobs(wf__rnn_memory *m, wf__rnn_batch *b, wf_error *err) {
  b->histories.size = b->first.size = b->order.size = 0;
  WF__TRY(wf__vec_grow(&b->first, b->jobs.size + 2, "requests to a scorer", err));
  WF__TRY(wf__vec_grow(&b->order, b->jobs.size, "requests to a scorer", err));
  memset(b->first.data, 0, (b->jobs.size + 2) * sizeof *b->first.data);
  for (uint64_t i = 0; i < b->jobs.size; i++) {
    wf__rnn_job *job = &b->jobs.data[i];
    uint32_t history = job->word >= 0 ? m->contexts.data[job->place].history : WF__RNN_ROOT;
    uint32_t *group = &m->histories.data[history].group;
    if (*group >= b->histories.size || b->histories.data[*group] != history) {
      *group = (uint32_t)b->histories.size;
      WF__TRY(wf__vec_push(&b->histories, history, "requests to a scorer", err));
    }
    job->group = *group;
    b->first.data[job->group + 2]++;
  }
  b->first.size = b->histories.size + 1;
  for (uint64_t g = 2; g <= b->histories.size; g++) b->first.data[g] += b->first.data[g - 1];
  for (uint32_t i = 0; i < b->jobs.size; i++)
    b->order.data[b->first.data[b->jobs.data[i].group + 1]++] = i;
  b->order.size = b->jobs.size;
  return WF_OK;
}

/* --- from jobs to scores ----------------------------------------------------------------- */

struct costing {
  const wf__rnn_scorer *rnn;
  wf__rnn_memory *memory;
  wf__rnn_batch *batch;
  uint64_t first, end; /* of `order` */
};

/* Computes the model's part of all jobs' costs on a GPU. */
static wf_status costs_on_device(const struct costing *c, wf_error *err) {
  wf__rnn_batch *b = c->batch;
  const uint64_t most = c->end - c->first;
  b->request_histories.size = b->request_words.size = b->recurrent.size = 0;
  WF__TRY(wf__vec_grow(&b->request_histories, most, "requests to a scorer", err));
  WF__TRY(wf__vec_grow(&b->request_words, most, "requests to a scorer", err));
  WF__TRY(wf__vec_grow(&b->recurrent, most, "requests to a scorer", err));
  for (uint64_t i = c->first; i < c->end; i++) {
    const wf__rnn_job *job = &b->jobs.data[b->order.data[i]];
    if (job->word < 0) continue;
    b->request_histories.data[b->request_histories.size++] = b->histories.data[job->group];
    b->request_words.data[b->request_words.size++] = job->word;
  }
  WF__TRY(wf__rnn_device_costs_behind(c->memory, b->request_histories.data, b->request_words.data,
                                      b->request_words.size, b->recurrent.data, err));
  const float *cost = b->recurrent.data;
  for (uint64_t i = c->first; i < c->end; i++) {
    wf__rnn_job *job = &b->jobs.data[b->order.data[i]];
    if (job->word >= 0) job->cost = *cost++;
  }
  return WF_OK;
}

/* Computes the costs of some jobs. */
static void cost_jobs(void *user, uint64_t item, int worker) {
  const struct costing *c = user;
  uint32_t histories[JOBS_AT_ONCE];
  int32_t words[JOBS_AT_ONCE];
  float costs[JOBS_AT_ONCE];
  uint64_t begin = c->first + item * JOBS_AT_ONCE,
           end = begin + JOBS_AT_ONCE < c->end ? begin + JOBS_AT_ONCE : c->end;
  size_t num = 0, got = 0;
  const bool on_device = c->memory->device != NULL; /* the GPU has computed these costs */
  wf__rnn_context behind;
  for (uint64_t i = begin; i < end; i++) {
    const wf__rnn_job *job = &c->batch->jobs.data[c->batch->order.data[i]];
    if (job->word < 0 || on_device) continue;
    histories[num] = c->batch->histories.data[job->group];
    words[num++] = job->word;
  }
  wf__rnn_costs_behind(c->memory, histories, words, num, costs);
  for (uint64_t i = begin; i < end; i++) {
    wf__rnn_job *job = &c->batch->jobs.data[c->batch->order.data[i]];
    float recurrent = job->word < 0 ? c->rnn->options.unknown_cost
                      : on_device   ? job->cost
                                    : costs[got++];
    job->cost = wf__rnn_mixed_cost(c->rnn, &c->memory->contexts.data[job->place], job->label,
                                   recurrent, &behind);
    job->next = wf__rnn_next(c->rnn, c->memory, job->label, &behind);
  }
}

static wf_status compute(const wf__rnn_scorer *rnn, wf__rnn_memory *m, wf__rnn_batch *b,
                         wf__pool *pool, wf_error *err) {
  size_t at_once =
      (size_t)(pool != NULL ? wf__pool_size(pool) : 1) * BLOCKS_PER_THREAD * WF__RNN_BLOCK;
  if (m->device != NULL) at_once = DEVICE_HISTORIES;
  if (at_once > wf__rnn_epoch_limit(m)) at_once = wf__rnn_epoch_limit(m);
  for (uint64_t group = 0; group < b->histories.size; group += at_once) {
    uint64_t num = b->histories.size - group < at_once ? b->histories.size - group : at_once;
    struct costing c = {rnn, m, b, b->first.data[group], b->first.data[group + num]};
    WF__TRY(wf__rnn_begin_epoch(m, b->histories.data + group, num, pool, err));
    if (m->device != NULL) WF__TRY(costs_on_device(&c, err));
    uint64_t num_items = (c.end - c.first + JOBS_AT_ONCE - 1) / JOBS_AT_ONCE;
    if (pool != NULL && num_items > 1)
      wf__pool_run(pool, num_items, cost_jobs, &c);
    else
      for (uint64_t item = 0; item < num_items; item++) cost_jobs(&c, item, 0);
  }
  return WF_OK;
}

static wf_status score(const wf__rnn_scorer *rnn, wf__rnn_memory *m, wf__rnn_batch *b,
                       void *const *memories, size_t count, wf__pool *pool, wf_error *err) {
  WF__TRY(gather(rnn, m, b, memories, count, err));
  WF__TRY(group_jobs(m, b, err));
  WF__TRY(compute(rnn, m, b, pool, err));
  for (uint64_t i = 0; i < b->readers.size; i++) {
    const wf__rnn_job *job = &b->jobs.data[b->readers.data[i].job];
    wf__rnn_result *entry = b->readers.data[i].entry;
    entry->cost = job->cost;
    entry->next = job->next;
    entry->epoch = m->epoch;
    wf__rnn_results_link(&m->results, entry);
  }
  return WF_OK;
}

wf_status wf__rnn_score_requests(const wf_scorer *self, void *const *memories, size_t count,
                                 wf__pool *pool, wf_error *err) {
  wf__rnn_group *group = ((wf__rnn_lane *)memories[0])->group;
  wf__rnn_memory *m = &group->memory;
  wf_status status =
      score((const wf__rnn_scorer *)self, m, &group->batch, memories, count, pool, err);
  if (status != WF_OK) wf__rnn_results_clear(&m->results); /* some entries have no score yet */
  m->counts.costs += group->batch.jobs.size;
  m->counts.rounds++;
  m->round_epoch = ++m->epoch;
  wf__rnn_report_counts(self, &m->counts);
  return status;
}
