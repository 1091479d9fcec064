/* bench_latops.c - what determinization, n-best lists and rescoring cost on one CPU thread.
 *
 *     bench_latops GRAPH SCORES ACOUSTIC_SCALE BEAM MAX_ACTIVE LATTICE_BEAM ROUNDS [NAME=VALUE ...]
 *
 * Decodes once, with lattices, then works on them ROUNDS times; NAME=VALUE are options of
 * determinization. Prints a line of JSON: seconds of decoding, best seconds of each operation,
 * sizes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "warpfst_all.h"

enum { MAX_UTTERANCES = 4096, NBEST = 100 };

struct bench {
  wf_matrix matrices[MAX_UTTERANCES];
  wf_scores scores[MAX_UTTERANCES];
  wf_result *results[MAX_UTTERANCES];
  const wf_lattice *lattices[MAX_UTTERANCES];
  wf_determinized words[MAX_UTTERANCES];
  size_t count;
  int64_t num_frames;
};

static void read_scores(struct bench *b, const char *path) {
  wf_error err = {0};
  wf_score_reader *reader;
  check(wf_score_reader_open(&path, 1, NULL, &reader, &err), &err);
  for (bool done = false; b->count < MAX_UTTERANCES;) {
    wf_matrix *m = &b->matrices[b->count];
    check(wf_score_reader_next(reader, m, &done, &err), &err);
    if (done) break;
    b->num_frames += m->num_frames;
    b->scores[b->count++] = (wf_scores){.data = m->data,
                                        .num_frames = m->num_frames,
                                        .num_columns = m->num_columns,
                                        .stride = m->num_columns};
  }
  wf_score_reader_free(reader);
}

static double decode(struct bench *b, char **argv) {
  wf_error err = {0};
  wf_fst *fst;
  wf_graph *graph;
  wf_decoder *decoder;
  wf_decoder_options options;
  check(wf_fst_read(argv[1], &fst, &err), &err);
  check(wf_graph_create(fst, NULL, 0, &graph, &err), &err);
  wf_decoder_options_init(&options);
  options.acoustic_scale = strtof(argv[3], NULL);
  options.beam = strtof(argv[4], NULL);
  options.max_active = atoi(argv[5]);
  options.lattice_beam = strtof(argv[6], NULL);
  options.num_threads = 1;
  check(wf_decoder_create(graph, &options, &decoder, &err), &err);
  double start = cpu_s();
  check(decode_scores(decoder, b->scores, b->count, b->results, &err), &err);
  double took = cpu_s() - start;
  for (size_t i = 0; i < b->count; i++) b->lattices[i] = b->results[i]->lattice;
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
  return took;
}

struct figures {
  double determinize_s, nbest_s;
  unsigned long long raw_arcs, raw_states, subsets, states, arcs, narrowed, paths, most_bytes;
};

static void work(struct bench *b, const wf_lattice_determinize_options *o, struct figures *f) {
  wf_error err = {0};
  double start = cpu_s();
  check(wf_lattices_determinize(b->lattices, b->count, NULL, o, b->words, &err), &err);
  double determinized = cpu_s();
  f->paths = f->subsets = f->states = f->arcs = f->narrowed = f->raw_arcs = f->raw_states = 0;
  for (size_t i = 0; i < b->count; i++) {
    wf_nbest *nbest;
    check(b->words[i].status, &(wf_error){.message = "a lattice failed"});
    check(wf_compact_lattice_nbest(b->words[i].lattice, NBEST, &nbest, &err), &err);
    f->paths += wf_nbest_count(nbest);
    wf_nbest_free(nbest);
  }
  double listed = cpu_s();
  if (determinized - start < f->determinize_s) f->determinize_s = determinized - start;
  if (listed - determinized < f->nbest_s) f->nbest_s = listed - determinized;
  for (size_t i = 0; i < b->count; i++) {
    wf_compact_lattice_view view = wf_compact_lattice_get(b->words[i].lattice);
    f->raw_arcs += wf_lattice_get(b->lattices[i]).num_arcs;
    f->raw_states += wf_lattice_get(b->lattices[i]).num_states;
    f->subsets += b->words[i].num_subsets;
    f->states += view.num_states;
    f->arcs += view.num_arcs;
    f->narrowed += b->words[i].narrowed;
    if (b->words[i].num_bytes > f->most_bytes) f->most_bytes = b->words[i].num_bytes;
    wf_compact_lattice_free(b->words[i].lattice);
  }
}

int main(int argc, char **argv) {
  static struct bench b;
  wf_error err = {0};
  if (argc < 8) {
    fprintf(stderr,
            "usage: bench_latops GRAPH SCORES ACOUSTIC_SCALE BEAM MAX_ACTIVE LATTICE_BEAM ROUNDS "
            "[NAME=VALUE ...]\n");
    return 2;
  }
  wf_lattice_determinize_options o;
  wf_lattice_determinize_options_init(&o);
  o.beam = strtof(argv[6], NULL);
  o.num_threads = 1;
  for (int i = 8; i < argc; i++) {
    char *value = strchr(argv[i], '=');
    if (value == NULL) return 2;
    *value = '\0';
    check(wf_config_set(wf_option_table_find("lattice_determinize"), &o, argv[i], value + 1, &err),
          &err);
  }
  read_scores(&b, argv[2]);
  double decode_s = decode(&b, argv);
  struct figures f = {.determinize_s = 1e30, .nbest_s = 1e30};
  for (int round = 0; round < atoi(argv[7]); round++) work(&b, &o, &f);
  printf(
      "{\"utterances\": %zu, \"frames\": %lld, \"decode_s\": %.4f, \"determinize_s\": %.4f, "
      "\"nbest_s\": %.4f, \"paths\": %llu, \"raw_states\": %llu, \"raw_arcs\": %llu, \"subsets\": "
      "%llu, "
      "\"states\": %llu, \"arcs\": %llu, \"narrowed\": %llu, \"most_bytes\": %llu}\n",
      b.count, (long long)b.num_frames, decode_s, f.determinize_s, f.nbest_s, f.paths, f.raw_states,
      f.raw_arcs, f.subsets, f.states, f.arcs, f.narrowed, f.most_bytes);
  return 0;
}
