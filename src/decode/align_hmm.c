/* align_hmm.c - forced alignment with a hybrid model: builds the graph of each transcript and
 * searches it. Graphs are built one at a time, since that adds HMM types to the model; searches run
 * in parallel. */
#include <pthread.h>
#include <string.h>

#include "base/config.h"
#include "base/memory.h"
#include "base/option_tables.h"
#include "base/threads.h"
#include "decode/host_scores.h"
#include "graph/hmm.h"
#include "graph/lexicon.h"

enum { WIDEST = 64 }; /* times the beam */

struct batch {
  wf_hmm *hmm;
  wf_lexicon *lexicon; /* of the words of all transcripts; NULL: it has none of them */
  const wf_hmm_align_input *inputs;
  const wf_hmm_align_options *options;
  wf_hmm_alignment **results;
  pthread_mutex_t building;
};

/* What is made for an utterance. */
struct work {
  wf_symbols *words;
  wf_fst *grammar;
  wf_graph_result built;
  int32_t *columns;
  size_t num_columns;
  wf_graph *graph;
  wf_result *result;
  wf_word *phones;
  size_t num_phones;
  void *copy; /* of scores in GPU memory */
};

static void free_work(struct work *w) {
  wf_symbols_free(w->words);
  wf_fst_free(w->grammar);
  wf_graph_result_clear(&w->built);
  wf_free(w->columns);
  wf_graph_free(w->graph);
  wf_result_free(w->result);
  wf_free(w->phones);
  free(w->copy);
}

/* --- the graph of a transcript ----------------------------------------------------------- */

static wf_status add_word(wf_symbols *table, const char *word, int64_t *out, wf_error *err) {
  *out = wf_symbols_find(table, word);
  return *out >= 0 ? WF_OK : wf_symbols_add(table, word, -1, out, err);
}

/* A line of states with the words of the transcript. */
static wf_status make_grammar(const wf_hmm_align_input *input, struct work *w, wf_error *err) {
  wf_builder *line = NULL;
  int64_t label;
  WF__TRY(wf_symbols_create("words", &w->words, err));
  WF__TRY(wf_symbols_add(w->words, "<eps>", 0, NULL, err));
  WF__TRY(wf_builder_create(WF_TROPICAL, &line, err));
  wf_status status = wf_builder_add_states(line, input->num_words + 1, NULL, err);
  if (status == WF_OK) status = wf_builder_set_start(line, 0, err);
  if (status == WF_OK) status = wf_builder_set_final(line, (uint32_t)input->num_words, 0, err);
  for (size_t i = 0; i < input->num_words && status == WF_OK; i++) {
    status = add_word(w->words, input->words[i], &label, err);
    const wf_arc arc = {(uint32_t)i + 1, 0, (int32_t)label, (int32_t)label};
    if (status == WF_OK) status = wf_builder_add_arc(line, (uint32_t)i, arc, err);
  }
  if (status == WF_OK) status = wf_builder_finish(line, w->words, w->words, &w->grammar, err);
  wf_builder_free(line);
  return status;
}

static wf_status build(struct batch *b, struct work *w, wf_error *err) {
  wf_graph_inputs inputs;
  wf_graph_options options;
  wf_graph_inputs_init(&inputs);
  wf_graph_options_init(&options);
  inputs.hmm = b->hmm;
  inputs.lexicon = b->lexicon;
  inputs.grammar = w->grammar;
  inputs.words = w->words;
  options.kind = WF_GRAPH_HMM;
  options.lm_weight = options.word_prob = 1;
  options.self_loop_scale = b->options->self_loop_scale;
  options.silence_prob = b->options->silence_prob;
  options.missing_words = WF_MISSING_WORDS_ERROR;
  options.ambiguous = WF_AMBIGUOUS_BEST; /* homophones cannot be confused, as the words are given */
  options.check_words = WF_CHECK_WORDS_OFF;
  pthread_mutex_lock(&b->building);
  wf_status status = wf_graph_build(&inputs, &options, &w->built, err);
  if (status == WF_OK) status = wf_hmm_columns(b->hmm, &w->columns, &w->num_columns, err);
  pthread_mutex_unlock(&b->building);
  if (status != WF_OK) return status;
  return wf_graph_create(w->built.graph, w->columns, w->num_columns, &w->graph, err);
}

/* --- the search -------------------------------------------------------------------------- */

static wf_status search(const wf_hmm_align_input *input, float beam, struct work *w,
                        wf_error *err) {
  const wf_utterance utterance = {.scores = input->scores};
  wf_decoder_options options;
  wf_decoder *decoder;
  wf_decoder_options_init(&options);
  options.beam = beam;
  options.max_active = options.max_tokens = (1 << 30) - 1; /* a transcript has few states */
  options.min_active = 0;
  options.num_threads = 1;
  WF__TRY(wf_decoder_create(w->graph, &options, &decoder, err));
  wf_result_free(w->result);
  w->result = NULL;
  wf_status status = wf_decode(decoder, &utterance, 1, NULL, &w->result, err);
  wf_decoder_free(decoder);
  if (status == WF_OK && w->result->status != WF_OK)
    status = wf__fail(err, w->result->status, "%s", w->result->message);
  return status;
}

static bool is_complete(const wf_result *result) {
  return (result->flags & (WF_RESULT_NOT_FINAL | WF_RESULT_DIED)) == 0;
}

static wf_status search_wider(const struct batch *b, const wf_hmm_align_input *input,
                              struct work *w, wf_error *err) {
  for (float wider = 1; wider <= WIDEST; wider *= 2) {
    WF__TRY(search(input, wider * b->options->beam, w, err));
    if (is_complete(w->result)) return WF_OK;
  }
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "no path through the transcript's %zu words in %lld frames, with a beam of %g",
                  input->num_words, (long long)input->scores.num_frames,
                  (double)(WIDEST * b->options->beam));
}

/* --- the result -------------------------------------------------------------------------- */

static wf_status take(wf_hmm_alignment *out, const char *text, wf_word times, wf_aligned_unit *unit,
                      wf_error *err) {
  const size_t size = strlen(text) + 1;
  char *copy = wf__arena_alloc(out->memory, size);
  if (copy == NULL) return wf__fail_memory(err, size, "an alignment");
  memcpy(copy, text, size);
  *unit = (wf_aligned_unit){copy, times.start_frame, times.end_frame};
  return WF_OK;
}

static wf_status take_result(const wf_hmm_align_input *input, struct work *w, wf_hmm_alignment *out,
                             wf_error *err) {
  const wf_word_aligner *aligner = wf_graph_word_aligner(w->graph);
  const wf_result *r = w->result;
  if (aligner == NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "the model does not tell where words and phones begin (Kaldi: read it with its "
                    "lang folder)");
  WF__TRY(wf_word_aligner_units(aligner, r->alignment, (size_t)r->num_decoded, &w->phones,
                                &w->num_phones, err));
  out->words = wf__alloc(input->num_words, sizeof *out->words);
  out->phones = wf__alloc(w->num_phones, sizeof *out->phones);
  out->memory = wf__calloc(1, sizeof(wf__arena));
  if (out->words == NULL || out->phones == NULL || out->memory == NULL)
    return wf__fail_memory(err, (input->num_words + w->num_phones) * sizeof *out->words,
                           "an alignment");
  for (; out->num_words < r->num_words; out->num_words++)
    WF__TRY(take(out, input->words[out->num_words], r->words[out->num_words],
                 &out->words[out->num_words], err));
  for (; out->num_phones < w->num_phones; out->num_phones++) {
    const wf_word phone = w->phones[out->num_phones];
    const char *text = wf_word_aligner_unit_text(aligner, phone.label);
    WF__TRY(take(out, text != NULL ? text : "", phone, &out->phones[out->num_phones], err));
  }
  out->num_frames = r->num_decoded;
  out->acoustic_cost = r->acoustic_cost;
  out->graph_cost = r->graph_cost;
  return WF_OK;
}

static wf_status align(struct batch *b, size_t i, struct work *w, wf_error *err) {
  wf_hmm_align_input host = b->inputs[i], *input = &host;
  WF__TRY(wf__host_scores(&b->inputs[i].scores, &host.scores, &w->copy, err));
  if (input->num_words == 0 || input->num_words >= INT32_MAX)
    return wf__fail(err, WF_ERR_ARGUMENT, "the transcript has %zu words", input->num_words);
  if (b->lexicon == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "the lexicon lacks the word '%s'", input->words[0]);
  WF__TRY(make_grammar(input, w, err));
  WF__TRY(build(b, w, err));
  WF__TRY(search_wider(b, input, w, err));
  return take_result(input, w, b->results[i], err);
}

/* --- a batch ----------------------------------------------------------------------------- */

static void free_parts(wf_hmm_alignment *a) {
  free(a->words);
  free(a->phones);
  if (a->memory != NULL) wf__arena_free(a->memory);
  free(a->memory);
  *a = (wf_hmm_alignment){.num_words = 0};
}

void wf_hmm_alignment_free(wf_hmm_alignment *alignment) {
  if (alignment != NULL) free_parts(alignment);
  free(alignment);
}

static void align_item(void *user, uint64_t item, int worker) {
  (void)worker;
  struct batch *b = user;
  struct work w = {0};
  wf_error err = {0};
  wf_hmm_alignment *out = b->results[item];
  const wf_status status = align(b, item, &w, &err);
  free_work(&w);
  if (status == WF_OK) return;
  free_parts(out);
  out->status = status;
  wf__utterance_message(out->message, sizeof out->message, b->inputs[item].key, item, err.message);
}

/* Keeps the words of the transcripts, so that each graph need not look at the whole lexicon. */
static wf_status select_words(struct batch *b, const wf_lexicon *lexicon, size_t count,
                              wf_error *err) {
  wf_symbols *words;
  int64_t label;
  uint64_t kept = 0;
  WF__TRY(wf_symbols_create("words", &words, err));
  bool *keep = wf__calloc(lexicon->entries.size, sizeof *keep);
  wf_status status =
      keep != NULL ? WF_OK : wf__fail_memory(err, lexicon->entries.size, "a lexicon");
  for (size_t i = 0; i < count && status == WF_OK; i++)
    for (size_t k = 0; k < b->inputs[i].num_words && status == WF_OK; k++)
      status = add_word(words, b->inputs[i].words[k], &label, err);
  for (uint64_t i = 0; i < lexicon->entries.size && status == WF_OK; i++)
    kept += keep[i] = wf_symbols_find(words, lexicon->entries.data[i].word) >= 0;
  if (status == WF_OK && kept > 0)
    status = wf__lexicon_select(lexicon, keep, NULL, lexicon->always_marked, &b->lexicon, err);
  free(keep);
  wf_symbols_free(words);
  return status;
}

wf_status wf_align_hmm(wf_hmm *hmm, const wf_lexicon *lexicon, const wf_hmm_align_input *inputs,
                       size_t count, const wf_hmm_align_options *options,
                       wf_hmm_alignment **results, wf_error *err) {
  wf__error_clear(err);
  if (count > 0) memset(results, 0, count * sizeof *results);
  wf_hmm_align_options o;
  WF__TRY(wf__options_take(wf__hmm_align_table(), options, &o, err));
  if (lexicon->table != hmm->lexicon_phones)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the lexicon was not read with the symbol table of wf_hmm_phones");
  struct batch b = {hmm, NULL, inputs, &o, results, PTHREAD_MUTEX_INITIALIZER};
  wf_status status = select_words(&b, lexicon, count, err);
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    results[i] = wf__calloc(1, sizeof **results);
    if (results[i] == NULL) status = wf__fail_memory(err, sizeof **results, "an alignment");
  }
  if (status == WF_OK) status = wf__pool_once(o.num_threads, count, align_item, &b, err);
  wf_lexicon_free(b.lexicon);
  pthread_mutex_destroy(&b.building);
  for (size_t i = 0; i < count && status != WF_OK; i++) {
    wf_hmm_alignment_free(results[i]);
    results[i] = NULL;
  }
  return status;
}
