/* decode.c - prints the words of acoustic scores: decode GRAPH SCORES... */
#include <stdio.h>
#include <warpfst.h>
#include <warpfst_io.h>

static wf_status decode_next(wf_score_reader *reader, wf_decoder *decoder, const wf_symbols *words,
                             bool *done, wf_error *err) {
  wf_matrix matrix = {0};
  wf_result *result = NULL;
  wf_status status = wf_score_reader_next(reader, &matrix, done, err);
  if (status == WF_OK && !*done) {
    wf_utterance utterance = {.scores = {.data = matrix.data,
                                         .num_frames = matrix.num_frames,
                                         .num_columns = matrix.num_columns,
                                         .stride = matrix.num_columns}};
    status = wf_decode(decoder, &utterance, 1, NULL, &result, err);
  }
  if (result != NULL) {
    printf("%s", matrix.key);
    if (result->status != WF_OK) printf(" (%s)", result->message);
    for (size_t i = 0; i < result->num_words; i++) {
      const char *text = words != NULL ? wf_symbols_text(words, result->words[i].label) : NULL;
      printf(" %s", text != NULL ? text : "?");
    }
    printf("\n");
  }
  wf_result_free(result);
  wf_matrix_clear(&matrix);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: decode GRAPH SCORES...\n"), 2;
  wf_error err = {0};
  wf_fst *fst = NULL;
  wf_graph *graph = NULL;
  wf_decoder *decoder = NULL;
  wf_score_reader *reader = NULL;
  wf_decoder_options options;
  wf_decoder_options_init(&options); /* every option has its default */
  options.acoustic_scale = 0.7f;

  wf_status status = wf_fst_read(argv[1], &fst, &err);
  if (status == WF_OK) status = wf_graph_create(fst, NULL, 0, &graph, &err);
  if (status == WF_OK) status = wf_decoder_create(graph, &options, &decoder, &err);
  if (status == WF_OK)
    status =
        wf_score_reader_open((const char *const *)argv + 2, (size_t)argc - 2, NULL, &reader, &err);
  for (bool done = false; status == WF_OK && !done;)
    status = decode_next(reader, decoder, wf_fst_osymbols(fst), &done, &err);
  if (status != WF_OK) fprintf(stderr, "decode: %s\n", err.message);

  wf_score_reader_free(reader);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
  return status == WF_OK ? 0 : 1;
}
