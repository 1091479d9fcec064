/* fuzz_kaldi_matrix.c - reads arbitrary bytes as a Kaldi archive of matrices and as a script file.
 */
#include "io/kaldi_archive.h"
#include "io/score_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf_error err;
  wf__source source;
  wf_matrix matrix = {0};
  bool lost = false;
  if (wf__source_memory(data, size, "fuzz.ark", &source, &err) == WF_OK) {
    while (!lost && wf__kaldi_read_key(&source, false, &matrix.key, &err) == WF_OK &&
           matrix.key != NULL) {
      if (wf__kaldi_read_value(&source, 1, &matrix, &lost, &err) == WF_OK) {
        lost = false;
        wf_matrix_check(&matrix, &err);
      }
      wf_matrix_clear(&matrix);
    }
    wf__source_close(&source);
  }
  wf__score_spec spec = {0};
  wf__lines lines = {(const char *)data, (const char *)data + size, "fuzz.scp", 0};
  wf__score_script_parse(lines, &spec, &err);
  wf__score_spec_free(&spec);
  return 0;
}
