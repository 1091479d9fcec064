/* rnnlm.c - the cost of each word of a sentence, as a search asks for them: rnnlm MODEL WORD... */
#include <stdio.h>
#include <stdlib.h>
#include <warpfst_lm.h>

int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "usage: rnnlm MODEL WORD...\n"), 2;
  wf_error err = {0};
  wf_rnnlm *model = NULL;
  wf_rnnlm_info info;
  wf_rnnlm_info_init(&info);
  char *state = NULL, *next = NULL;

  wf_status status = wf_rnnlm_open(argv[1], NULL, &model, &err);
  if (status == WF_OK) status = wf_rnnlm_get_info(model, &info, &err);
  if (status == WF_OK) {
    state = malloc(info.state_bytes);
    next = malloc(info.state_bytes);
    if (state == NULL || next == NULL) return 1;
    wf_rnnlm_start(model, state);
  }
  for (int i = 2; i <= argc && status == WF_OK; i++) { /* the words, then the end */
    const char *word = i < argc ? argv[i] : "</s>";
    int32_t id = i < argc ? wf_rnnlm_find(model, word) : info.eos;
    float cost;
    status = wf_rnnlm_step(model, 1, state, &id, &cost, next, &err);
    if (status == WF_OK) printf("%s %.4f\n", word, (double)cost);
    char *before = state;
    state = next;
    next = before;
  }
  if (status != WF_OK) fprintf(stderr, "rnnlm: %s\n", err.message);
  free(state);
  free(next);
  wf_rnnlm_free(model);
  return status == WF_OK ? 0 : 1;
}
