/* fuzz_native.c - reads arbitrary bytes as a native fst file, twice: unchanged, and with correct
 * checksums, which lets the input reach the checks that follow. Makes a decoding graph of a small
 * CTC graph that keeps its token graph; its states must be those of the graph with all arcs. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fst/ctc_states.h"
#include "fst/fst_formats.h"
#include "search/decode_graph.h"

enum { MOST_ARCS = 300, MOST_LABELS = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_ctc(const wf_fst *fst) {
  wf_graph *graph;
  wf_fst *whole;
  if (wf_graph_create(fst, NULL, 0, &graph, NULL) != WF_OK) return;
  if (wf_graph_to_fst(graph, &whole, NULL) != WF_OK) abort();
  const wf_fst_view view = wf_fst_get_view(whole);
  if (graph->ctc == NULL || graph->num_states != view.num_states ||
      graph->num_arcs < view.num_arcs || wf__fst_check(&view, "with all arcs", NULL) != WF_OK)
    abort();
  for (uint64_t s = 0; s < graph->num_states; s++)
    for (uint32_t a = graph->index[s].first_arc; a < graph->index[s + 1].first_arc; a++)
      if (wf__graph_arc_from(graph, (uint32_t)s, a).nextstate >= view.num_states) abort();
  wf_fst_free(whole);
  wf_graph_free(graph);
}

static void read_one(const uint8_t *data, size_t size) {
  wf__input input;
  wf_fst *fst;
  wf_fst_format format;
  if (wf__input_from_memory(data, size, "input", &input, NULL) != WF_OK) return;
  if (wf__fst_read_input(&input, &fst, &format, NULL) != WF_OK) return;
  wf_fst_view view = wf_fst_get_view(fst);
  if (wf__fst_check(&view, "accepted", NULL) != WF_OK) abort();
  (void)wf_fst_properties(fst);
  if (view.num_arcs <= MOST_ARCS && view.num_states <= MOST_ARCS && wf__fst_ctc_blank(fst) != 0 &&
      wf__fst_ctc_blank(fst) <= MOST_LABELS)
    check_ctc(fst);
  wf_fst_free(fst);
}

/* The file's layout is described in src/fst/native_file.c. */
static void set_checksums(uint8_t *data, size_t size) {
  static const uint8_t magic[8] = {0x89, 'W', 'F', 'S', 'T', '\r', '\n', 0x1a};
  memcpy(data, magic, sizeof magic);
  for (size_t i = 0; i < 5; i++) {
    uint64_t place[2];
    uint8_t *section = data + 48 + 24 * i;
    memcpy(place, section, sizeof place);
    if (place[0] > size || place[1] > size - place[0]) continue;
    uint32_t crc = (uint32_t)crc32_z(0, data + place[0], (z_size_t)place[1]);
    memcpy(section + 16, &crc, sizeof crc);
  }
  uint32_t crc = (uint32_t)crc32_z(0, data, 188);
  memcpy(data + 188, &crc, sizeof crc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read_one(data, size);
  if (size < 192) return 0;
  uint8_t *copy = malloc(size);
  if (copy == NULL) return 0;
  memcpy(copy, data, size);
  uint64_t file_size = size;
  memcpy(copy + 16, &file_size, sizeof file_size);
  set_checksums(copy, size);
  read_one(copy, size);
  free(copy);
  return 0;
}
