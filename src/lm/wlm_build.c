/* wlm_build.c - reads a model into external sorts and builds its mapped form. Missing n-grams can
 * make several rounds necessary. */
#include "lm/wlm_build.h"

#include "base/callbacks.h"
#include "base/config.h"
#include "base/option_tables.h"
#include "base/output.h"
#include "base/temp_file.h"
#include "lm/wlm_read.h"

/* --- reading ----------------------------------------------------------------------------- */

static wf_status make_sorts(wf__wlm_build *build, int order, wf_error *err) {
  for (int n = 1; n <= order; n++) {
    if (build->grams[n] == NULL)
      WF__TRY(wf__sort_create((uint32_t)n + 2, (uint32_t)n, (uint64_t)build->options.memory / 2,
                              build->folder, &build->grams[n], err));
    if (build->required[n] == NULL)
      WF__TRY(wf__sort_create((uint32_t)n + 1, (uint32_t)n, (uint64_t)build->options.memory / 4,
                              build->folder, &build->required[n], err));
  }
  return WF_OK;
}

/* Finishes the sorts of an order, which frees their memory for the next order. */
static wf_status end_order(wf__wlm_build *build, int n, wf_error *err) {
  WF__TRY(wf__sort_finish(build->grams[n], err));
  return n > 1 ? wf__sort_finish(build->required[n - 1], err) : WF_OK;
}

static wf_status put(void *user, const wf__ngram_collector *collector, int n, const uint32_t *label,
                     float cost, float backoff, wf_error *err) {
  wf__wlm_build *build = user;
  if (n != build->last_order) {
    WF__TRY(make_sorts(build, n, err));
    if (build->last_order > 0) WF__TRY(end_order(build, build->last_order, err));
    build->last_order = n;
    build->last_context[0] = 0;
  }
  if (n == 1 && build->small.lm != NULL)
    while (build->small.num_words <= label[0])
      WF__TRY(wf__wlm_small_map(&build->small, collector,
                                wf_symbols_text(collector->vocab, build->small.num_words), err));
  uint32_t backwards[WF_LM_MAX_ORDER];
  bool outside = false, same = true;
  for (int i = 0; i < n; i++) {
    backwards[i] = label[n - 1 - i];
    outside =
        outside || (build->small.lm != NULL && build->small.label_of[label[i]] == WF__LM_NONE &&
                    !(n == 1 && label[i] == collector->levels.unk));
  }
  if (outside) {
    build->stats->num_outside++;
    return WF_OK;
  }
  WF__TRY(wf__wlm_add_gram(build, n, backwards, cost, backoff, err));
  for (int i = 1; i < n; i++) {
    same = same && build->last_context[i - 1] == backwards[i];
    build->last_context[i - 1] = backwards[i];
  }
  return n == 1 || same ? WF_OK
                        : wf__wlm_require(build, n - 1, backwards + 1,
                                          WF__REQUIRED_STATE | WF__REQUIRED_CONTEXT, err);
}

static wf_status read_large(wf__wlm_build *build, const wf__wlm_source *from,
                            const wf_arpa_options *reader, wf_arpa_stats *reading, wf_error *err) {
  wf__ngram_sink sink = {put, build};
  WF__TRY(from->read != NULL ? wf__stream_ngrams(from->path, reader, from->read, from->user, &sink,
                                                 &build->info, reading, build->progress, err)
                             : wf__lm_stream_arpa(from->path, reader, &sink, &build->info, reading,
                                                  build->progress, err));
  WF__TRY(end_order(build, build->last_order, err));
  if (build->small.lm != NULL && build->small.lm->order > build->info.order)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the small model has order %d, which is above the large model's order %d",
                    build->small.lm->order, build->info.order);
  build->num_words = (uint32_t)wf_symbols_next_key(build->info.words);
  WF__TRY(make_sorts(build, build->info.order, err));
  if (build->small.lm != NULL) WF__TRY(wf__wlm_small_require(build, err));
  for (int n = 1; n <= build->info.order; n++) WF__TRY(wf__sort_finish(build->required[n], err));
  return WF_OK;
}

/* --- missing n-grams --------------------------------------------------------------------- */

static bool any_missing(const wf__wlm_build *build) {
  for (int n = 1; n <= build->info.order; n++)
    if (build->num_missing[n] > 0) return true;
  return false;
}

/* The model's cost of the last word of the n-gram, backwards[0], after the others. */
static float cost_of(const wf__wlm *lm, int n, const uint32_t *backwards) {
  const wf__wlm_view *v = &lm->view;
  uint32_t state = 0, at, next;
  for (int i = n; i-- > 1;) {
    if (backwards[i] == v->bos)
      state = v->start;
    else
      wf__wlm_step(v, state, backwards[i], &state, &at);
  }
  return backwards[0] == v->bos || !wf__wlm_knows(v, backwards[0])
             ? INFINITY
             : wf__wlm_step(v, state, backwards[0], &next, &at);
}

static wf_status join_plain(void *user, const char *path, wf_error *err) {
  return wf__wlm_join(user, path, true, err);
}

/* Adds the missing n-grams of n words with the model's costs, and requires their contexts. */
static wf_status create_order(wf__wlm_build *build, const wf__wlm *lm, int n, wf_error *err) {
  uint32_t words[WF_LM_MAX_ORDER + 1];
  size_t bytes = ((size_t)n + 1) * sizeof *words;
  for (uint64_t i = 0; i < build->num_missing[n]; i++) {
    WF__TRY(wf__spill_buffer_read(&build->missing[n], i * bytes, words, bytes, err));
    if (words[n] & WF__REQUIRED_BY_SMALL)
      build->stats->num_added++;
    else
      build->stats->num_created++;
    WF__TRY(wf__wlm_add_gram(build, n, words, cost_of(lm, n, words), 0, err));
    if (n > 1)
      WF__TRY(
          wf__wlm_require(build, n - 1, words + 1, WF__REQUIRED_STATE | WF__REQUIRED_CONTEXT, err));
  }
  return WF_OK;
}

/* Builds the model without the missing n-grams, and takes their costs from it. */
static wf_status create_missing(wf__wlm_build *build, wf_error *err) {
  wf__wlm *lm;
  WF__TRY(wf__wlm_open_made(build->folder, join_plain, build, &lm, err));
  wf_status status = WF_OK;
  for (int n = 1; n <= build->longest_known && status == WF_OK; n++)
    status = create_order(build, lm, n, err);
  for (int n = 1; n <= build->info.order && status == WF_OK; n++) {
    status = wf__sort_finish(build->grams[n], err);
    if (status == WF_OK) status = wf__sort_finish(build->required[n], err);
  }
  wf__wlm_free(lm);
  return status;
}

/* --- build ------------------------------------------------------------------------------- */

static void free_build(wf__wlm_build *build) {
  for (int n = 0; n <= WF_LM_MAX_ORDER; n++) {
    wf__sort_free(build->grams[n]);
    wf__sort_free(build->required[n]);
    wf__sort_free(build->states[n]);
    wf__sort_free(build->arcs[n]);
    wf__spill_buffer_free(&build->missing[n]);
  }
  wf__vec_free(&build->unigrams);
  wf__wlm_small_free(&build->small);
  wf_symbols_free(build->info.words);
  free(build->folder);
}

static wf_status build_all(wf__wlm_build *build, const wf__wlm_source *from, const char *out,
                           const wf_arpa_options *reader, wf_arpa_stats *reading, wf_error *err) {
  WF__TRY(wf__output_needs_offsets(out, "a model that is memory-mapped", err));
  WF__TRY(wf__temp_folder(build->options.temporary, out, &build->folder, err));
  if (from->small != NULL) build->small.lm = wf__automaton_ref(from->small);
  WF__TRY(read_large(build, from, reader, reading, err));
  WF__TRY(wf__wlm_merge(build, err));
  for (int round = 0; any_missing(build); round++) {
    if (round > 2 * build->info.order)
      return wf__fail(err, WF_ERR_FORMAT, "%s: contexts of n-grams cannot be created", from->path);
    WF__TRY(create_missing(build, err));
    WF__TRY(wf__wlm_merge(build, err));
  }
  if (build->stats->num_created > 0)
    wf__log(WF_LOG_WARNING, "%s: %llu contexts of n-grams were missing and have been created",
            from->path, (unsigned long long)build->stats->num_created);
  if (build->stats->num_added > 0)
    wf__log(WF_LOG_WARNING, "%s: %llu n-grams of the small model were missing and have been added",
            from->path, (unsigned long long)build->stats->num_added);
  return wf__wlm_join(build, out, false, err);
}

wf_status wf__wlm_build_file(const wf__wlm_source *from, const char *out,
                             const wf_arpa_options *reader, const wf_lm_convert_options *options,
                             wf_lm_convert_stats *stats, wf_arpa_stats *reading,
                             const wf_progress *progress, wf_error *err) {
  wf_lm_convert_stats own = {0};
  wf__wlm_build *build = wf__calloc(1, sizeof *build);
  if (build == NULL) return wf__fail_memory(err, sizeof *build, "a language model");
  build->progress = progress;
  build->stats = &own;
  wf_status status = wf__options_take(wf__lm_convert_table(), options, &build->options, err);
  if (status == WF_OK) status = build_all(build, from, out, reader, reading, err);
  free_build(build);
  free(build);
  if (status == WF_OK && stats != NULL) wf__struct_give(&own, sizeof own, stats);
  return status;
}
