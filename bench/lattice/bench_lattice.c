/* bench_lattice.c - measures decoding with lattices on one CPU thread, the size of lattices, and
 * their oracle errors.
 *
 *     bench_lattice GRAPH SCORES [--FLAG=VALUE...]      --help lists the flags
 *
 * Decodes everything in rounds, without and with lattices in turn. Prints a JSON line: the best
 * seconds of each, lattice sizes, memory of the process after reading and its peak in decoding.
 * With references: number of words, errors of the best paths, errors of the best path in each
 * lattice (oracle), and number of utterances whose lattice contains the reference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "peak_memory.h"
#include "warpfst_all.h"

enum { MAX_UTTERANCES = 4096 };

struct bench {
  wf_matrix matrices[MAX_UTTERANCES];
  wf_scores scores[MAX_UTTERANCES];
  wf_result *results[MAX_UTTERANCES];
  size_t count;
  int64_t num_frames;
  wf_symbols *words;
  wf_transcripts *references;
  uint64_t states, arcs, emitting, spoken, best_errors, oracle_errors, with_reference;
};

/* Truncates to binary16; scores are within its range. */
static uint16_t half_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  int32_t exponent = (int32_t)(bits >> 23 & 255) - 112;
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  if (exponent <= 0) return sign;
  return exponent > 30 ? sign | 0x7bff
                       : sign | (uint16_t)(exponent << 10) | (uint16_t)(bits >> 13 & 1023);
}

static void tile(struct bench *b, int64_t num_frames) {
  int32_t columns = b->matrices[0].num_columns;
  uint16_t *data = allocate((size_t)num_frames * (size_t)columns, sizeof *data);
  for (int64_t t = 0, i = 0, row = 0; t < num_frames; t++, row++) {
    for (; row == b->matrices[i].num_frames; row = 0) i = (i + 1) % (int64_t)b->count;
    for (int32_t c = 0; c < columns; c++)
      data[t * columns + c] = half_of(b->matrices[i].data[row * columns + c]);
  }
  for (size_t i = 0; i < b->count; i++) wf_matrix_clear(&b->matrices[i]);
  b->scores[0] = (wf_scores){.data = data,
                             .num_frames = num_frames,
                             .num_columns = columns,
                             .stride = columns,
                             .dtype = WF_FLOAT16};
  b->count = 1;
}

/* Fewest edits between the reference and any path. Dynamic programming over (state, number of
 * reference words consumed). */
static uint64_t oracle_errors(const struct bench *b, const wf_lattice_view *lattice,
                              const wf_transcript *reference) {
  size_t width = reference->num_words + 1;
  uint32_t *cells = allocate(lattice->num_states * width, sizeof *cells), least = UINT32_MAX / 2;
  int64_t *said = allocate(width, sizeof *said);
  for (size_t i = 0; i + 1 < width; i++) said[i] = wf_symbols_find(b->words, reference->words[i]);
  for (uint64_t i = 1; i < lattice->num_states * width; i++) cells[i] = UINT32_MAX / 2;
  for (uint64_t s = 0; s < lattice->num_states; s++) {
    uint32_t *here = cells + s * width;
    for (size_t i = 1; i < width; i++)
      if (here[i - 1] + 1 < here[i]) here[i] = here[i - 1] + 1;
    if (lattice->final_graph_cost[s] < 1e30f && here[width - 1] < least) least = here[width - 1];
    for (uint64_t a = lattice->arc_off[s]; a < lattice->arc_off[s + 1]; a++) {
      const wf_lattice_arc *arc = &lattice->arcs[a];
      uint32_t *next = cells + (uint64_t)arc->nextstate * width;
      for (size_t i = 0; i < width; i++) {
        uint32_t along = here[i] + (arc->olabel != 0),
                 pair =
                     i + 1 < width && arc->olabel != 0 ? here[i] + (said[i] != arc->olabel) : along;
        if (along < next[i]) next[i] = along;
        if (arc->olabel != 0 && i + 1 < width && pair < next[i + 1]) next[i + 1] = pair;
      }
    }
  }
  free(cells);
  free(said);
  return least;
}

/* Edits of the best path, computed as for a lattice of one path. */
static uint64_t best_errors(const struct bench *b, const wf_result *result,
                            const wf_transcript *reference) {
  size_t n = result->num_words;
  wf_lattice_arc *arcs = allocate(n, sizeof *arcs);
  uint64_t *off = allocate(n + 2, sizeof *off);
  float *final = allocate(n + 1, sizeof *final);
  for (size_t i = 0; i <= n; i++) {
    off[i] = i;
    final[i] = i == n ? 0 : 1e38f;
    if (i < n)
      arcs[i] = (wf_lattice_arc){.olabel = result->words[i].label, .nextstate = (int32_t)i + 1};
  }
  off[n + 1] = n;
  wf_lattice_view path = {
      .num_states = n + 1, .num_arcs = n, .arc_off = off, .arcs = arcs, .final_graph_cost = final};
  uint64_t errors = oracle_errors(b, &path, reference);
  free(arcs);
  free(off);
  free(final);
  return errors;
}

static void add_result(struct bench *b, size_t i) {
  const wf_result *result = b->results[i];
  wf_lattice_view lattice = wf_lattice_get_view(result->lattice);
  b->states += lattice.num_states;
  b->arcs += lattice.num_arcs;
  for (uint64_t a = 0; a < lattice.num_arcs; a++) b->emitting += lattice.arcs[a].ilabel != 0;
  int64_t at = b->references != NULL && b->matrices[i].key != NULL
                   ? wf_transcripts_find(b->references, b->matrices[i].key)
                   : -1;
  if (at < 0) return;
  wf_transcript reference = wf_transcripts_at(b->references, (size_t)at);
  uint64_t errors = oracle_errors(b, &lattice, &reference);
  b->spoken += reference.num_words;
  b->best_errors += best_errors(b, result, &reference);
  b->oracle_errors += errors;
  b->with_reference += errors == 0;
}

/* Decodes everything and returns the seconds. If `sum`, adds the results to the totals. */
static double decode(struct bench *b, wf_decoder *decoder, bool sum) {
  wf_error err = {0};
  double start = cpu_s();
  check(decode_scores(decoder, b->scores, b->count, b->results, &err), &err);
  double took = cpu_s() - start;
  for (size_t i = 0; i < b->count; i++) {
    if (b->results[i]->status != WF_OK) {
      fprintf(stderr, "bench_lattice: %s\n", b->results[i]->message);
      exit(1);
    }
    if (sum) add_result(b, i);
    wf_result_free(b->results[i]);
  }
  return took;
}

struct arguments {
  const char *paths[2]; /* graph, scores */
  const char *words, *references;
  double acoustic_scale, beam, lattice_beam;
  int64_t max_active, prune_interval, rounds, frames;
};

static void read_arguments(int argc, char **argv, struct arguments *a) {
  const struct flag flags[] = {
      {"acoustic-scale", "factor on the scores", .real = &a->acoustic_scale},
      {"beam", "beam of the search, nats", .real = &a->beam},
      {"max-active", "largest number of tokens per frame", .integer = &a->max_active},
      {"lattice-beam", "nats", .real = &a->lattice_beam},
      {"prune-interval", "frames between prunings of the lattice", .integer = &a->prune_interval},
      {"rounds", "rounds without and with lattices; the best is reported", .integer = &a->rounds},
      {"frames", "decodes one utterance of N frames, the scores concatenated as float16; 0: off",
       .integer = &a->frames},
      {"words", "symbol table, needed with --references", .text = &a->words},
      {"references", "transcripts; word errors are then counted", .text = &a->references}};
  const struct command command = {
      .arguments = "GRAPH SCORES [FLAGS]",
      .purpose =
          "Measures decoding with lattices on one CPU thread, lattice sizes, and "
          "oracle errors.",
      .flags = flags,
      .num_flags = sizeof flags / sizeof *flags};
  read_flags(&command, argc, argv, 2, 2, a->paths);
  if (a->rounds < 1) usage_error("--rounds must be at least 1");
  if ((a->words != NULL) != (a->references != NULL))
    usage_error("--words and --references must be given together");
}

int main(int argc, char **argv) {
  static struct bench b;
  wf_error err = {0};
  struct arguments a = {.acoustic_scale = 1,
                        .beam = 15,
                        .max_active = 7000,
                        .lattice_beam = 8,
                        .prune_interval = 25,
                        .rounds = 3};
  read_arguments(argc, argv, &a);
  wf_fst *fst;
  wf_graph *graph;
  wf_decoder *plain, *decoder;
  check(wf_fst_read(a.paths[0], &fst, &err), &err);
  check(wf_graph_create(fst, NULL, 0, &graph, &err), &err);
  b.count = read_matrices(a.paths[1], b.matrices, MAX_UTTERANCES);
  for (size_t i = 0; i < b.count; i++) b.scores[i] = scores_of(&b.matrices[i]);
  if (a.words != NULL) {
    check(wf_symbols_read(a.words, &b.words, &err), &err);
    check(wf_transcripts_read(a.references, WF_TRANSCRIPT_AUTO, &b.references, &err), &err);
  }
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.acoustic_scale = (float)a.acoustic_scale;
  options.beam = (float)a.beam;
  options.max_active = (int32_t)a.max_active;
  options.num_threads = 1;
  check(wf_decoder_create(graph, &options, &plain, &err), &err);
  options.lattice_beam = (float)a.lattice_beam;
  options.lattice_prune_interval = (int32_t)a.prune_interval;
  check(wf_decoder_create(graph, &options, &decoder, &err), &err);
  if (a.frames > 0 && b.count > 0) tile(&b, a.frames);
  for (size_t i = 0; i < b.count; i++) b.num_frames += b.scores[i].num_frames;
  if (!forget_peak()) return 1;
  double read_mib = memory_mib("VmRSS:"), plain_s = 1e30, lattice_s = 1e30, plain_mib = 0;
  for (int64_t round = 0; round < a.rounds; round++) {
    double took = decode(&b, plain, false);
    plain_s = took < plain_s ? took : plain_s;
    if (round == 0) plain_mib = memory_mib("VmHWM:");
    took = decode(&b, decoder, round + 1 == a.rounds);
    lattice_s = took < lattice_s ? took : lattice_s;
  }
  printf(
      "{\"utterances\": %zu, \"frames\": %lld, \"plain_s\": %.4f, \"lattice_s\": %.4f, \"states\": "
      "%llu, \"arcs\": %llu, \"density\": %.3f, \"read_mib\": %.1f, \"plain_mib\": %.1f, "
      "\"peak_mib\": %.1f",
      b.count, (long long)b.num_frames, plain_s, lattice_s, (unsigned long long)b.states,
      (unsigned long long)b.arcs, (double)b.emitting / (double)b.num_frames, read_mib, plain_mib,
      memory_mib("VmHWM:"));
  if (b.references != NULL)
    printf(
        ", \"words\": %llu, \"best_errors\": %llu, \"oracle_errors\": %llu, \"with_reference\": "
        "%llu",
        (unsigned long long)b.spoken, (unsigned long long)b.best_errors,
        (unsigned long long)b.oracle_errors, (unsigned long long)b.with_reference);
  printf("}\n");
  return 0;
}
