/* stream.c - decodes the scores of an utterance in chunks, as a microphone would send them, and
 * prefers a phrase: stream GRAPH SCORES WORD... */
#include <stdio.h>
#include <stdlib.h>
#include <warpfst.h>
#include <warpfst_io.h>

static void print(const char *what, const wf_symbols *words, const wf_word *path, size_t count) {
  printf("%s", what);
  for (size_t i = 0; i < count; i++) printf(" %s", wf_symbols_text(words, path[i].label));
  printf("\n");
}

/* A scorer that lowers the cost of a phrase by 3 nats. */
static wf_status boost(const wf_symbols *words, char **phrase, size_t count, wf_scorer **out,
                       wf_error *err) {
  const uint64_t phrase_off[2] = {0, count};
  const float boosts[1] = {3};
  int32_t *labels = calloc(count, sizeof *labels);
  if (labels == NULL) return WF_ERR_MEMORY;
  for (size_t i = 0; i < count; i++) labels[i] = (int32_t)wf_symbols_find(words, phrase[i]);
  wf_status status = wf_scorer_boost_phrases(labels, phrase_off, boosts, 1, out, err);
  free(labels);
  return status;
}

static wf_status decode(wf_stream *stream, const wf_matrix *matrix, const wf_symbols *words,
                        wf_error *err) {
  wf_status status = WF_OK;
  wf_result *result = NULL;
  for (int64_t begin = 0; status == WF_OK && begin < matrix->num_frames; begin += 16) {
    wf_scores chunk = {
        .data = matrix->data + begin * matrix->num_columns,
        .num_frames = matrix->num_frames - begin < 16 ? matrix->num_frames - begin : 16,
        .num_columns = matrix->num_columns,
        .stride = matrix->num_columns};
    wf_stream_event event; /* its `endpoint`: the speaker has stopped */
    wf_partial partial;
    status = wf_stream_advance(stream, &chunk, &event, err);
    if (status == WF_OK) status = wf_stream_partial(stream, &partial, err);
    if (status == WF_OK) print("...", words, partial.words, partial.num_words);
  }
  if (status == WF_OK) status = wf_stream_finish(stream, &result, err);
  if (status == WF_OK) print(matrix->key, words, result->words, result->num_words);
  wf_result_free(result);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "usage: stream GRAPH SCORES WORD...\n"), 2;
  wf_error err = {0};
  wf_fst *fst = NULL;
  wf_graph *graph = NULL;
  wf_decoder *decoder = NULL;
  wf_scorer *scorer = NULL;
  wf_stream *stream = NULL;
  wf_score_reader *reader = NULL;
  wf_matrix matrix = {0};
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.acoustic_scale = 0.7f;
  const char *sources[] = {argv[2]};
  bool done = false;

  wf_status status = wf_fst_read(argv[1], &fst, &err);
  if (status == WF_OK) status = wf_graph_create(fst, NULL, 0, &graph, &err);
  if (status == WF_OK) status = wf_decoder_create(graph, &options, &decoder, &err);
  if (status == WF_OK)
    status = boost(wf_fst_osymbols(fst), argv + 3, (size_t)argc - 3, &scorer, &err);
  if (status == WF_OK) status = wf_stream_create(decoder, NULL, &stream, &err);
  if (status == WF_OK) status = wf_stream_set_scorer(stream, scorer, &err);
  if (status == WF_OK) status = wf_score_reader_open(sources, 1, NULL, &reader, &err);
  if (status == WF_OK) status = wf_score_reader_next(reader, &matrix, &done, &err);
  if (status == WF_OK && !done) status = decode(stream, &matrix, wf_fst_osymbols(fst), &err);
  if (status != WF_OK) fprintf(stderr, "stream: %s\n", err.message);

  wf_matrix_clear(&matrix);
  wf_score_reader_free(reader);
  wf_stream_free(stream);
  wf_scorer_free(scorer);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
  return status == WF_OK ? 0 : 1;
}
