/* slf_write.c - writes compact lattices in HTK's Standard Lattice Format, which SRILM's
 * lattice-tool and others read:
 *
 *     VERSION=1.0  UTTERANCE=key  base=2.71828...        natural logarithms
 *     N=nodes L=links
 *     I=node t=seconds
 *     J=link S=node E=node W=word a=acoustic log-likelihood l=graph log-probability
 *
 * Words are on links. Each final state has a link without a word (!NULL) to an additional end node.
 * It has the final cost. */
#include <math.h>
#include <string.h>

#include "io/float_text.h"
#include "io/slf.h"

/* Escapes backslashes, and a quote at the start, which would begin a quoted string. */
static void put_word(wf__output *output, const wf_symbols *words, int32_t word) {
  const char *text = word != 0 && words != NULL ? wf_symbols_text(words, word) : NULL;
  if (word == 0) {
    wf__write_text(output, "!NULL");
  } else if (text == NULL) {
    wf__printf(output, "%d", word);
  } else {
    if (text[0] == '"' || text[0] == '\'') wf__write(output, "\\", 1);
    for (; *text != '\0'; text++) {
      if (*text == '\\') wf__write(output, "\\", 1);
      wf__write(output, text, 1);
    }
  }
}

static void put_link(wf__output *output, uint64_t number, uint64_t source, uint64_t target,
                     int32_t word, const wf_compact_weight *weight, float divisor,
                     const wf_symbols *words) {
  char acoustic[WF__FLOAT_TEXT_BYTES], graph[WF__FLOAT_TEXT_BYTES];
  wf__float_text(0 - weight->acoustic_cost / divisor, acoustic);
  wf__float_text(0 - weight->graph_cost, graph);
  wf__printf(output, "J=%llu\tS=%llu\tE=%llu\tW=", (unsigned long long)number,
             (unsigned long long)source, (unsigned long long)target);
  put_word(output, words, word);
  wf__printf(output, "\ta=%s\tl=%s\n", acoustic, graph);
}

void wf__slf_write(wf__output *output, const char *key, const wf_compact_lattice_view *lattice,
                   double frame_shift, float divisor, const wf_symbols *words) {
  uint64_t num_finals = 0, number = 0, end = lattice->num_states;
  int64_t last = -1; /* frames of the longest path, if known */
  for (uint64_t s = 0; s < lattice->num_states; s++) {
    if (lattice->finals[s].graph_cost == INFINITY) continue;
    num_finals++;
    if (lattice->frames[s] >= 0 &&
        (int64_t)lattice->frames[s] + lattice->finals[s].num_labels > last)
      last = (int64_t)lattice->frames[s] + lattice->finals[s].num_labels;
  }
  wf__printf(output, "VERSION=1.0\nUTTERANCE=%s\nbase=2.718281828459045\nN=%llu\tL=%llu\n", key,
             (unsigned long long)lattice->num_states + 1,
             (unsigned long long)(lattice->num_arcs + num_finals));
  for (uint64_t s = 0; s < lattice->num_states; s++) {
    wf__printf(output, "I=%llu", (unsigned long long)s);
    if (lattice->frames[s] >= 0) wf__printf(output, "\tt=%.3f", lattice->frames[s] * frame_shift);
    wf__write(output, "\n", 1);
  }
  wf__printf(output, "I=%llu", (unsigned long long)end);
  if (last >= 0) wf__printf(output, "\tt=%.3f", (double)last * frame_shift);
  wf__write(output, "\n", 1);
  for (uint64_t s = 0; s < lattice->num_states; s++) {
    for (uint64_t a = lattice->arc_off[s]; a < lattice->arc_off[s + 1]; a++)
      put_link(output, number++, s, (uint64_t)lattice->arcs[a].nextstate, lattice->arcs[a].word,
               &lattice->arcs[a].weight, divisor, words);
    if (lattice->finals[s].graph_cost < INFINITY)
      put_link(output, number++, s, end, 0, &lattice->finals[s], divisor, words);
  }
}
