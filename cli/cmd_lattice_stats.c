/* cmd_lattice_stats.c - `warpfst lattice stats`: reports the sizes of lattices, of each and in
 * total. */

#include "lattice_common.h"

typedef struct sums {
  uint64_t lattices, states, arcs, word_arcs, labels, frames;
} sums;

static void print_number(const char *name, double value, bool json) {
  if (!json) {
    printf(" %.6g", value);
  } else {
    printf(", \"%s\": ", name);
    cli_json_number(stdout, "%.6g", value);
  }
}

static void print_one(const char *key, const wf_lattice_stats *stats, bool json) {
  const struct {
    const char *name;
    double value;
  } numbers[] = {{"frames", (double)stats->num_frames}, {"states", (double)stats->num_states},
                 {"arcs", (double)stats->num_arcs},     {"word_arcs", (double)stats->num_word_arcs},
                 {"final", (double)stats->num_final},   {"depth", stats->depth},
                 {"log_paths", stats->log_paths},       {"best_cost", stats->best_cost},
                 {"total_cost", stats->total_cost}};
  if (json) {
    printf("{\"key\": ");
    cli_json_string(stdout, key);
  } else {
    printf("%s", key);
  }
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    print_number(numbers[i].name, numbers[i].value, json);
  printf(json ? "}\n" : "\n");
}

static wf_status run_all(lattice_input *input, bool each, bool json, sums *all, wf_error *err) {
  wf_lattice_entry entry;
  wf_status status = WF_OK;
  while (status == WF_OK && lattice_next(input, &entry)) {
    wf_lattice_stats stats;
    wf_lattice_stats_init(&stats);
    status = wf_compact_lattice_get_stats(entry.compact, &stats, err);
    if (status == WF_OK) {
      if (each) print_one(entry.key, &stats, json);
      all->lattices++;
      all->states += stats.num_states;
      all->arcs += stats.num_arcs;
      all->word_arcs += stats.num_word_arcs;
      all->labels += stats.num_labels;
      all->frames += (uint64_t)stats.num_frames;
    } else if (lattice_failed(input, &entry, err)) {
      status = WF_OK;
    }
    wf_lattice_entry_clear(&entry);
  }
  return status;
}

int cmd_lattice_stats(int argc, char **argv) {
  bool each = false, json = false;
  lattice_input input = {0};
  sums all = {0};
  cli_parser parser = {
      .usage = "LATTICES...",
      .about =
          "Reports the total size of the lattices: states, arcs, arcs with a word, frames, "
          "and depth, the mean number of arcs that cross a frame.\n"
          "With --each, first prints a line for each lattice: key frames states arcs word_arcs "
          "final depth log_paths best_cost total_cost.",
      .min_args = 1,
      .max_args = -1};
  cli_flag_bool(&parser, "each", 0, &each, "also report every lattice");
  cli_flag_bool(&parser, "json", 0, &json, "print JSON, one object per line");
  lattice_flags(&parser, &input);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_error err = {0};
  input.options.kind = WF_LATTICE_COMPACT;
  wf_status status = lattice_open(&input, parser.args, parser.num_args, &err);
  if (status == WF_OK) status = run_all(&input, each, json, &all, &err);
  lattice_close(&input);
  if (status != WF_OK) return cli_fail(&err);
  double depth = all.frames > 0 ? (double)all.labels / (double)all.frames : 0,
         words = all.frames > 0 ? (double)all.word_arcs / (double)all.frames : 0;
  if (json)
    printf(
        "{\"lattices\": %llu, \"frames\": %llu, \"states\": %llu, \"arcs\": %llu, \"word_arcs\": "
        "%llu, \"depth\": %.6g, \"word_arcs_per_frame\": %.6g}\n",
        (unsigned long long)all.lattices, (unsigned long long)all.frames,
        (unsigned long long)all.states, (unsigned long long)all.arcs,
        (unsigned long long)all.word_arcs, depth, words);
  else
    printf(
        "%llu lattice%s, %llu frames, %llu states, %llu arcs (%llu with a word)\ndepth %.3f, %.4f "
        "word arcs per frame\n",
        (unsigned long long)all.lattices, cli_s(all.lattices), (unsigned long long)all.frames,
        (unsigned long long)all.states, (unsigned long long)all.arcs,
        (unsigned long long)all.word_arcs, depth, words);
  return lattice_exit_code(&input);
}
