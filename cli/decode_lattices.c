/* decode_lattices.c - makes and writes the lattices of decoded utterances, and what is computed
 * from them: confidences and n-best lists. */
#include "decode_lattices.h"

#include <math.h>
#include <stdlib.h>

#define MAKE_LATTICES "lattice|nbest|confidence|ctm|json-lines"
static const cli_rule rules[] = {
    {"raw-lattice", CLI_USELESS_WITHOUT, "lattice"},
    {"unaligned-lattice", CLI_USELESS_WITHOUT, "lattice"},
    {"unaligned-lattice", CLI_USELESS_WITH, "raw-lattice"},
    {"confidence", CLI_USELESS_WITHOUT, "format=ctm|format=json|ctm|json-lines"},
    {"confidence-scale", CLI_USELESS_WITHOUT, "confidence|ctm|json-lines"},
    {"nbest", CLI_USELESS_WITHOUT, "format=json|json-lines"},
    {"lattice-beam=0", CLI_EXCLUDES, MAKE_LATTICES},
    {"lattice-prune-interval", CLI_USELESS_WITHOUT, "lattice-beam|" MAKE_LATTICES},
    {NULL, 0, NULL},
};

void decode_lattices_flags(cli_parser *parser, decode_lattices *lattices) {
  cli_flag_str(parser, "lattice", 0, &lattices->path, "FILE",
               "write determinized lattices to this Kaldi archive: one arc per word over its "
               "frames, with unscaled acoustic costs (sets --lattice-beam=8 if it is not given)");
  cli_flag_bool(parser, "raw-lattice", 0, &lattices->raw,
                "with --lattice: write raw lattices, as the search makes them");
  cli_flag_bool(
      parser, "unaligned-lattice", 0, &lattices->unaligned,
      "with --lattice: do not align arcs to words, which gives fewer states and arcs, but an arc's "
      "frames may differ from those of its word");
  cli_flag_bool(
      parser, "confidence", 0, &lattices->confidence,
      "write a confidence for each word in CTM and JSON, from its posterior in the lattice");
  cli_flag_f64(
      parser, "confidence-scale", 0, &lattices->confidence_scale, "FACTOR",
      "factor on the costs of paths in confidences; smaller factors give less certain ones "
      "(default: 0.24 / sqrt(acoustic-scale), but at most 1, which is calibrated)");
  cli_flag_range(parser, "confidence-scale", 1e-6, 1e6);
  cli_flag_i64(
      parser, "nbest", 0, &lattices->num_best, "N",
      "write the N best word sequences of each utterance in JSON (default: 0, only the best)");
  cli_flag_str(parser, "ctm", 0, &lattices->ctm_path, "FILE",
               "also write the words to this file as CTM, with confidences");
  cli_flag_str(
      parser, "json-lines", 0, &lattices->json_path, "FILE",
      "also write the results to this file as JSON, one object per line, with confidences");
  cli_flag_range(parser, "nbest", 0, 1000000);
  cli_rules(parser, rules);
}

void decode_lattices_finish(decode_lattices *lattices, bool transducer,
                            wf_decoder_options *options) {
  lattices->confidence =
      lattices->confidence || lattices->ctm_path != NULL || lattices->json_path != NULL;
  lattices->determinizes =
      lattices->confidence || lattices->num_best > 0 || (lattices->path != NULL && !lattices->raw);
  if ((lattices->determinizes || lattices->path != NULL) && options->lattice_beam == 0)
    options->lattice_beam = 8;
  lattices->acoustic_scale = options->acoustic_scale;
  if (lattices->confidence_scale == 0)
    lattices->confidence_scale = (double)wf_confidence_scale(options->acoustic_scale);
  wf_lattice_determinize_options_init(&lattices->determinizing);
  lattices->determinizing.beam = options->lattice_beam;
  if (transducer && options->acoustic_scale > 0) /* it is given in nats of the model */
    lattices->determinizing.beam = fminf(options->lattice_beam * options->acoustic_scale, 1e30f);
  lattices->determinizing.num_threads = options->num_threads;
}

static wf_status open_more(decode_lattices *lattices, int which, const char *path,
                           const char *format, const wf_result_writer_options *writing,
                           wf_error *err) {
  wf_result_writer_options options = *writing;
  if (path == NULL) return WF_OK;
  wf_status status =
      wf_options_set(wf_option_table_find("result_writer"), &options, "format", format, err);
  return status == WF_OK ? wf_result_writer_open(path, &options, &lattices->more[which], err)
                         : status;
}

wf_status decode_lattices_open(decode_lattices *lattices, const wf_result_writer_options *writing,
                               size_t max_batch, wf_error *err) {
  wf_lattice_writer_options options;
  wf_lattice_writer_options_init(&options);
  if (lattices->acoustic_scale > 0)
    options.acoustic_divisor =
        lattices->acoustic_scale; /* Kaldi's lattices hold unscaled acoustic costs */
  wf_status status = open_more(lattices, 0, lattices->ctm_path, "ctm", writing, err);
  if (status == WF_OK) status = open_more(lattices, 1, lattices->json_path, "json", writing, err);
  if (status == WF_OK && lattices->path != NULL)
    status = wf_lattice_writer_open(lattices->path, NULL, &options, &lattices->writer, err);
  if (status != WF_OK || !lattices->determinizes) return status;
  lattices->made = calloc(max_batch, sizeof *lattices->made);
  if (lattices->made != NULL) return WF_OK;
  err->code = WF_ERR_MEMORY;
  snprintf(err->message, sizeof err->message, "out of memory for lattices");
  return err->code;
}

wf_status decode_lattices_prepare(const decode_lattices *lattices, wf_decoder *decoder,
                                  wf_error *err) {
  wf_lattice_results_options options;
  if (!lattices->determinizes) return WF_OK;
  wf_lattice_results_options_init(&options);
  options.confidences = lattices->confidence;
  options.confidence_scale = (float)lattices->confidence_scale;
  options.nbest = lattices->num_best < INT32_MAX ? (int32_t)lattices->num_best : INT32_MAX;
  wf_status status = wf_decoder_set_determinization(decoder, &lattices->determinizing, err);
  return status == WF_OK ? wf_decoder_set_lattice_results(decoder, &options, err) : status;
}

wf_status decode_lattices_batch(decode_lattices *lattices, wf_result *const *results, size_t size,
                                wf_error *err) {
  if (!lattices->determinizes) return WF_OK;
  double start = cli_now_s();
  const wf_lattice **raw = calloc(size + 1, sizeof *raw);
  if (raw == NULL) {
    err->code = WF_ERR_MEMORY;
    snprintf(err->message, sizeof err->message, "out of memory for lattices");
    return err->code;
  }
  for (size_t i = 0; i < size; i++)
    raw[i] = results[i]->status == WF_OK && results[i]->determinized == NULL ? results[i]->lattice
                                                                             : NULL;
  wf_status status =
      wf_lattices_determinize(raw, size, NULL, &lattices->determinizing, lattices->made, err);
  free(raw);
  lattices->size = status == WF_OK ? size : 0;
  for (size_t i = 0; i < lattices->size; i++) {
    if (results[i]->determinized == NULL) continue;
    lattices->made[i] = *results[i]->determinized;
    results[i]->determinized->lattice = NULL;
  }
  for (size_t i = 0; i < lattices->size; i++) lattices->num_narrowed += lattices->made[i].narrowed;
  lattices->seconds += cli_now_s() - start;
  return status;
}

/* The determinized lattice of utterance i, or NULL. */
static const wf_compact_lattice *lattice_of(const decode_lattices *lattices, size_t i) {
  return i < lattices->size && lattices->made[i].status == WF_OK ? lattices->made[i].lattice : NULL;
}

void decode_lattices_check(decode_lattices *lattices, size_t i, const char *key) {
  if (i >= lattices->size || lattices->made[i].status == WF_OK) return;
  cli_note("utterance '%s': no lattice: %s", key, lattices->made[i].message);
  lattices->num_failed++;
  lattices->no_memory = lattices->no_memory || lattices->made[i].status == WF_ERR_MEMORY;
}

/* The results that the decoder made, or NULL (streams). Sets `*status` if there was no memory for
 * them; other errors leave them out, because the lattice is too large. */
static wf_lattice_results *results_of(const wf_result *result, wf_status *status, wf_error *err) {
  wf_lattice_results *made = result->lattice_results;
  *status = made != NULL && made->status == WF_ERR_MEMORY ? WF_ERR_MEMORY : WF_OK;
  if (*status == WF_OK) return made;
  err->code = *status;
  snprintf(err->message, sizeof err->message, "%s", made->message);
  return made;
}

wf_status decode_lattices_confidences(decode_lattices *lattices, size_t i, const wf_result *result,
                                      wf_timed_word *words, wf_error *err) {
  const wf_compact_lattice *lattice = lattice_of(lattices, i);
  wf_status status;
  if (!lattices->confidence || lattice == NULL) return WF_OK;
  const wf_lattice_results *made = results_of(result, &status, err);
  for (size_t w = 0; w < result->num_words && made != NULL && made->confidences != NULL; w++)
    words[w].confidence = made->confidences[w];
  if (made != NULL) return status;
  int32_t *labels = malloc((result->num_words + 1) * sizeof *labels);
  wf_mbr_options options;
  wf_mbr_result *mbr = NULL;
  wf_error why = {0};
  wf_mbr_options_init(&options);
  options.decode = false;
  options.scale = (float)lattices->confidence_scale;
  options.complete_beam = lattices->made[i].beam;
  for (size_t w = 0; w < result->num_words && labels != NULL; w++)
    labels[w] = result->words[w].label;
  status = labels != NULL
               ? wf_compact_lattice_mbr(lattice, labels, result->num_words, &options, &mbr, &why)
               : WF_ERR_MEMORY;
  for (size_t w = 0; w < result->num_words && status == WF_OK; w++)
    words[w].confidence = mbr->confidences[w];
  free(labels);
  wf_mbr_result_free(mbr);
  if (status != WF_ERR_MEMORY)
    return WF_OK; /* the lattice is too large: leave out the confidences */
  *err = why;
  err->code = status;
  return status;
}

void decode_nbest_free(decode_nbest *nbest) {
  wf_nbest_free(nbest->list);
  free(nbest->paths);
  *nbest = (decode_nbest){0};
}

/* Takes the first `most` paths of a list; with a joiner, those of different texts. */
static wf_status take_paths(const token_joiner *joiner, const wf_symbols *table, size_t most,
                            decode_nbest *out, wf_error *err) {
  const size_t size = wf_nbest_count(out->list);
  out->count = 0;
  free(out->paths);
  out->paths = malloc((size + 1) * sizeof *out->paths);
  if (out->paths == NULL) {
    err->code = WF_ERR_MEMORY;
    snprintf(err->message, sizeof err->message, "out of memory for alternatives");
    return WF_ERR_MEMORY;
  }
  for (size_t k = 0; k < size; k++) out->paths[k] = wf_nbest_at(out->list, k);
  out->count = size;
  if (joiner->joins) return token_join_distinct(joiner, table, most, out->paths, &out->count, err);
  return WF_OK;
}

wf_status decode_lattices_nbest(decode_lattices *lattices, size_t i, const wf_result *result,
                                const token_joiner *joiner, const wf_symbols *table,
                                decode_nbest *out, wf_error *err) {
  enum { MOST_CUTS = 32 }; /* token sequences that are looked at for each text */
  const wf_compact_lattice *lattice = lattice_of(lattices, i);
  const size_t wanted = (size_t)lattices->num_best;
  wf_status status = WF_OK;
  *out = (decode_nbest){0};
  if (lattices->num_best <= 0 || lattice == NULL) return WF_OK;
  wf_lattice_results *made = results_of(result, &status, err);
  if (status != WF_OK) return status;
  if (made != NULL && made->nbest != NULL) {
    out->list = made->nbest;
    made->nbest = NULL;
  }
  for (size_t size = wanted;; size *= 2) {
    if (out->list == NULL) status = wf_compact_lattice_nbest(lattice, size, &out->list, err);
    const bool all = status == WF_OK && wf_nbest_count(out->list) < size;
    if (status == WF_OK) status = take_paths(joiner, table, wanted, out, err);
    if (status != WF_OK) decode_nbest_free(out);
    if (status != WF_OK || all || out->count >= wanted || size > MOST_CUTS * wanted) return status;
    wf_nbest_free(out->list);
    out->list = NULL;
  }
}

wf_status decode_lattices_put_hypothesis(decode_lattices *lattices, const wf_hypothesis *hypothesis,
                                         wf_error *err) {
  wf_status status = WF_OK;
  for (int k = 0; k < 2; k++)
    if (status == WF_OK && lattices->more[k] != NULL)
      status = wf_result_writer_put(lattices->more[k], hypothesis, err);
  return status;
}

/* Aligns the lattice, so that each word has one arc over its frames. If the result would be too
 * large, keeps the lattice as it is and reports that. */
static wf_status align(wf_compact_lattice **lattice, const wf_word_aligner *aligner,
                       const char *key, wf_error *err) {
  wf_compact_lattice *aligned;
  wf_error why;
  wf_status status = wf_compact_lattice_align(*lattice, aligner, NULL, &aligned, NULL, &why);
  if (status == WF_ERR_LIMIT) {
    cli_note("utterance '%s': lattice written without aligning arcs to words: %s", key,
             why.message);
    return WF_OK;
  }
  *err = why;
  if (status != WF_OK) return status;
  wf_compact_lattice_free(*lattice);
  *lattice = aligned;
  return WF_OK;
}

wf_status decode_lattices_put_lattice(decode_lattices *lattices, size_t i, char *key,
                                      const wf_result *result, const wf_word_aligner *aligner,
                                      wf_error *err) {
  if (lattices->writer == NULL) return WF_OK;
  wf_lattice_entry entry = {.key = key};
  if (lattices->raw) {
    entry.raw = result->lattice;
  } else if (i >= lattices->size || lattices->made[i].status != WF_OK) {
    return WF_OK; /* reported by decode_lattices_check */
  } else {
    wf_status status = aligner != NULL && !lattices->unaligned
                           ? align(&lattices->made[i].lattice, aligner, key, err)
                           : WF_OK;
    if (status != WF_OK) return status;
    entry.compact = lattices->made[i].lattice;
  }
  return wf_lattice_writer_put(lattices->writer, &entry, err);
}

void decode_lattices_clear(decode_lattices *lattices) {
  for (size_t i = 0; i < lattices->size; i++) {
    wf_compact_lattice_free(lattices->made[i].lattice);
    lattices->made[i] = (wf_determinized){0};
  }
  lattices->size = 0;
}

wf_status decode_lattices_close(decode_lattices *lattices, wf_error *err) {
  wf_status status = wf_lattice_writer_close(lattices->writer, err);
  lattices->writer = NULL;
  for (int k = 0; k < 2 && status == WF_OK; k++) {
    status = wf_result_writer_close(lattices->more[k], err);
    lattices->more[k] = NULL;
  }
  return status;
}

void decode_lattices_free(decode_lattices *lattices) {
  decode_lattices_clear(lattices);
  wf_lattice_writer_abort(lattices->writer);
  for (int k = 0; k < 2; k++) wf_result_writer_abort(lattices->more[k]);
  free(lattices->made);
}
