/* bench_latops.c - measures determinization, n-best lists, confidences and minimum Bayes risk on
 * one CPU thread.
 *
 *     bench_latops GRAPH SCORES [--FLAG=VALUE...]      --help lists the flags
 *
 * Decodes once, with lattices, then runs the operations on them in rounds. Prints a JSON line:
 * seconds of decoding, best seconds of each operation, sizes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "warpfst_all.h"

enum { MAX_UTTERANCES = 4096, NBEST = 100, SHORT_NBEST = 10 };

struct bench {
  wf_matrix matrices[MAX_UTTERANCES];
  wf_scores scores[MAX_UTTERANCES];
  wf_result *results[MAX_UTTERANCES];
  const wf_lattice *lattices[MAX_UTTERANCES];
  wf_determinized words[MAX_UTTERANCES];
  size_t count;
  int64_t num_frames;
};

struct arguments {
  const char *paths[2]; /* graph, scores */
  double acoustic_scale, beam, lattice_beam;
  int64_t max_active, rounds;
};

static double decode(struct bench *b, const struct arguments *a) {
  wf_error err = {0};
  wf_fst *fst;
  wf_graph *graph;
  wf_decoder *decoder;
  wf_decoder_options options;
  check(wf_fst_read(a->paths[0], &fst, &err), &err);
  check(wf_graph_create(fst, NULL, 0, &graph, &err), &err);
  wf_decoder_options_init(&options);
  options.acoustic_scale = (float)a->acoustic_scale;
  options.beam = (float)a->beam;
  options.max_active = (int32_t)a->max_active;
  options.lattice_beam = (float)a->lattice_beam;
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
  double determinize_s, nbest_s, short_nbest_s, confidences_s, mbr_s;
  unsigned long long raw_arcs, raw_states, subsets, states, arcs, narrowed, paths, most_bytes;
};

static void least(double *seconds, double start) {
  const double took = cpu_s() - start;
  if (took < *seconds) *seconds = took;
}

/* Lists of the n best of all lattices. Returns the number of paths. */
static unsigned long long list(struct bench *b, size_t n) {
  wf_error err = {0};
  unsigned long long paths = 0;
  for (size_t i = 0; i < b->count; i++) {
    wf_nbest *nbest;
    check(wf_compact_lattice_nbest(b->words[i].lattice, n, &nbest, &err), &err);
    paths += wf_nbest_count(nbest);
    wf_nbest_free(nbest);
  }
  return paths;
}

/* Confidences of the best paths' words, or with `decode` minimum Bayes risk words. */
static void estimate(struct bench *b, bool decode) {
  wf_error err = {0};
  wf_mbr_options o;
  wf_mbr_options_init(&o);
  o.decode = decode;
  for (size_t i = 0; i < b->count; i++) {
    wf_mbr_result *mbr;
    check(wf_compact_lattice_mbr(b->words[i].lattice, NULL, 0, &o, &mbr, &err), &err);
    wf_mbr_result_free(mbr);
  }
}

static void work(struct bench *b, const wf_lattice_determinize_options *o, struct figures *f) {
  wf_error err = {0};
  double start = cpu_s();
  check(wf_lattices_determinize(b->lattices, b->count, NULL, o, b->words, &err), &err);
  least(&f->determinize_s, start);
  f->subsets = f->states = f->arcs = f->narrowed = f->raw_arcs = f->raw_states = 0;
  for (size_t i = 0; i < b->count; i++)
    check(b->words[i].status, &(wf_error){.message = "a lattice failed"});
  start = cpu_s();
  f->paths = list(b, NBEST);
  least(&f->nbest_s, start);
  start = cpu_s();
  list(b, SHORT_NBEST);
  least(&f->short_nbest_s, start);
  start = cpu_s();
  estimate(b, false);
  least(&f->confidences_s, start);
  start = cpu_s();
  estimate(b, true);
  least(&f->mbr_s, start);
  for (size_t i = 0; i < b->count; i++) {
    wf_compact_lattice_view view = wf_compact_lattice_get_view(b->words[i].lattice);
    f->raw_arcs += wf_lattice_get_view(b->lattices[i]).num_arcs;
    f->raw_states += wf_lattice_get_view(b->lattices[i]).num_states;
    f->subsets += b->words[i].num_subsets;
    f->states += view.num_states;
    f->arcs += view.num_arcs;
    f->narrowed += b->words[i].narrowed;
    if (b->words[i].num_bytes > f->most_bytes) f->most_bytes = b->words[i].num_bytes;
    wf_compact_lattice_free(b->words[i].lattice);
  }
}

/* Sets an option of determinization from --determinize-NAME=VALUE. */
static bool take_option(void *options, const char *text) {
  static const char prefix[] = "determinize-";
  char name[64];
  wf_error err = {0};
  const char *value = strchr(text, '=');
  if (strncmp(text, prefix, sizeof prefix - 1) != 0 || value == NULL) return false;
  text += sizeof prefix - 1;
  snprintf(name, sizeof name, "%.*s", (int)(value - text), text);
  check(wf_options_set(wf_option_table_find("lattice_determinize"), options, name, value + 1, &err),
        &err);
  return true;
}

static void read_arguments(int argc, char **argv, struct arguments *a,
                           wf_lattice_determinize_options *o) {
  const struct flag flags[] = {
      {"acoustic-scale", "factor on the scores", .real = &a->acoustic_scale},
      {"beam", "beam of the search, nats", .real = &a->beam},
      {"max-active", "largest number of tokens per frame", .integer = &a->max_active},
      {"lattice-beam", "beam of lattices and of determinization, nats", .real = &a->lattice_beam},
      {"rounds", "rounds of operations on the lattices; the best is reported",
       .integer = &a->rounds}};
  const struct command command = {
      .arguments = "GRAPH SCORES [FLAGS]",
      .purpose =
          "Measures determinization, n-best lists, confidences and minimum Bayes "
          "risk on one CPU thread.",
      .flags = flags,
      .num_flags = sizeof flags / sizeof *flags,
      .take_other = take_option,
      .user = o,
      .others = "--determinize-NAME=VALUE   an option of `warpfst lattice determinize`"};
  wf_lattice_determinize_options_init(o);
  o->num_threads = 1;
  o->beam = -1;
  read_flags(&command, argc, argv, 2, 2, a->paths);
  if (o->beam < 0) o->beam = (float)a->lattice_beam;
  if (a->rounds < 1) usage_error("--rounds must be at least 1");
}

int main(int argc, char **argv) {
  static struct bench b;
  struct arguments a = {
      .acoustic_scale = 1, .beam = 15, .max_active = 7000, .lattice_beam = 8, .rounds = 5};
  wf_lattice_determinize_options o;
  read_arguments(argc, argv, &a, &o);
  b.count = read_matrices(a.paths[1], b.matrices, MAX_UTTERANCES);
  for (size_t i = 0; i < b.count; i++) {
    b.scores[i] = scores_of(&b.matrices[i]);
    b.num_frames += b.matrices[i].num_frames;
  }
  double decode_s = decode(&b, &a);
  struct figures f = {.determinize_s = 1e30,
                      .nbest_s = 1e30,
                      .short_nbest_s = 1e30,
                      .confidences_s = 1e30,
                      .mbr_s = 1e30};
  for (int64_t round = 0; round < a.rounds; round++) work(&b, &o, &f);
  printf(
      "{\"utterances\": %zu, \"frames\": %lld, \"decode_s\": %.4f, \"determinize_s\": %.4f, "
      "\"nbest_s\": %.4f, \"short_nbest_s\": %.4f, \"confidences_s\": %.4f, \"mbr_s\": %.4f, "
      "\"paths\": %llu, \"raw_states\": %llu, \"raw_arcs\": %llu, \"subsets\": "
      "%llu, "
      "\"states\": %llu, \"arcs\": %llu, \"narrowed\": %llu, \"most_bytes\": %llu}\n",
      b.count, (long long)b.num_frames, decode_s, f.determinize_s, f.nbest_s, f.short_nbest_s,
      f.confidences_s, f.mbr_s, f.paths, f.raw_states, f.raw_arcs, f.subsets, f.states, f.arcs,
      f.narrowed, f.most_bytes);
  return 0;
}
