/* wlm_merge.c - merges the n-grams of all orders, sorted by their words in reverse order, so that
 * every suffix comes before the n-grams that end in it. */
#include <math.h>
#include <stdio.h>

#include "base/callbacks.h"
#include "lm/wlm_build.h"

/* Entry of the stack of suffixes of the current n-gram: each is a suffix of the next. */
struct suffix {
  int size;
  uint32_t words[WF_LM_MAX_ORDER]; /* reversed */
  wf__wlm_place state; /* of the longest suffix of these words that is a state; may be all words */
};

struct merge {
  wf__wlm_build *build;
  const uint32_t *gram[WF_LM_MAX_ORDER + 1],
      *required[WF_LM_MAX_ORDER + 1]; /* next record of each sort, NULL at its end */
  struct suffix stack[WF_LM_MAX_ORDER + 1];
  int depth;
};

static int compare(const uint32_t *a, int a_size, const uint32_t *b, int b_size) {
  for (int i = 0; i < a_size && i < b_size; i++)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return a_size - b_size;
}

static wf_status fail_duplicate(const wf__wlm_build *build, int n, const uint32_t *words,
                                wf_error *err) {
  char text[256] = "";
  size_t used = 0;
  for (int i = n; i-- > 0 && used < sizeof text;) {
    const char *word = wf_symbols_text(build->info.words, words[i]);
    used += (size_t)snprintf(text + used, sizeof text - used, "%.40s%s", word != NULL ? word : "?",
                             i > 0 ? " " : "");
  }
  return wf__fail(err, WF_ERR_FORMAT, "the %d-grams give '%s' twice", n, text);
}

/* Processes the n-gram at gram[n]. It is a state if `flags` has WF__REQUIRED_STATE or it has a
 * back-off weight. */
static wf_status take(struct merge *m, int n, uint32_t flags, wf_error *err) {
  wf__wlm_build *build = m->build;
  const uint32_t *gram = m->gram[n];
  float backoff = wf__float_of_bits(gram[n + 1]);
  while (m->stack[m->depth].size >= n || compare(m->stack[m->depth].words, m->stack[m->depth].size,
                                                 gram, m->stack[m->depth].size) != 0)
    m->depth--;
  wf__wlm_place shorter = m->stack[m->depth].state, own = shorter;
  bool first = n == 1 && gram[0] == build->info.bos, end = gram[0] == build->info.eos;
  bool state = n < build->info.order && !end && ((flags & WF__REQUIRED_STATE) || backoff != 0);
  if (state) {
    own = (wf__wlm_place){(uint32_t)n, (uint32_t)build->num_states[n]++};
    if (build->num_states[n] >= UINT32_MAX - 1)
      return wf__fail(err, WF_ERR_LIMIT, "too many histories of %d words: at least 2^32 - 2", n);
  }
  struct suffix *top = &m->stack[++m->depth];
  top->size = n;
  top->state = own;
  memcpy(top->words, gram, (size_t)n * sizeof *gram);
  uint32_t record[WF_LM_MAX_ORDER + 3];
  if (state) {
    memcpy(record, gram, (size_t)n * sizeof *gram);
    record[n] = shorter.level;
    record[n + 1] = shorter.number;
    record[n + 2] = gram[n + 1];
    WF__TRY(wf__sort_add(build->states[n], record, err));
  }
  build->num_ngrams[n - 1]++;
  if (n == 1) {
    build->unigrams.data[gram[0]] =
        (wf__wlm_arc){gram[0], first ? INFINITY : wf__float_of_bits(gram[1]),
                      own.level == 0 ? WF__LM_NONE : own.number};
    return WF_OK;
  }
  memcpy(record, gram + 1, (size_t)(n - 1) * sizeof *gram);
  record[n - 1] = gram[0];
  record[n] = gram[n];
  record[n + 1] = own.level;
  record[n + 2] = own.number;
  return wf__sort_add(build->arcs[n], record, err);
}

static wf_status note_missing(struct merge *m, int n, const uint32_t *words, uint32_t flags,
                              wf_error *err) {
  uint32_t record[WF_LM_MAX_ORDER + 1];
  memcpy(record, words, (size_t)n * sizeof *words);
  record[n] = flags;
  m->build->num_missing[n]++;
  if ((flags & WF__REQUIRED_CONTEXT) && n < m->build->longest_known) m->build->longest_known = n;
  return wf__spill_buffer_write(&m->build->missing[n], record, ((size_t)n + 1) * sizeof *record,
                                err);
}

/* Order of the smallest next n-gram; 0 at the end. */
static int first_of(const struct merge *m) {
  int best = 0;
  const uint32_t *best_words = NULL;
  for (int n = 1; n <= m->build->info.order; n++)
    for (int i = 0; i < 2; i++) {
      const uint32_t *words = i == 0 ? m->gram[n] : m->required[n];
      if (words == NULL || (best != 0 && compare(words, n, best_words, best) >= 0)) continue;
      best = n;
      best_words = words;
    }
  return best;
}

static wf_status step(struct merge *m, int n, wf_error *err) {
  wf__wlm_build *build = m->build;
  uint32_t words[WF_LM_MAX_ORDER], flags = 0;
  bool there = m->gram[n] != NULL &&
               (m->required[n] == NULL || compare(m->gram[n], n, m->required[n], n) <= 0);
  memcpy(words, there ? m->gram[n] : m->required[n], (size_t)n * sizeof *words);
  while (m->required[n] != NULL && compare(m->required[n], n, words, n) == 0) {
    flags |= m->required[n][n];
    WF__TRY(wf__sort_next(build->required[n], &m->required[n], err));
  }
  if (!there) return note_missing(m, n, words, flags, err);
  WF__TRY(take(m, n, flags, err));
  WF__TRY(wf__sort_next(build->grams[n], &m->gram[n], err));
  if (m->gram[n] != NULL && compare(m->gram[n], n, words, n) == 0)
    return fail_duplicate(build, n, words, err);
  return WF_OK;
}

/* Clears the results of an earlier merge. */
static wf_status prepare(wf__wlm_build *build, wf_error *err) {
  uint64_t memory = (uint64_t)build->options.memory / 2 / (uint64_t)(2 * build->info.order);
  for (int n = 1; n <= build->info.order; n++) {
    wf__sort_free(build->states[n]);
    wf__sort_free(build->arcs[n]);
    build->states[n] = build->arcs[n] = NULL;
    build->num_states[n] = build->num_ngrams[n - 1] = 0;
    wf__spill_buffer_free(&build->missing[n]);
    build->missing[n] = wf__spill_buffer_of(memory / 4, build->folder);
    build->num_missing[n] = 0;
    WF__TRY(wf__sort_create((uint32_t)n + 3, (uint32_t)n, memory, build->folder, &build->states[n],
                            err));
    WF__TRY(
        wf__sort_create((uint32_t)n + 3, (uint32_t)n, memory, build->folder, &build->arcs[n], err));
  }
  build->longest_known = build->info.order;
  build->unigrams.size = 0;
  WF__TRY(wf__vec_grow(&build->unigrams, build->num_words, "unigrams", err));
  for (uint32_t w = 0; w < build->num_words; w++)
    build->unigrams.data[w] = (wf__wlm_arc){WF__LM_NONE, INFINITY, WF__LM_NONE};
  return WF_OK;
}

wf_status wf__wlm_merge(wf__wlm_build *build, wf_error *err) {
  WF__TRY(prepare(build, err));
  struct merge m = {
      .build =
          build}; /* the bottom of the stack is the empty suffix, whose state is that of level 0 */
  uint64_t done = 0, total = 0;
  for (int n = 1; n <= build->info.order; n++) {
    WF__TRY(wf__sort_rewind(build->grams[n], err));
    WF__TRY(wf__sort_rewind(build->required[n], err));
    WF__TRY(wf__sort_next(build->grams[n], &m.gram[n], err));
    WF__TRY(wf__sort_next(build->required[n], &m.required[n], err));
    total += wf__sort_count(build->grams[n]);
  }
  for (int n; (n = first_of(&m)) > 0; done++) {
    WF__TRY(step(&m, n, err));
    if (done % 1048576 == 0)
      WF__TRY(wf__progress(build->progress, "finding histories", (double)done / (double)(total + 1),
                           err));
  }
  for (int n = 1; n <= build->info.order; n++) {
    WF__TRY(wf__sort_finish(build->states[n], err));
    WF__TRY(wf__sort_finish(build->arcs[n], err));
  }
  return WF_OK;
}
