/* nbest_output.c - writes lists of paths through the result writer. */
#include "nbest_output.h"

#include <stdlib.h>
#include <string.h>

static wf_status no_memory(wf_error *err) {
  err->code = WF_ERR_MEMORY;
  snprintf(err->message, sizeof err->message, "out of memory for a list of paths");
  return WF_ERR_MEMORY;
}

wf_status nbest_words(const wf_lattice_path *path, const wf_word_aligner *aligner,
                      const wf_symbols *table, wf_timed_word *words, char (*numbers)[12],
                      wf_error *err) {
  wf_word *placed = aligner != NULL ? malloc((path->num_words + 1) * sizeof *placed) : NULL;
  wf_status status = aligner == NULL || placed != NULL ? WF_OK : no_memory(err);
  if (status == WF_OK && placed != NULL)
    status = wf_word_aligner_words(aligner, path->words, path->num_words, path->alignment,
                                   path->num_labels, placed, NULL, err);
  for (size_t i = 0; i < path->num_words && status == WF_OK; i++) {
    const char *text = table != NULL ? wf_symbols_text(table, path->words[i]) : NULL;
    snprintf(numbers[i], sizeof numbers[i], "%d", path->words[i]);
    int32_t end = i + 1 < path->num_words ? path->frames[i + 1] : (int32_t)path->num_labels;
    words[i] = (wf_timed_word){text != NULL ? text : numbers[i],
                               placed != NULL ? placed[i].start_frame : path->frames[i],
                               placed != NULL ? placed[i].end_frame : end, -1};
  }
  free(placed);
  return status;
}

static wf_status put_path(wf_result_writer *writer, const char *key, const wf_lattice_path *path,
                          const wf_word_aligner *aligner, const wf_symbols *table, wf_error *err) {
  wf_timed_word *words = malloc((path->num_words + 1) * sizeof *words);
  char(*numbers)[12] = malloc((path->num_words + 1) * sizeof *numbers);
  wf_status status = words != NULL && numbers != NULL
                         ? nbest_words(path, aligner, table, words, numbers, err)
                         : no_memory(err);
  wf_hypothesis hypothesis = {.key = key,
                              .words = words,
                              .num_words = path->num_words,
                              .num_frames = (int64_t)path->num_labels,
                              .cost = path->graph_cost + path->acoustic_cost,
                              .graph_cost = path->graph_cost,
                              .acoustic_cost = path->acoustic_cost};
  if (status == WF_OK) status = wf_result_writer_put(writer, &hypothesis, err);
  free(words);
  free(numbers);
  return status;
}

wf_status nbest_put(wf_result_writer *writer, const char *key, const wf_nbest *nbest,
                    const wf_word_aligner *aligner, const wf_symbols *words, wf_error *err) {
  char *numbered = malloc(strlen(key) + 24);
  wf_status status = numbered != NULL ? WF_OK : no_memory(err);
  for (size_t i = 0; i < wf_nbest_count(nbest) && status == WF_OK; i++) {
    wf_lattice_path path = wf_nbest_at(nbest, i);
    sprintf(numbered, "%s-%zu", key, i + 1);
    status = put_path(writer, numbered, &path, aligner, words, err);
  }
  free(numbered);
  return status;
}
