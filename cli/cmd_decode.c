/* cmd_decode.c - `warpfst decode`: decodes acoustic scores to words.
 *
 * Reads score matrices in batches of bounded size, decodes each batch on all threads or GPUs, and
 * writes the results in input order. An utterance that cannot be read or decoded is reported, and
 * decoding goes on with the next one. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aligner_source.h"
#include "audio_files.h"
#include "base/platform.h"
#include "boosts.h"
#include "columns.h"
#include "decode_chunks.h"
#include "decode_run.h"
#include "lm_report.h"
#include "nbest_output.h"
#include "rnnlm_scorer.h"
#include "time_note.h"
#include "word_lists.h"

enum { BATCH_BYTES = 256 << 20, GPU_BATCH_BYTES = 2000 << 20, MAX_FLAGS = 5 };

/* --- graph, tables, files ---------------------------------------------------------------- */

static wf_status no_memory(wf_error *err, const char *what) {
  err->code = WF_ERR_MEMORY;
  snprintf(err->message, sizeof err->message, "out of memory for %s", what);
  return WF_ERR_MEMORY;
}

/* Reads the columns and creates the graph. An error in the fst becomes WF_ERR_FORMAT and names the
 * file. */
static wf_status make_graph(struct decode_run *run, const char *path, wf_error *err) {
  column_table columns = {0};
  wf_error why = {0};
  wf_status status = columns_find(run->columns_path, run->aligner.am.path, path, &columns, err);
  if (status == WF_OK) {
    status = wf_graph_create(run->fst, columns.data, columns.size, &run->graph, &why);
    *err = why;
  }
  free(columns.data);
  if (why.code == WF_OK) return status;
  if (status == WF_ERR_ARGUMENT) status = WF_ERR_FORMAT;
  err->code = status;
  snprintf(err->message, sizeof err->message, "%.300s: %.600s", path, why.message);
  return status;
}

static wf_status make_decoder(struct decode_run *run, wf_error *err) {
  wf_transducer_options options;
  wf_transducer *model;
  if (run->transducer_path == NULL)
    return wf_decoder_create(run->graph, &run->decoder_options, &run->decoder, err);
  wf_transducer_options_init(&options);
  options.blank = run->decoder_options.blank;
  wf_status status = wf_transducer_open(run->transducer_path, &options, &model, err);
  if (status == WF_OK)
    status =
        wf_decoder_create_transducer(run->graph, model, &run->decoder_options, &run->decoder, err);
  wf_transducer_free(model);
  return status;
}

/* Adds a scorer to those of every utterance; takes it over. */
static wf_status chain_scorer(struct decode_run *run, wf_scorer *scorer, wf_error *err) {
  wf_scorer *both = scorer;
  wf_status status = WF_OK;
  if (run->lm != NULL) {
    status = wf_scorer_chain(run->lm, scorer, &both, err);
    wf_scorer_free(scorer);
  }
  if (status != WF_OK) return status;
  wf_scorer_free(run->lm);
  run->lm = both;
  return wf_decoder_set_scorer(run->decoder, run->lm, err);
}

/* Adds a large n-gram model as a scorer of every word. Without a symbol table, the graph's output
 * labels are the model's own word ids. */
static wf_status add_lm(struct decode_run *run, const char *path,
                        const wf_ngram_scorer_options *options, wf_error *err) {
  wf_lm *lm;
  wf_scorer *scorer = NULL;
  wf_status status = wf_lm_open_mapped(path, &lm, err);
  if (status == WF_OK && run->lm_table) status = wf_lm_make_table(lm, NULL, err);
  if (status == WF_OK) status = wf_scorer_from_lm(lm, run->words, options, &scorer, err);
  if (status == WF_OK) status = chain_scorer(run, scorer, err);
  wf_lm_free(lm);
  return status;
}

/* Adds the model whose costs are subtracted. */
static wf_status add_subtracted_lm(struct decode_run *run, wf_error *err) {
  wf_ngram_scorer_options options = run->scorer_options;
  options.lm_scale = -(float)run->lm_subtract_scale;
  return add_lm(run, run->lm_subtract_path, &options, err);
}

static wf_status add_rnnlm(struct decode_run *run, wf_error *err) {
  wf_status status = rnnlm_scorer_open(&run->rnnlm, run->words, err);
  return status == WF_OK ? chain_scorer(run, wf_scorer_ref(run->rnnlm.scorer), err) : status;
}

/* n-gram model, subtracted model, recurrent model, in this order. */
static wf_status add_scorers(struct decode_run *run, wf_error *err) {
  wf_status status = WF_OK;
  if (run->lm_path != NULL) status = add_lm(run, run->lm_path, &run->scorer_options, err);
  if (status == WF_OK && run->lm_subtract_path != NULL) status = add_subtracted_lm(run, err);
  if (status == WF_OK && run->rnnlm.path != NULL) status = add_rnnlm(run, err);
  return status;
}

static wf_status open_all(struct decode_run *run, char **args, int num_args, wf_error *err) {
  wf_status status = wf_fst_read(args[0], &run->fst, err);
  if (status == WF_OK && run->words_path != NULL)
    status = wf_symbols_read(run->words_path, &run->words, err);
  if (status == WF_OK && run->words == NULL && wf_fst_osymbols(run->fst) != NULL)
    run->words = wf_symbols_ref(wf_fst_osymbols(run->fst));
  if (status == WF_OK) status = aligner_attach(&run->aligner, run->words, &run->fst, err);
  if (status == WF_OK) status = make_graph(run, args[0], err);
  if (status == WF_OK) status = make_decoder(run, err);
  if (status == WF_OK &&
      (run->added_request.all_path != NULL || run->added_request.each_path != NULL))
    status = added_read(&run->added_request, run->graph, &run->words, &run->added, err);
  if (status == WF_OK && run->joiner.joins)
    status = token_joiner_prepare(&run->joiner, run->words, err);
  if (status == WF_OK) status = add_scorers(run, err);
  const boost_target target = {run->words, run->fst != NULL ? wf_fst_isymbols(run->fst) : NULL,
                               run->joiner.joiner, (float)run->boost_per_letter};
  if (status == WF_OK && (run->boost_path != NULL || run->boosts_path != NULL))
    status = boosts_read(run->boost_path, run->boosts_path, &target, run->lm, &run->boosts, err);
  if (status == WF_OK && run->reference != NULL)
    status = wf_transcripts_read(run->reference, WF_TRANSCRIPT_AUTO, &run->references, err);
  if (status == WF_OK && run->reference != NULL) status = wf_wer_create(NULL, &run->wer, err);
  if (status == WF_OK)
    status = wf_score_reader_open((const char *const *)args + 1, (size_t)num_args - 1,
                                  &run->reader_options, &run->reader, err);
  if (status == WF_OK)
    status = wf_result_writer_open(run->output, &run->writer_options, &run->writer, err);
  if (status == WF_OK) status = decode_lattices_prepare(&run->lattices, run->decoder, err);
  if (status == WF_OK)
    status =
        decode_lattices_open(&run->lattices, &run->writer_options, (size_t)run->max_batch, err);
  size_t n = (size_t)run->max_batch;
  run->matrices = calloc(n, sizeof *run->matrices);
  run->errors = calloc(n, sizeof *run->errors);
  run->utterances = calloc(n, sizeof *run->utterances);
  run->results = calloc(n, sizeof *run->results);
  bool complete = run->matrices != NULL && run->errors != NULL && run->utterances != NULL &&
                  run->results != NULL;
  if (status == WF_OK && !complete) status = no_memory(err, "a batch");
  return status;
}

/* Reads up to max_batch utterances or most_bytes. Returns false at the end of the input with
 * nothing read. */
static bool read_batch(struct decode_run *run) {
  uint64_t bytes = 0;
  run->size = 0;
  run->fraction[0] = wf_score_reader_fraction(run->reader);
  while (run->size < (size_t)run->max_batch && bytes < run->most_bytes) {
    wf_matrix *matrix = &run->matrices[run->size];
    wf_error *err = &run->errors[run->size];
    bool done = false;
    *matrix = (wf_matrix){0};
    *err = (wf_error){0};
    wf_status status = wf_score_reader_next(run->reader, matrix, &done, err);
    if (done) break;
    if (status != WF_OK) {
      bool lost = wf_score_reader_lost_rest(run->reader);
      run->lost_rest = run->lost_rest || lost;
      cli_note("%s%s", err->message, lost ? "; the rest of that archive is lost" : "");
    }
    run->utterances[run->size] = (wf_utterance){0};
    if (status == WF_OK)
      run->utterances[run->size].scores = (wf_scores){.data = matrix->data,
                                                      .num_frames = matrix->num_frames,
                                                      .num_columns = matrix->num_columns,
                                                      .stride = matrix->num_columns};
    bytes += (uint64_t)run->utterances[run->size].scores.num_frames *
             (uint64_t)run->utterances[run->size].scores.num_columns * sizeof(float);
    run->size++;
  }
  run->fraction[1] = wf_score_reader_fraction(run->reader);
  return run->size > 0;
}

static const char *word_text(const struct decode_run *run, int32_t label, char *scratch,
                             size_t size) {
  const char *text = run->words != NULL ? wf_symbols_text(run->words, label) : NULL;
  if (text != NULL) return text;
  snprintf(scratch, size, "%d", label);
  return scratch;
}

/* Adds the utterance to the word error rate, if there are references. A failed utterance counts as
 * an empty hypothesis, as in `warpfst score`. */
static wf_status add_to_wer(struct decode_run *run, const wf_hypothesis *hypothesis,
                            wf_error *err) {
  if (run->wer == NULL) return WF_OK;
  int64_t at = wf_transcripts_find(run->references, hypothesis->key);
  if (at < 0) {
    run->num_missing++;
    return WF_OK;
  }
  const char **texts = malloc((hypothesis->num_words + 1) * sizeof *texts);
  if (texts == NULL) return no_memory(err, "the words of a result");
  for (size_t i = 0; i < hypothesis->num_words; i++) texts[i] = hypothesis->words[i].text;
  wf_transcript reference = wf_transcripts_at(run->references, (size_t)at),
                said = {hypothesis->key, texts, hypothesis->num_words};
  wf_status status = wf_wer_add(run->wer, &reference, &said, NULL, err);
  free(texts);
  return status;
}

static void add_to_sums(struct decode_run *run, const wf_result *result) {
  run->num_utterances++;
  run->num_not_final += (result->flags & WF_RESULT_NOT_FINAL) != 0;
  run->num_narrowed += (result->flags & (WF_RESULT_NARROWED | WF_RESULT_OVERFLOW)) != 0;
  run->num_overflowed += (result->flags & WF_RESULT_OVERFLOW) != 0;
  run->num_died += (result->flags & WF_RESULT_DIED) != 0;
  run->num_frames += result->num_decoded;
  run->num_tokens += result->num_tokens;
  run->num_arcs += result->num_arcs;
  if (result->lattice == NULL) return;
  wf_lattice_view lattice = wf_lattice_get_view(result->lattice);
  run->lattice_states += lattice.num_states;
  run->lattice_arcs += lattice.num_arcs;
  for (uint64_t a = 0; a < lattice.num_arcs; a++)
    run->lattice_emitting += lattice.arcs[a].ilabel != 0;
}

/* Adds a hypothesis to the word error rate and writes it to the outputs. */
static wf_status put_hypothesis(struct decode_run *run, const wf_hypothesis *hypothesis,
                                wf_error *err) {
  wf_hypothesis joined = *hypothesis;
  void *memory = NULL;
  wf_status status =
      run->joiner.joins ? token_join(&run->joiner, hypothesis, &joined, &memory, err) : WF_OK;
  if (status == WF_OK) status = add_to_wer(run, &joined, err);
  if (status == WF_OK) status = wf_result_writer_put(run->writer, &joined, err);
  if (status == WF_OK) status = decode_lattices_put_hypothesis(&run->lattices, &joined, err);
  free(memory);
  return status;
}

/* Counts a failed utterance. Reports decoding errors; read errors were reported when they occurred.
 * Writes an empty hypothesis if the key is known. */
static wf_status put_failure(struct decode_run *run, const char *key, const wf_error *read_error,
                             const wf_result *result, wf_error *err) {
  wf_hypothesis hypothesis = {
      .key = key, .error = read_error->code != WF_OK ? read_error->message : result->message};
  run->num_failed++;
  run->no_memory = run->no_memory ||
                   (read_error->code != WF_OK ? read_error->code : result->status) == WF_ERR_MEMORY;
  if (read_error->code == WF_OK) cli_note("utterance '%s': %s", key, result->message);
  return key != NULL ? put_hypothesis(run, &hypothesis, err) : WF_OK;
}

/* The word aligner of utterance i's graph; NULL: none. */
static const wf_word_aligner *aligner_of(const struct decode_run *run, size_t i) {
  return wf_graph_word_aligner(run->utterances[i].graph != NULL ? run->utterances[i].graph
                                                                : run->graph);
}

/* Writes the hypothesis, with the n best word sequences as alternatives if they are requested. */
static wf_status put_with_nbest(struct decode_run *run, size_t i, wf_hypothesis *hypothesis,
                                wf_error *err) {
  decode_nbest nbest;
  wf_status status = decode_lattices_nbest(&run->lattices, i, run->results[i], &run->joiner,
                                           run->words, &nbest, err);
  if (status != WF_OK || nbest.list == NULL)
    return status == WF_OK ? put_hypothesis(run, hypothesis, err) : status;
  size_t count = nbest.count, num_words = 0, at = 0;
  for (size_t k = 0; k < count; k++) num_words += nbest.paths[k].num_words;
  wf_alternative *alternatives = malloc((count + 1) * sizeof *alternatives);
  wf_timed_word *words = malloc((num_words + 1) * sizeof *words);
  char(*scratch)[12] = malloc((num_words + 1) * sizeof *scratch);
  if (alternatives == NULL || words == NULL || scratch == NULL)
    status = no_memory(err, "alternatives");
  for (size_t k = 0; k < count && status == WF_OK; k++) {
    wf_lattice_path path = nbest.paths[k];
    alternatives[k] =
        (wf_alternative){words + at, path.num_words, path.graph_cost + path.acoustic_cost,
                         path.graph_cost, path.acoustic_cost};
    status = nbest_words(&path, aligner_of(run, i), run->words, words + at, scratch + at, err);
    at += path.num_words;
  }
  hypothesis->alternatives = alternatives;
  hypothesis->num_alternatives = count;
  if (status == WF_OK) status = put_hypothesis(run, hypothesis, err);
  free(alternatives);
  free(words);
  free(scratch);
  decode_nbest_free(&nbest);
  return status;
}

static wf_status put_words(struct decode_run *run, size_t i, const wf_result *result,
                           wf_error *err) {
  static const struct {
    uint32_t bit;
    const char *name;
  } names[MAX_FLAGS - 1] = {{WF_RESULT_NOT_FINAL, "not_final"},
                            {WF_RESULT_NARROWED, "narrowed"},
                            {WF_RESULT_OVERFLOW, "overflow"},
                            {WF_RESULT_DIED, "died"}};
  const char *flags[MAX_FLAGS]; /* names of set bits, and "times_estimated" */
  wf_timed_word *words = malloc((result->num_words + 1) * sizeof *words);
  char(*scratch)[12] = malloc((result->num_words + 1) * sizeof *scratch);
  wf_status status =
      words != NULL && scratch != NULL ? WF_OK : no_memory(err, "the words of a result");
  for (size_t w = 0; w < result->num_words && status == WF_OK; w++) {
    const wf_word *word = &result->words[w];
    words[w] = (wf_timed_word){word_text(run, word->label, scratch[w], sizeof *scratch),
                               word->start_frame, word->end_frame, -1};
  }
  if (status == WF_OK) status = decode_lattices_confidences(&run->lattices, i, result, words, err);
  wf_hypothesis hypothesis = {.key = run->matrices[i].key,
                              .words = words,
                              .num_words = result->num_words,
                              .num_frames = result->num_frames,
                              .cost = result->cost,
                              .graph_cost = result->graph_cost,
                              .acoustic_cost = result->acoustic_cost,
                              .scorer_cost = result->scorer_cost,
                              .flags = flags};
  for (int f = 0; f < MAX_FLAGS - 1; f++)
    if (result->flags & names[f].bit) flags[hypothesis.num_flags++] = names[f].name;
  if (result->num_estimated > 0) flags[hypothesis.num_flags++] = "times_estimated";
  if (status == WF_OK) status = put_with_nbest(run, i, &hypothesis, err);
  free(words);
  free(scratch);
  return status;
}

static wf_status put_batch(struct decode_run *run, wf_error *err) {
  wf_status status = WF_OK;
  if (run->results_on_screen) cli_progress_end();
  for (size_t i = 0; i < run->size && status == WF_OK; i++) {
    const wf_result *result = run->results[i];
    char *key = run->matrices[i].key;
    if (run->errors[i].code != WF_OK || result->status != WF_OK) {
      status = put_failure(run, key, &run->errors[i], result, err);
    } else {
      add_to_sums(run, result);
      decode_lattices_check(&run->lattices, i, key);
      status = put_words(run, i, result, err);
      if (status == WF_OK)
        status =
            decode_lattices_put_lattice(&run->lattices, i, key, result, aligner_of(run, i), err);
    }
  }
  return status;
}

/* Progress callback of a batch: converts the fraction of the batch to the fraction of the whole
 * input. */
static bool show_progress(void *user, const char *stage, double fraction) {
  const struct decode_run *run = user;
  char text[64];
  uint64_t done = run->num_utterances + run->num_failed + (uint64_t)(fraction * (double)run->size);
  snprintf(text, sizeof text, "%s, %llu utterance%s", stage, (unsigned long long)done, cli_s(done));
  bool known = run->fraction[0] >= 0 && run->fraction[1] >= run->fraction[0];
  return run->progress.fn(
      run->progress.user, text,
      known ? run->fraction[0] + fraction * (run->fraction[1] - run->fraction[0]) : -1);
}

static wf_status decode_batch(struct decode_run *run, const wf_progress *progress, wf_error *err) {
  for (size_t i = 0; i < run->size && run->boosts != NULL; i++)
    run->utterances[i].scorer = boosts_for(run->boosts, run->matrices[i].key);
  for (size_t i = 0; i < run->size && run->added != NULL; i++)
    run->utterances[i].graph = added_for(run->added, run->matrices[i].key);
  if (run->chunk_s <= 0)
    return wf_decode(run->decoder, run->utterances, run->size, progress, run->results, err);
  double frames = run->chunk_s / (double)run->writer_options.frame_shift;
  int64_t num_frames = frames < 1 ? 1 : frames < 1e9 ? (int64_t)(frames + 0.5) : 1000000000;
  return decode_in_chunks(run->decoder, run->utterances, run->size, num_frames, run->results, err);
}

static wf_status decode_all(struct decode_run *run, wf_error *err) {
  wf_status status = WF_OK;
  wf_progress progress = {run->progress.fn != NULL ? show_progress : NULL, run};
  while (status == WF_OK && read_batch(run)) {
    double start = cli_now_s();
    status = decode_batch(run, &progress, err);
    run->decode_s += cli_now_s() - start;
    if (status == WF_OK)
      status = decode_lattices_batch(&run->lattices, run->results, run->size, err);
    if (status == WF_OK) status = put_batch(run, err);
    decode_lattices_clear(&run->lattices);
    for (size_t i = 0; i < run->size; i++) {
      wf_result_free(run->results[i]);
      wf_matrix_clear(&run->matrices[i]);
    }
  }
  return status;
}

static void close_all(struct decode_run *run) {
  wf_result_writer_abort(run->writer);
  decode_lattices_free(&run->lattices);
  wf_score_reader_free(run->reader);
  wf_decoder_free(run->decoder);
  wf_token_joiner_free(run->joiner.joiner);
  wf_graph_free(run->graph);
  wf_fst_free(run->fst);
  wf_symbols_free(run->words);
  wf_transcripts_free(run->references);
  wf_wer_free(run->wer);
  free(run->matrices);
  free(run->errors);
  free(run->utterances);
  free(run->results);
  added_free(run->added);
  boosts_free(run->boosts);
  wf_scorer_free(run->lm);
  rnnlm_scorer_free(&run->rnnlm);
}

/* Standard output that is not a plain file may end up on the terminal: it is the terminal itself,
 * or a pipe to a pager. */
static bool is_plain_file(int fd) {
  uint64_t size;
  return wf__file_kind_of(fd, &size) == WF__FILE_REGULAR;
}

static const cli_rule rules[] = {
    {"columns", CLI_EXCLUDES, "am"},
    {"quiet", CLI_EXCLUDES, "json"},
    {"channel", CLI_USELESS_WITHOUT, "format=ctm|ctm"},
    {"lm-table", CLI_USELESS_WITHOUT, "lm|lm-subtract"},
    {"lm-scale", CLI_USELESS_WITHOUT, "lm"},
    {"placement", CLI_USELESS_WITHOUT, "lm|lm-subtract"},
    {"lm-subtract-scale", CLI_USELESS_WITHOUT, "lm-subtract"},
    {"lm-gpu-bytes", CLI_USELESS_WITHOUT, "placement=hybrid"},
    {"gpu-memory", CLI_USELESS_WITHOUT, "device"},
    {"recombine", CLI_USELESS_WITHOUT, "lm|lm-subtract|rnnlm|boost|utterance-boosts"},
    {"separator", CLI_USELESS_WITHOUT, "join"},
    {"max-hypotheses", CLI_USELESS_WITHOUT, "transducer"},
    {"max-symbols", CLI_USELESS_WITHOUT, "transducer"},
    {"greedy", CLI_USELESS_WITHOUT, "transducer"},
    {"boost-per-letter", CLI_USELESS_WITHOUT, "boost|utterance-boosts"},
    {NULL, 0, NULL},
};

int cmd_decode(int argc, char **argv) {
  struct decode_run run = {
      .output = "-", .max_batch = 1024, .boost_per_letter = (double)NAN, .lm_subtract_scale = 1};
  cli_parser parser = {
      .usage = "GRAPH SCORES... [--words words.txt] [-o OUT]",
      .about =
          "Decodes acoustic scores (Kaldi archives or scp, .npy or .sen files, folders of these, "
          "or "
          "'-' for standard input) with a decoding graph, and writes words.\n"
          "Prints a summary on standard error: utterances, hours, RTFx (seconds of audio per "
          "second "
          "of decoding), frames per second, tokens per frame.\n"
          "Exit code 1: some utterances failed. Exit code 3: the rest of an archive could not be "
          "read. Examples:\n"
          "  warpfst decode TLG.wfst logp/ --words words.txt --acoustic-scale=0.7\n"
          "  warpfst decode HCLG.fst scores.scp --words words.txt --format=ctm -o out.ctm --ref "
          "text\n"
          "  warpfst decode TLG.wfst logp/ --words words.txt --lattice=lat.ark --nbest=10 "
          "--ctm=out.ctm --json-lines=out.jsonl\n"
          "  warpfst decode TLG.wfst logp/ --frame-shift=0.04 --format=srt -o captions/\n"
          "  warpfst decode TLG.wfst logp/ --words words.txt --device=cuda:0,1",
      .min_args = 2,
      .max_args = -1};
  cli_flag_str(&parser, "output", 'o', &run.output, "FILE",
               "where to write results ('-': standard output, the default)");
  cli_flag_str(&parser, "words", 'w', &run.words_path, "FILE",
               "symbol table of the words (default: the graph's own, else numbers)");
  cli_flag_str(
      &parser, "columns", 0, &run.columns_path, "FILE",
      "`label column` lines (default: GRAPH.columns if it exists, else column = label - 1)");
  cli_flag_str(&parser, "am", 0, &run.aligner.am.path, "MODEL",
               "take the score column of each label from this acoustic model; with Kaldi's "
               "HCLG.fst: the final.mdl of the model that computed the scores");
  cli_flag_str(
      &parser, "transducer", 0, &run.transducer_path, "FILE",
      "a transducer's predictor and joiner (.safetensors): SCORES are encoder outputs, and "
      "the graph has topology transducer");
  aligner_decode_flags(&parser, &run.aligner);
  cli_flag_str(
      &parser, "ref", 0, &run.reference, "FILE",
      "reference words, lines `id word word ...`; adds the word error rate to the summary");
  decode_lattices_flags(&parser, &run.lattices);
  cli_flag_i64(
      &parser, "batch", 0, &run.max_batch, "N",
      "utterances per batch (default: 1024, with at most 256 MB of scores, or 2 GB on a GPU)");
  cli_flag_str(
      &parser, "boost", 0, &run.boost_path, "FILE",
      "phrases to favour, lines `word word ... [boost]`: the boost is for the whole phrase, "
      "in nats, and should be at most about beam / 2; without it, see --boost-per-letter");
  cli_flag_str(
      &parser, "utterance-boosts", 0, &run.boosts_path, "FILE",
      "lines `utterance FILE`: a list of boosts for each utterance, in addition to --boost");
  cli_flag_f64(
      &parser, "boost-per-letter", 0, &run.boost_per_letter, "NATS",
      "boost of a phrase that is listed without one, for each letter (of each word, at most "
      "12; default: 0.6, and 1 for phrases of two words or more)");
  added_flags(&parser, &run.added_request);
  token_joiner_flags(&parser, &run.joiner);
  cli_flag_f64(&parser, "chunk", 0, &run.chunk_s, "SECONDS",
               "decode as streams, in chunks of this many seconds (converted to frames with "
               "--frame-shift); same results (default: 0, whole utterances)");
  cli_flag_str(
      &parser, "lm", 0, &run.lm_path, "FILE",
      "n-gram model or difference of two: its cost is added to each word during the "
      "search. A .wlm file of 'warpfst lm convert', which opens at once, or ARPA, KenLM's trie "
      "or CMU Sphinx's");
  cli_flag_str(&parser, "lm-subtract", 0, &run.lm_subtract_path, "FILE",
               "n-gram model, as for --lm, whose cost is subtracted from each word's: a low-order "
               "model of the training transcripts, in place of a transducer's internal "
               "language model");
  cli_flag_f64(&parser, "lm-subtract-scale", 0, &run.lm_subtract_scale, "FACTOR",
               "factor on the costs of --lm-subtract (default: 1)");
  cli_flag_bool(&parser, "lm-table", 0, &run.lm_table,
                "on a CPU: build an in-memory table of the n-grams (21 bytes each) for faster "
                "look-ups; same results");
  cli_flag_bool(&parser, "json", 0, &run.json, "print the summary as JSON");
  cli_flag_str(&parser, "summary", 0, &run.summary_path, "FILE",
               "also write the summary as JSON to this file");
  cli_flag_bool(&parser, "quiet", 'q', &run.quiet, "do not print the summary or the progress bar");
  cli_table(&parser, "decoder", &run.decoder_options);
  cli_table(&parser, "ngram_scorer", &run.scorer_options);
  rnnlm_scorer_flags(&parser, &run.rnnlm);
  cli_table(&parser, "score_reader", &run.reader_options);
  cli_table(&parser, "result_writer", &run.writer_options);
  cli_flag_range(&parser, "batch", 1, 1 << 20);
  cli_flag_range(&parser, "chunk", 0, 1e9);
  cli_flag_range(&parser, "lm-subtract-scale", 0, 1e6);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  code = refuse_audio(parser.args, parser.num_args);
  if (code >= 0) return code;
  decode_lattices_finish(&run.lattices, run.transducer_path != NULL, &run.decoder_options);
  wf_error err = {0};
  run.progress = cli_progress(run.quiet);
  run.most_bytes =
      run.decoder_options.device != NULL && strncmp(run.decoder_options.device, "cuda", 4) == 0
          ? GPU_BATCH_BYTES
          : BATCH_BYTES;
  run.results_on_screen = strcmp(run.output, "-") == 0 && !is_plain_file(WF__STDOUT);
  wf_status status = open_all(&run, parser.args, parser.num_args, &err);
  if (status == WF_OK)
    cli_note_times(&parser, &run.writer_options, wf_graph_word_aligner(run.graph) == NULL);
  if (status == WF_OK) status = decode_all(&run, &err);
  if (status == WF_OK) {
    status = wf_result_writer_close(run.writer, &err);
    run.writer = NULL;
  }
  if (status == WF_OK) status = decode_lattices_close(&run.lattices, &err);
  if (status == WF_OK) status = decode_report_summary(&run, &err);
  if (status != WF_OK) {
    err.code = status;
    code = cli_fail(&err);
  } else {
    code = cli_failure_code(run.num_failed + run.lattices.num_failed, run.lost_rest,
                            run.no_memory || run.lattices.no_memory);
  }
  close_all(&run);
  return code;
}
