/* wlm_open.c - makes the mapped form of a model from a file of any format, or from a model in memory.
 */
#include <string.h>

#include "base/config.h"
#include "base/first_bytes.h"
#include "base/option_tables.h"
#include "base/source.h"
#include "base/temp_file.h"
#include "lm/binary_lm.h"
#include "lm/wlm_build.h"
#include "lm/wlm_ngrams.h"

/* --- from a file ------------------------------------------------------------------------- */

/* As wf__first_bytes, of what a gzip file holds. A pipe is not looked at: its bytes can be read only
 * once. A file that cannot be read has none: its reader says why. */
static wf_status first_bytes(const char *path, uint8_t *bytes, size_t size, size_t *got,
                             wf_error *err) {
  wf__source file;
  *got = 0;
  if (wf__first_bytes(path, bytes, 1) == 0) return WF_OK;
  wf_status status = wf__source_open(path, &file, err);
  if (status != WF_OK) return status == WF_ERR_MEMORY ? status : WF_OK;
  status = wf__source_need(&file, size, err);
  if (status == WF_OK) {
    *got = wf__source_left(&file) < size ? wf__source_left(&file) : size;
    memcpy(bytes, file.at, *got);
  }
  wf__source_close(&file);
  return status == WF_ERR_MEMORY ? status : WF_OK;
}

/* Opens a file that is not ARPA text. */
static wf_status open_binary(wf__wlm_source *from, bool is_wlm, wf__input *input, wf__wlm **wlm,
                             wf_arpa_options *reader, wf_error *err) {
  WF__TRY(wf__input_open(from->path, input, err));
  from->user = input;
  if (!is_wlm) return WF_OK;
  const wf_status status = wf__wlm_open_input(input, wlm, err);
  *input = (wf__input){0}; /* the model's; after an error it is closed */
  WF__TRY(status);
  if ((*wlm)->header->difference)
    return wf__fail(err, WF_ERR_ARGUMENT, "%s: already the difference of two models", from->path);
  from->read = wf__lm_read_wlm;
  from->user = *wlm;
  *reader = wf__wlm_reader_options(*wlm, reader->oov);
  return WF_OK;
}

/* Selects the reader by the first bytes of the file: ARPA if there are none, as for pipes. Does not
 * use wf__input_open, which would inflate a gzipped ARPA file into memory. */
wf_status wf__wlm_convert(const char *path, const wf__automaton *small, const char *out,
                          const wf_arpa_options *reader, const wf_lm_convert_options *options,
                          wf_lm_convert_stats *stats, wf_arpa_stats *reading,
                          const wf_progress *progress, wf_error *err) {
  uint8_t bytes[WF__BINARY_LM_START];
  size_t size;
  WF__TRY(first_bytes(path, bytes, sizeof bytes, &size, err));
  const wf__input start = {.data = bytes, .size = size};
  const bool is_wlm = wf__wlm_is(&start);
  wf_arpa_options own;
  WF__TRY(wf__options_take(wf__arpa_table(), reader, &own, err));
  wf__input input = {0};
  wf__wlm *wlm = NULL;
  wf__wlm_source from = {path, wf__binary_lm_reader(&start), NULL, small};
  wf_status status = WF_OK;
  if (is_wlm || from.read != NULL) status = open_binary(&from, is_wlm, &input, &wlm, &own, err);
  if (status == WF_OK)
    status = wf__wlm_build_file(&from, out, &own, options, stats, reading, progress, err);
  wf__wlm_free(wlm);
  wf__input_close(&input);
  return status;
}

/* --- into a temporary file --------------------------------------------------------------- */

static wf_status open_temporary(wf_status (*make)(void *user, const char *path, wf_error *err),
                                void *user, wf__wlm **out, wf_error *err) {
  char *folder;
  WF__TRY(wf__temp_folder(NULL, NULL, &folder, err));
  wf_status status = wf__wlm_open_made(folder, make, user, out, err);
  free(folder);
  return status;
}

static wf_status convert(void *user, const char *path, wf_error *err) {
  return wf__wlm_convert(user, NULL, path, NULL, NULL, NULL, NULL, NULL, err);
}

wf_status wf__wlm_open(const char *path, wf__wlm **out, wf_error *err) {
  *out = NULL;
  uint8_t bytes[sizeof wf__wlm_magic];
  size_t size;
  WF__TRY(first_bytes(path, bytes, sizeof bytes, &size, err));
  /* Only the first four bytes count, so that a damaged file is reported as such. */
  if (size > 0 && (size < 4 || memcmp(bytes, wf__wlm_magic, 4) != 0))
    return open_temporary(convert, (void *)(uintptr_t)path, out, err);
  wf__input input;
  WF__TRY(wf__input_open(path, &input, err));
  return wf__wlm_open_input(&input, out, err);
}

/* --- from a model in memory -------------------------------------------------------------- */

struct in_memory {
  const wf__automaton *lm;
  const char *path;
  wf__ngram_collector *collector;
  uint32_t *label_of; /* [num_labels] label in the collector's table */
};

static wf_status collect(void *user, const wf__walked_ngram *ngram, wf_error *err) {
  struct in_memory *m = user;
  uint32_t label[WF_LM_MAX_ORDER];
  if (ngram->k == 1) {
    const char *text = wf__automaton_text(m->lm, ngram->words[0]);
    WF__TRY(wf__collector_add_word(m->collector, (wf__span){text, strlen(text)},
                                   &m->label_of[ngram->words[0]], err));
  }
  for (int i = 0; i < ngram->k; i++) label[i] = m->label_of[ngram->words[i]];
  return wf__collector_add_ngram(m->collector, ngram->k, label, ngram->cost, ngram->backoff, err);
}

static wf_status read_memory(void *user, wf__ngram_collector *collector, wf_error *err) {
  struct in_memory *m = user;
  wf__ngram_walk walk;
  m->collector = collector;
  collector->is_checked = true;
  collector->levels.order = m->lm->order;
  WF__TRY(wf__ngram_walk_begin(m->lm, &walk, err));
  wf_status status = WF_OK;
  for (int k = 1; k <= m->lm->order && status == WF_OK; k++) {
    status = wf__ngram_walk_order(&walk, k, collect, m, err);
    if (status == WF_OK) status = wf__collector_end_level(collector, k, err);
  }
  wf__ngram_walk_end(&walk);
  return status;
}

static wf_status write_memory(void *user, const char *path, wf_error *err) {
  struct in_memory *m = user;
  const wf__wlm_source from = {m->path, read_memory, m, NULL};
  wf_arpa_options reader;
  wf_arpa_options_init(&reader);
  reader.bos_symbol = wf__automaton_text(m->lm, m->lm->bos);
  reader.eos_symbol = wf__automaton_text(m->lm, m->lm->eos);
  if (m->lm->unk != WF__LM_NONE) reader.unk_symbol = wf__automaton_text(m->lm, m->lm->unk);
  return wf__wlm_build_file(&from, path, &reader, NULL, NULL, NULL, NULL, err);
}

wf_status wf__wlm_of_automaton(const wf__automaton *lm, const char *path, wf__wlm **out,
                               wf_error *err) {
  struct in_memory m = {
      .lm = lm, .path = path, .label_of = wf__alloc(lm->num_labels, sizeof *m.label_of)};
  *out = NULL;
  if (m.label_of == NULL) return wf__fail_memory(err, (uint64_t)lm->num_labels * 4, "labels");
  wf_status status = open_temporary(write_memory, &m, out, err);
  free(m.label_of);
  return status;
}
