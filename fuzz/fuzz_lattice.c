/* fuzz_lattice.c - reads arbitrary bytes as an archive of lattices. An accepted lattice must be in
 * topological order, convert between raw and compact form, and be written as text. */
#include <stdlib.h>

#include "io/kaldi_archive.h"
#include "io/kaldi_lattice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(wf_lattice_entry *entry, wf__output *output) {
  wf_error err;
  wf_lattice *raw = NULL;
  wf_compact_lattice *compact = NULL;
  if (entry->raw != NULL) {
    wf_lattice_view view = wf_lattice_get_view(entry->raw);
    for (uint64_t s = 0; s < view.num_states; s++)
      for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++)
        if (view.arcs[a].nextstate <= (int64_t)s ||
            (uint64_t)view.arcs[a].nextstate >= view.num_states)
          abort();
    wf__kaldi_write_raw_text(output, &view, 1, NULL);
    if (wf_compact_lattice_from_raw(entry->raw, &compact, &err) != WF_OK) abort();
  } else {
    wf_compact_lattice_view view = wf_compact_lattice_get_view(entry->compact);
    wf__kaldi_write_compact_text(output, &view, 1, NULL);
    if (wf_lattice_from_compact(entry->compact, &raw, &err) != WF_OK) abort();
  }
  wf_lattice_free(raw);
  wf_compact_lattice_free(compact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf_error err;
  wf__source source;
  wf__output *output;
  bool lost = false;
  char *key = NULL;
  if (wf__output_open("/dev/null", &output, &err) != WF_OK) abort();
  if (wf__source_memory(data, size, "fuzz.ark", &source, &err) != WF_OK) abort();
  while (!lost && wf__kaldi_read_key(&source, true, &key, &err) == WF_OK && key != NULL) {
    wf__unsorted_lattice unsorted;
    wf_lattice_entry entry = {0};
    const wf__lattice_conversion conversion = {1, 1, 0};
    if (wf__kaldi_read_lattice(&source, NULL, &unsorted, &lost, &err) == WF_OK &&
        wf__unsorted_finish(&unsorted, &conversion, &entry, &err) == WF_OK)
      use(&entry, output);
    wf__unsorted_free(&unsorted);
    wf_lattice_entry_clear(&entry);
    free(key);
    key = NULL;
  }
  free(key);
  wf__output_abort(output);
  wf__source_close(&source);
  return 0;
}
