/* cmd_align.c - `warpfst align`: times of the words, tokens or phones of known transcripts in the
 * scores of CTC or hybrid models. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "am_model.h"
#include "base/platform.h"
#include "cli.h"
#include "commands.h"
#include "summary.h"
#include "time_note.h"

struct run {
  const char *tokens_path, *text_path, *lexicon_path, *separator, *output, *textgrid;
  am_source am;
  bool units; /* write tokens or phones in place of words */
  wf_lexicon_options lexicon_options;
  wf_align_options options;
  wf_hmm_align_options hmm_options;
  double garbage, skip_words; /* costs, as in the options */
  wf_score_reader_options reading;
  wf_result_writer_options writing;
  wf_symbols *tokens, *words;
  wf_transcripts *text;
  wf_hmm *hmm; /* NULL: a CTC model */
  wf_lexicon *lexicon;
  const wf_pronunciation **first; /* [words] best pronunciation of each; NULL: none */
  wf_pronunciation *pronunciations;
  int32_t separator_column; /* -1: none */
  wf_score_reader *reader;
  wf_result_writer *writer;
  cli_summary summary;
  uint64_t num_aligned, num_failed, num_left_out, num_unspelled;
  bool lost_rest, no_memory;
};

static wf_status fail(wf_error *err, wf_status code, const char *text, const char *name) {
  err->code = code;
  snprintf(err->message, sizeof err->message, "%s%s", text, name);
  return code;
}

/* --- words and their tokens -------------------------------------------------------------- */

static wf_status collect_words(struct run *run, wf_error *err) {
  wf_status status = wf_symbols_create(run->text_path, &run->words, err);
  for (size_t i = 0; i < wf_transcripts_count(run->text); i++) {
    wf_transcript t = wf_transcripts_at(run->text, i);
    for (size_t w = 0; w < t.num_words && status == WF_OK; w++)
      if (wf_symbols_find(run->words, t.words[w]) < 0)
        status = wf_symbols_add(run->words, t.words[w], -1, NULL, err);
  }
  return status;
}

/* Finds each word's most probable pronunciation, the first among equals. */
static wf_status index_words(struct run *run, wf_error *err) {
  size_t count = wf_lexicon_count(run->lexicon);
  run->pronunciations = malloc((count + 1) * sizeof *run->pronunciations);
  run->first = calloc(wf_symbols_count(run->words) + 1, sizeof *run->first);
  if (run->pronunciations == NULL || run->first == NULL)
    return fail(err, WF_ERR_MEMORY, "out of memory", "");
  for (size_t i = 0; i < count; i++) {
    const wf_pronunciation *p = &run->pronunciations[i];
    run->pronunciations[i] = wf_lexicon_at(run->lexicon, i);
    int64_t word = wf_symbols_find(run->words, p->word);
    if (word >= 0 && (run->first[word] == NULL || p->prob > run->first[word]->prob))
      run->first[word] = p;
  }
  return WF_OK;
}

static wf_status open_ctc(struct run *run, wf_error *err) {
  wf_status status = wf_symbols_read(run->tokens_path, &run->tokens, err);
  if (status == WF_OK)
    status = wf_token_blank(run->tokens, run->lexicon_options.blank, &run->options.blank, err);
  run->separator_column = -1;
  if (status == WF_OK && run->separator != NULL)
    status = wf_token_blank(run->tokens, run->separator, &run->separator_column, err);
  if (status == WF_OK) status = collect_words(run, err);
  wf_lexicon_options spelling = run->lexicon_options;
  spelling.unknown = WF_UNKNOWN_SKIP; /* find_tokens reports these words */
  if (status == WF_OK)
    status = run->lexicon_path != NULL
                 ? wf_lexicon_read(run->lexicon_path, run->tokens, &run->lexicon_options,
                                   &run->lexicon, err)
                 : wf_lexicon_spell(run->words, run->tokens, &spelling, &run->lexicon, err);
  return status == WF_OK ? index_words(run, err) : status;
}

static wf_status open_hybrid(struct run *run, wf_error *err) {
  run->lexicon_options.blank = "";
  run->lexicon_options.variants = true;
  wf_status status = am_read(&run->am, true, &run->hmm, err);
  if (status != WF_OK) return status;
  return wf_lexicon_read(run->lexicon_path, wf_hmm_phones(run->hmm), &run->lexicon_options,
                         &run->lexicon, err);
}

static wf_status open_all(struct run *run, char **sources, int num_sources, wf_error *err) {
  wf_status status = wf_transcripts_read(run->text_path, WF_TRANSCRIPT_AUTO, &run->text, err);
  if (status == WF_OK) status = run->am.path != NULL ? open_hybrid(run, err) : open_ctc(run, err);
  if (status == WF_OK)
    status = wf_score_reader_open((const char *const *)sources, (size_t)num_sources, &run->reading,
                                  &run->reader, err);
  if (status == WF_OK && run->textgrid != NULL && wf__path_make_folder(run->textgrid) != 0 &&
      errno != EEXIST) {
    snprintf(err->message, sizeof err->message, "%s: %s", run->textgrid, strerror(errno));
    status = err->code = WF_ERR_IO;
  }
  if (status == WF_OK)
    status = wf_result_writer_open(run->output, &run->writing, &run->writer, err);
  return status;
}

/* --- an utterance ------------------------------------------------------------------------ */

/* The tokens of a transcript. The tokens of word w end at ends[w]. The separator before a word is
 * one of its tokens. A word without pronunciation has one token, a star: one of the two columns
 * after the last one of the model, for any speech. Two, because equal tokens in a row need a blank
 * between them. */
struct targets {
  int32_t *columns;
  size_t *ends;
  size_t size;
  const char *unspelled; /* the first word without pronunciation; NULL: none */
};
static const char star[] = "<star>";

static wf_status find_tokens(const struct run *run, const wf_transcript *text, int32_t num_columns,
                             struct targets *out, wf_error *err) {
  size_t most = 0;
  for (size_t w = 0; w < text->num_words; w++) {
    const wf_pronunciation *p = run->first[wf_symbols_find(run->words, text->words[w])];
    most += p != NULL ? p->num_labels + 1 : 2;
  }
  out->columns = malloc((most + 1) * sizeof *out->columns);
  out->ends = malloc((text->num_words + 1) * sizeof *out->ends);
  if (out->columns == NULL || out->ends == NULL)
    return fail(err, WF_ERR_MEMORY, "out of memory", "");
  for (size_t w = 0; w < text->num_words; w++) {
    const wf_pronunciation *p = run->first[wf_symbols_find(run->words, text->words[w])];
    if (w > 0 && run->separator_column >= 0) out->columns[out->size++] = run->separator_column;
    if (p == NULL) {
      bool again = out->size > 0 && out->columns[out->size - 1] == num_columns;
      out->columns[out->size++] = num_columns + again;
      if (out->unspelled == NULL) out->unspelled = text->words[w];
    }
    for (size_t i = 0; p != NULL && i < p->num_labels; i++)
      out->columns[out->size++] = p->labels[i] - 1;
    out->ends[w] = out->size;
  }
  return WF_OK;
}

static wf_timed_word timed(const char *text, const wf_aligned_token *first, size_t count) {
  float sum = 0;
  int32_t frames = 0;
  for (size_t i = 0; i < count; i++) {
    sum += first[i].log_prob;
    frames += first[i].end_frame - first[i].start_frame;
  }
  float confidence = expf(sum / (float)frames);
  return (wf_timed_word){text, first->start_frame, first[count - 1].end_frame,
                         confidence < 1 ? confidence : 1};
}

/* Adds the columns of stars: the best token of the frame that is speech. It costs a little, so
 * that the words beside it keep their frames. */
static wf_status add_star(const struct run *run, wf_matrix *m, wf_error *err) {
  static const float cost = 0.1f; /* nats a frame */
  size_t columns = (size_t)m->num_columns, frames = (size_t)m->num_frames;
  float *wider = malloc((frames * (columns + 2) + 1) * sizeof *wider);
  if (wider == NULL) return fail(err, WF_ERR_MEMORY, "out of memory", "");
  for (size_t t = 0; t < frames; t++) {
    const float *from = m->data + t * columns;
    float *to = wider + t * (columns + 2), best = -INFINITY;
    memcpy(to, from, columns * sizeof *to);
    for (size_t c = 0; c < columns; c++)
      if ((int32_t)c != run->options.blank && (int32_t)c != run->separator_column && from[c] > best)
        best = from[c];
    to[columns] = to[columns + 1] = best - cost;
  }
  free(m->data);
  m->data = wider;
  m->num_columns += 2;
  return WF_OK;
}

static const char *token_text(const struct run *run, int32_t column) {
  bool labels = wf_symbols_text(run->tokens, 0) != NULL &&
                strcmp(wf_symbols_text(run->tokens, 0), "<eps>") == 0;
  const char *text = wf_symbols_text(run->tokens, column + labels);
  return text != NULL ? text : star;
}

/* The words of the transcript with their times, or with `units` its tokens. Words that were left
 * out are not among them. */
static size_t fill_items(const struct run *run, bool units, const wf_transcript *text,
                         const struct targets *targets, const wf_alignment *found,
                         wf_timed_word *out) {
  size_t count = 0, num = units ? found->num_tokens : text->num_words;
  for (size_t i = 0; i < num; i++) {
    size_t first = units   ? i
                   : i > 0 ? targets->ends[i - 1]
                           : 0,
           end = units ? i + 1 : targets->ends[i];
    first += !units && i > 0 && run->separator_column >= 0;
    if (found->tokens[first].start_frame < found->tokens[first].end_frame)
      out[count++] = timed(units ? token_text(run, found->tokens[i].column) : text->words[i],
                           &found->tokens[first], end - first);
  }
  return count;
}

static wf_status write_textgrid(const struct run *run, const char *key,
                                const wf_textgrid_tier tiers[2], int64_t num_frames,
                                wf_error *err) {
  char path[4096];
  int size = snprintf(path, sizeof path, "%s/%s.TextGrid", run->textgrid, key);
  if (!wf__path_is_name(key) || size >= (int)sizeof path)
    return fail(err, WF_ERR_ARGUMENT, "no TextGrid file can have the name ", path);
  return wf_textgrid_write(path, tiers, 2, num_frames, run->writing.frame_shift, err);
}

/* What is found of an utterance. */
struct found {
  wf_textgrid_tier words, units;
  int64_t num_frames;
  double graph_cost, acoustic_cost;
};

static wf_status put(struct run *run, const wf_transcript *text, const struct found *found,
                     wf_error *err) {
  const wf_textgrid_tier tiers[2] = {found->words, found->units};
  wf_hypothesis hypothesis = {.key = text->key,
                              .words = tiers[run->units].words,
                              .num_words = tiers[run->units].num_words,
                              .num_frames = found->num_frames,
                              .cost = found->graph_cost + found->acoustic_cost,
                              .graph_cost = found->graph_cost,
                              .acoustic_cost = found->acoustic_cost};
  wf_status status = WF_OK;
  if (run->textgrid != NULL) status = write_textgrid(run, text->key, tiers, found->num_frames, err);
  if (status == WF_OK) status = wf_result_writer_put(run->writer, &hypothesis, err);
  if (status == WF_OK) run->num_left_out += text->num_words - tiers[0].num_words;
  return status;
}

static wf_status put_ctc(struct run *run, const wf_transcript *text, const struct targets *targets,
                         const wf_alignment *a, wf_error *err) {
  wf_timed_word *words = malloc((text->num_words + a->num_tokens + 1) * sizeof *words);
  if (words == NULL) return fail(err, WF_ERR_MEMORY, "out of memory", "");
  wf_timed_word *units = words + text->num_words;
  const struct found found = {{"words", words, fill_items(run, false, text, targets, a, words)},
                              {"tokens", units, fill_items(run, true, text, targets, a, units)},
                              a->num_frames,
                              0,
                              -(double)a->log_prob};
  const wf_status status = put(run, text, &found, err);
  free(words);
  return status;
}

static void fill_units(const wf_aligned_unit *units, size_t count, wf_timed_word *out) {
  for (size_t i = 0; i < count; i++)
    out[i] = (wf_timed_word){units[i].text, units[i].start_frame, units[i].end_frame, -1};
}

static wf_status put_hybrid(struct run *run, const wf_transcript *text, const wf_hmm_alignment *a,
                            wf_error *err) {
  wf_timed_word *words = malloc((a->num_words + a->num_phones + 1) * sizeof *words);
  if (words == NULL) return fail(err, WF_ERR_MEMORY, "out of memory", "");
  wf_timed_word *phones = words + a->num_words;
  fill_units(a->words, a->num_words, words);
  fill_units(a->phones, a->num_phones, phones);
  const struct found found = {{"words", words, a->num_words},
                              {"phones", phones, a->num_phones},
                              a->num_frames,
                              a->graph_cost,
                              a->acoustic_cost};
  const wf_status status = put(run, text, &found, err);
  free(words);
  return status;
}

/* --- batches ----------------------------------------------------------------------------- */

/* Utterances are aligned in batches of this size. Fewer if their scores get large. */
enum { BATCH = 256, BATCH_SCORES = 16 << 20 };

struct item {
  wf_matrix matrix;
  wf_transcript text;
  struct targets targets;
  wf_error err; /* why it is not aligned */
};

static void free_item(struct item *item) {
  wf_matrix_clear(&item->matrix);
  free(item->targets.columns);
  free(item->targets.ends);
}

static wf_scores scores_of(const wf_matrix *m) {
  return (wf_scores){m->data, m->num_frames, m->num_columns, m->num_columns, WF_FLOAT32, false,
                     {0}};
}

static void find_text(const struct run *run, struct item *item) {
  int64_t at = wf_transcripts_find(run->text, item->matrix.key);
  if (at < 0)
    fail(&item->err, WF_ERR_ARGUMENT, "no transcript in ", run->text_path);
  else
    item->text = wf_transcripts_at(run->text, (size_t)at);
}

static void prepare(const struct run *run, struct item *item, wf_align_input *input) {
  if (item->err.code == WF_OK)
    find_tokens(run, &item->text, item->matrix.num_columns, &item->targets, &item->err);
  if (item->err.code == WF_OK && item->targets.unspelled != NULL)
    add_star(run, &item->matrix, &item->err);
  *input = (wf_align_input){.key = "", /* count_item names it */
                            .scores = scores_of(&item->matrix),
                            .tokens = item->targets.columns,
                            .num_tokens = item->targets.size,
                            .word_ends = item->targets.ends,
                            .num_words = item->text.num_words};
  if (item->err.code != WF_OK) *input = (wf_align_input){0};
}

/* Counts and reports an utterance that was written or failed. Returns false on an error that ends
 * the run. */
static bool count_item(struct run *run, const struct item *item, wf_error *err) {
  if (item->err.code == WF_ERR_IO) {
    *err = item->err;
    return false;
  }
  if (item->err.code != WF_OK) cli_note("utterance '%s': %s", item->matrix.key, item->err.message);
  if (item->err.code == WF_OK && item->targets.unspelled != NULL) {
    run->num_unspelled++;
    cli_note("utterance '%s': no pronunciation of the word '%s': its time is that of any speech",
             item->matrix.key, item->targets.unspelled);
  }
  run->num_aligned += item->err.code == WF_OK;
  run->num_failed += item->err.code != WF_OK;
  run->no_memory = run->no_memory || item->err.code == WF_ERR_MEMORY;
  return true;
}

/* Takes over the error of an utterance, without the key that the library has put before it. */
static void take_error(struct item *item, wf_status status, const char *message) {
  if (item->err.code == WF_OK && status != WF_OK)
    fail(&item->err, status, message + strlen("utterance : "), "");
}

static bool align_ctc(struct run *run, struct item *items, size_t count, wf_error *err) {
  wf_align_input inputs[BATCH];
  wf_alignment *found[BATCH];
  for (size_t i = 0; i < count; i++) prepare(run, &items[i], &inputs[i]);
  bool good = wf_align(inputs, count, &run->options, found, err) == WF_OK;
  for (size_t i = 0; i < count && good; i++) {
    struct item *item = &items[i];
    take_error(item, found[i]->status, found[i]->message);
    if (item->err.code == WF_OK) put_ctc(run, &item->text, &item->targets, found[i], &item->err);
    if (item->err.code == WF_OK && found[i]->message[0] != '\0')
      cli_note("utterance '%s': %s", item->matrix.key, found[i]->message + strlen("utterance : "));
    good = count_item(run, item, err);
  }
  for (size_t i = 0; i < count; i++) wf_alignment_free(found[i]);
  return good;
}

static bool align_hybrid(struct run *run, struct item *items, size_t count, wf_error *err) {
  wf_hmm_align_input inputs[BATCH];
  wf_hmm_alignment *found[BATCH];
  for (size_t i = 0; i < count; i++)
    inputs[i] = (wf_hmm_align_input){.key = "",
                                     .scores = scores_of(&items[i].matrix),
                                     .words = items[i].text.words,
                                     .num_words = items[i].text.num_words};
  bool good =
      wf_align_hmm(run->hmm, run->lexicon, inputs, count, &run->hmm_options, found, err) == WF_OK;
  for (size_t i = 0; i < count && good; i++) {
    struct item *item = &items[i];
    take_error(item, found[i]->status, found[i]->message);
    if (item->err.code == WF_OK) put_hybrid(run, &item->text, found[i], &item->err);
    good = count_item(run, item, err);
  }
  for (size_t i = 0; i < count; i++) wf_hmm_alignment_free(found[i]);
  return good;
}

static bool align_batch(struct run *run, struct item *items, size_t count, wf_error *err) {
  for (size_t i = 0; i < count; i++) find_text(run, &items[i]);
  const bool good =
      run->hmm != NULL ? align_hybrid(run, items, count, err) : align_ctc(run, items, count, err);
  for (size_t i = 0; i < count; i++) free_item(&items[i]);
  return good;
}

/* Aligns all utterances; returns false on an error that ends the run. */
static bool align_all(struct run *run, wf_error *err) {
  for (bool done = false; !done;) {
    struct item items[BATCH];
    size_t count = 0;
    wf_status status = WF_OK;
    wf_error reading = {0};
    for (int64_t size = 0; count < BATCH && size < BATCH_SCORES; count++) {
      items[count] = (struct item){0};
      wf_matrix *matrix = &items[count].matrix;
      status = wf_score_reader_next(run->reader, matrix, &done, &reading);
      if (done || status != WF_OK) break;
      size += matrix->num_frames * matrix->num_columns;
    }
    if (status != WF_OK) wf_matrix_clear(&items[count].matrix); /* it can have a key */
    if (!align_batch(run, items, count, err)) return false;
    if (status == WF_OK) continue;
    bool lost = wf_score_reader_lost_rest(run->reader);
    cli_note("%s%s", reading.message, lost ? "; the rest of that archive is lost" : "");
    run->lost_rest = run->lost_rest || lost;
    run->num_failed++;
    run->no_memory = run->no_memory || status == WF_ERR_MEMORY;
  }
  return true;
}

static void close_all(struct run *run) {
  wf_result_writer_abort(run->writer);
  wf_score_reader_free(run->reader);
  wf_lexicon_free(run->lexicon);
  wf_hmm_free(run->hmm);
  wf_transcripts_free(run->text);
  wf_symbols_free(run->words);
  wf_symbols_free(run->tokens);
  free(run->pronunciations);
  free(run->first);
}

static const cli_rule rules[] = {
    {"spelling", CLI_USELESS_WITH, "lexicon"},
    {"word-start", CLI_USELESS_WITH, "lexicon"},
    {"merges", CLI_USELESS_WITH, "lexicon"},
    {"lexicon-format", CLI_USELESS_WITHOUT, "lexicon"},
    {"variants", CLI_USELESS_WITHOUT, "lexicon"},
    {"unknown", CLI_USELESS_WITHOUT, "lexicon"},
    {"tree", CLI_NEEDS, "am"},
    {"lang", CLI_NEEDS, "am"},
    {"beam", CLI_USELESS_WITHOUT, "am"},
    {"silence-prob", CLI_USELESS_WITHOUT, "am"},
    {"self-loop-scale", CLI_USELESS_WITHOUT, "am"},
    {"tokens", CLI_USELESS_WITH, "am"},
    {"blank", CLI_USELESS_WITH, "am"},
    {"variants", CLI_USELESS_WITH, "am"},
    {"separator", CLI_USELESS_WITH, "am"},
    {"garbage", CLI_USELESS_WITH, "am"},
    {"skip-words", CLI_USELESS_WITH, "am"},
    CLI_SUMMARY_RULE,
    {NULL, 0, NULL},
};

static void add_flags(cli_parser *parser, struct run *run) {
  cli_flag_str(parser, "tokens", 0, &run->tokens_path, "FILE",
               "CTC models: token table, lines `token column` (required without --am)");
  cli_flag_str(parser, "am", 0, &run->am.path, "MODEL",
               "hybrid models: model folder of CMU Sphinx, Kaldi's final.mdl or its folder");
  am_flags(parser, &run->am);
  cli_flag_str(parser, "text", 0, &run->text_path, "FILE",
               "transcripts: Kaldi text, sclite trn, CTM or JSON lines (required)");
  cli_flag_str(
      parser, "lexicon", 0, &run->lexicon_path, "FILE",
      "lexicon.txt or lexiconp.txt. CTC models: of several pronunciations, the most probable or "
      "the first is aligned (default: words are spelled with the tokens). With --am: "
      "required; all pronunciations are allowed");
  cli_flag_str(parser, "separator", 0, &run->separator, "TOKEN",
               "token between words, such as | (default: none)");
  cli_flag_bool(parser, "units", 0, &run->units, "write tokens or phones in place of words");
  cli_flag_str(parser, "output", 'o', &run->output, "FILE",
               "where to write ('-', the default: standard output)");
  cli_flag_str(
      parser, "textgrid", 0, &run->textgrid, "FOLDER",
      "also write words and tokens or phones of each utterance to FOLDER/KEY.TextGrid, for Praat");
  cli_flag_f64(parser, "garbage", 0, &run->garbage, "COST",
               "allow garbage (speech that the text lacks) before, between and after words: cost "
               "per frame in nats, relative to the frame's best token (default: none)");
  cli_flag_range(parser, "garbage", 0, 1e6);
  cli_flag_f64(parser, "skip-words", 0, &run->skip_words, "COST",
               "allow to leave out words of the text: cost per word in nats (default: none)");
  cli_flag_range(parser, "skip-words", 0, 1e6);
  cli_summary_flags(parser, &run->summary);
  cli_table(parser, "hmm_align", &run->hmm_options);
  cli_table(parser, "lexicon", &run->lexicon_options);
  cli_table(parser, "score_reader", &run->reading);
  cli_table(parser, "result_writer", &run->writing);
  cli_rules(parser, rules);
}

static void print_summary(const struct run *run) {
  const cli_figure figures[] = {
      {"utterances", (double)(run->num_aligned + run->num_failed)},
      {"failed", (double)run->num_failed},
      {"with_unspelled_words", (double)run->num_unspelled},
      {run->skip_words >= 0 ? "words_left_out" : NULL, (double)run->num_left_out}};
  if (run->summary.json) cli_figures_json(stderr, figures, sizeof figures / sizeof *figures);
  if (run->summary.json || run->summary.quiet) return;
  cli_note("%llu utterance%s aligned, %llu failed", (unsigned long long)run->num_aligned,
           cli_s(run->num_aligned), (unsigned long long)run->num_failed);
  if (run->num_unspelled > 0)
    cli_note("%llu utterance%s with words without pronunciation",
             (unsigned long long)run->num_unspelled, cli_s(run->num_unspelled));
  if (run->skip_words >= 0)
    cli_note("%llu word%s left out", (unsigned long long)run->num_left_out,
             cli_s(run->num_left_out));
}

int cmd_align(int argc, char **argv) {
  struct run run = {.output = "-", .garbage = -1, .skip_words = -1};
  cli_parser parser = {
      .usage = "SCORES... --tokens=tokens.txt|--am=MODEL --text=text [--lexicon=lexicon.txt]",
      .about =
          "Finds the times of the words of known transcripts in the scores of a CTC model or, with "
          "--am, of a hybrid HMM model of Kaldi or CMU Sphinx (forced alignment).\n"
          "SCORES: Kaldi archives or script files, .npy and .sen files, folders of these, or '-' "
          "for standard input. Confidences of CTC models are geometric means of the tokens' "
          "probabilities.\n"
          "Utterances that fail are reported and skipped (exit code 1). CTC: a word that cannot be "
          "spelled or that the lexicon lacks gets the time of any speech, and is reported (exit "
          "code 1).",
      .min_args = 1,
      .max_args = -1};
  wf_align_options_init(&run.options);
  wf_hmm_align_options_init(&run.hmm_options);
  add_flags(&parser, &run);
  run.writing.format = WF_RESULTS_CTM;
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if ((run.tokens_path == NULL && run.am.path == NULL) || run.text_path == NULL)
    return cli_usage("--text and --tokens (or --am) are required");
  if (run.am.path != NULL && run.lexicon_path == NULL) return cli_usage("--am needs --lexicon");
  run.options.num_threads = run.hmm_options.num_threads;
  run.options.garbage = (float)run.garbage;
  run.options.skip_words = (float)run.skip_words;
  wf_error err = {0};
  cli_note_times(&parser, &run.writing, false);
  bool good = open_all(&run, parser.args, parser.num_args, &err) == WF_OK && align_all(&run, &err);
  if (good) {
    wf_result_writer *writer = run.writer;
    run.writer = NULL;
    good = wf_result_writer_close(writer, &err) == WF_OK;
  }
  code = good ? cli_failure_code(run.num_failed + run.num_unspelled, run.lost_rest, run.no_memory)
              : cli_fail(&err);
  if (good) print_summary(&run);
  close_all(&run);
  return code;
}
