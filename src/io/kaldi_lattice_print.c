/* kaldi_lattice_print.c - writes lattices as text, for archives. States are written in order, the
 * start state first: arcs, then the final weight. Weights of 0 without labels are left out. A state
 * with neither arcs nor a final weight gets a line with the weight Infinity, so that it exists when
 * the text is read. */
#include <math.h>
#include <string.h>

#include "io/float_text.h"
#include "io/kaldi_lattice.h"
#include "lattice/lattice.h"

static void put_word(wf__output *output, const wf_symbols *words, int32_t word) {
  const char *text = words != NULL ? wf_symbols_text(words, word) : NULL;
  if (text == NULL && words != NULL && word == 0) text = "<eps>";
  if (text != NULL)
    wf__write_text(output, text);
  else
    wf__printf(output, "%d", word);
}

static void put_costs(wf__output *output, float graph_cost, float acoustic_cost, float divisor) {
  char text[2 * WF__FLOAT_TEXT_BYTES];
  int size = wf__float_text(graph_cost, text);
  text[size++] = ',';
  size += wf__float_text(graph_cost < INFINITY ? acoustic_cost / divisor : INFINITY, text + size);
  wf__write(output, text, (size_t)size);
}

void wf__kaldi_write_raw_text(wf__output *output, const wf_lattice_view *lattice, float divisor,
                              const wf_symbols *words) {
  wf__write(output, "\n", 1);
  for (uint64_t s = 0; s < lattice->num_states; s++) {
    for (uint64_t a = lattice->arc_off[s]; a < lattice->arc_off[s + 1]; a++) {
      const wf_lattice_arc *arc = &lattice->arcs[a];
      wf__printf(output, "%llu\t%d\t%d\t", (unsigned long long)s, arc->nextstate, arc->ilabel);
      put_word(output, words, arc->olabel);
      const float graph_cost = wf__lattice_arc_cost(arc);
      if (graph_cost != 0 || arc->acoustic_cost != 0) {
        wf__write(output, "\t", 1);
        put_costs(output, graph_cost, arc->acoustic_cost, divisor);
      }
      wf__write(output, "\n", 1);
    }
    bool final = lattice->final_graph_cost[s] < INFINITY;
    if (!final && lattice->arc_off[s] < lattice->arc_off[s + 1]) continue;
    wf__printf(output, "%llu", (unsigned long long)s);
    const float graph_cost = wf__lattice_final_cost(lattice, s);
    if (graph_cost != 0 || lattice->final_acoustic_cost[s] != 0) {
      wf__write(output, "\t", 1);
      put_costs(output, graph_cost, lattice->final_acoustic_cost[s], divisor);
    }
    wf__write(output, "\n", 1);
  }
  wf__write(output, "\n", 1);
}

/* Writes a tab and the weight, unless the weight is 0 without labels. */
static void put_weight(wf__output *output, const wf_compact_lattice_view *lattice,
                       const wf_compact_weight *weight, float divisor) {
  bool zero = weight->graph_cost == INFINITY;
  if (weight->graph_cost == 0 && weight->acoustic_cost == 0 && weight->num_labels == 0) return;
  wf__write(output, "\t", 1);
  put_costs(output, weight->graph_cost, weight->acoustic_cost, divisor);
  wf__write(output, ",", 1);
  for (uint32_t i = 0; i < weight->num_labels && !zero; i++)
    wf__printf(output, i > 0 ? "_%d" : "%d", lattice->labels[weight->first_label + i]);
}

void wf__kaldi_write_compact_text(wf__output *output, const wf_compact_lattice_view *lattice,
                                  float divisor, const wf_symbols *words) {
  wf__write(output, "\n", 1);
  for (uint64_t s = 0; s < lattice->num_states; s++) {
    for (uint64_t a = lattice->arc_off[s]; a < lattice->arc_off[s + 1]; a++) {
      const wf_compact_arc *arc = &lattice->arcs[a];
      wf__printf(output, "%llu\t%d\t", (unsigned long long)s, arc->nextstate);
      put_word(output, words, arc->word);
      put_weight(output, lattice, &arc->weight, divisor);
      wf__write(output, "\n", 1);
    }
    if (lattice->finals[s].graph_cost == INFINITY && lattice->arc_off[s] < lattice->arc_off[s + 1])
      continue;
    wf__printf(output, "%llu", (unsigned long long)s);
    put_weight(output, lattice, &lattice->finals[s], divisor);
    wf__write(output, "\n", 1);
  }
  wf__write(output, "\n", 1);
}
