/* fuzz_fst_text.c - compiles arbitrary bytes as AT&T text, with each combination of options. An fst
 * that compiles must be valid, and printing it must succeed. */
#include <stdint.h>
#include <stdlib.h>

#include "fst/fst_formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (int i = 0; i < 4; i++) {
    wf__input input;
    wf_fst *fst;
    wf_text_options options;
    wf_text_options_init(&options);
    options.acceptor = (i & 1) != 0;
    options.keep_state_numbering = (i & 2) != 0;
    if (wf__input_from_memory(data, size < 4096 ? size : 4096, "input", &input, NULL) != WF_OK)
      return 0;
    wf_status status = wf__fst_compile_input(&input, NULL, NULL, &options, &fst, NULL);
    wf__input_close(&input);
    if (status != WF_OK) continue;
    wf_fst_view view = wf_fst_get_view(fst);
    if (wf__fst_check(&view, "compiled", NULL) != WF_OK) abort();
    if (view.num_states < 10000 &&
        wf_fst_print(fst, "/dev/null", NULL, NULL, &options, NULL) != WF_OK)
      abort();
    wf_fst_free(fst);
  }
  return 0;
}
