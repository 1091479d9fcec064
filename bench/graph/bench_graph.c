/* bench_graph.c - measures each step of building a hybrid graph, in one process: min(det(H o
 * min(det(C o min(det(L o G)))))).
 *
 *     bench_graph FOLDER [--am=FOLDER] [--threads=N] [--steps=FOLDER] [--finish=HCLG] [-o OUT]
 *
 * With an acoustic model (a folder of CMU Sphinx), self-loops are added and the result is written
 * to OUT. As a last step, a graph without input epsilons is made from it. --finish reads the
 * min(...) from a file (for example OpenFst's) instead of building it.
 *
 * FOLDER has L.fst, G.fst, C.fst, H.fst and info.txt, as bench/graph/hybrid_task.py makes them. Prints
 * a line per step: name, processor seconds, wall seconds, peak MiB of the process during the step
 * (including the step's inputs), states, arcs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "graph/emitting_only.h"
#include "graph/hmm.h"
#include "warpfst_all.h"

struct run {
  const char *folder, *am, *steps, *finish, *output;
  int32_t num_threads;
  double cpu_s, wall_s;
  wf_fst *fst; /* result of the last step */
};

static wf_error g_err;

/* Returns the peak resident memory since the last call, in MiB, and resets Linux's counter. */
static double peak_mib(void) {
  char line[256];
  double kib = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "VmHWM: %lf", &kib) == 1) break;
  if (file != NULL) fclose(file);
  file = fopen("/proc/self/clear_refs", "w");
  if (file != NULL) fputs("5", file);
  if (file != NULL) fclose(file);
  return kib / 1024;
}

static void begin(struct run *run) {
  peak_mib();
  run->cpu_s = cpu_s();
  run->wall_s = now_s();
}

/* Reports a step. Its result replaces that of the previous step. */
static wf_status end(struct run *run, const char *name, wf_fst *fst) {
  double cpu = cpu_s() - run->cpu_s, wall = now_s() - run->wall_s;
  wf_fst_view view = wf_fst_get_view(fst);
  printf("%s\t%.3f\t%.3f\t%.1f\t%llu\t%llu\n", name, cpu, wall, peak_mib(),
         (unsigned long long)view.num_states, (unsigned long long)view.num_arcs);
  fflush(stdout);
  wf_fst_free(run->fst);
  run->fst = fst;
  if (run->steps == NULL) return WF_OK;
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.fst", run->steps, name);
  for (char *c = path + strlen(run->steps) + 1; *c != '\0'; c++) *c = *c == ' ' ? '_' : *c;
  return wf_fst_write(fst, path, WF_FORMAT_OPENFST_CONST, &g_err);
}

static wf_status load(const struct run *run, const char *name, wf_fst **out) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.fst", run->folder, name);
  return wf_fst_read(path, out, &g_err);
}

/* Composes the fst `left` with the current result, then determinizes and minimizes. */
static wf_status add_level(struct run *run, const char *left, const char *name) {
  char step[64];
  wf_fst *a, *out = NULL;
  wf_status status = load(run, left, &a);
  if (status != WF_OK) return status;
  wf_compose_options compose;
  wf_compose_options_init(&compose);
  compose.num_threads = run->num_threads;
  begin(run);
  status = wf_compose(a, run->fst, &compose, &out, &g_err);
  wf_fst_free(a);
  snprintf(step, sizeof step, "compose %s", name);
  if (status == WF_OK) status = end(run, step, out);
  if (status != WF_OK) return status;

  wf_determinize_options determinize;
  wf_determinize_options_init(&determinize);
  determinize.num_threads = run->num_threads;
  begin(run);
  status = wf_determinize(run->fst, &determinize, &out, &g_err);
  snprintf(step, sizeof step, "determinize %s", name);
  if (status == WF_OK) status = end(run, step, out);
  if (status != WF_OK) return status;

  wf_minimize_options minimize;
  wf_minimize_options_init(&minimize);
  minimize.num_threads = run->num_threads;
  begin(run);
  status = wf_minimize(run->fst, &minimize, &out, &g_err);
  snprintf(step, sizeof step, "minimize %s", name);
  return status == WF_OK ? end(run, step, out) : status;
}

/* Turns input labels of disambiguation symbols, which follow the senones, into epsilon. */
static wf_status remove_disambig(struct run *run) {
  char path[4096];
  int32_t num_senones, count, labels[1000];
  snprintf(path, sizeof path, "%s/info.txt", run->folder);
  FILE *file = fopen(path, "r");
  bool good = file != NULL && fscanf(file, "%d %d", &num_senones, &count) == 2 && count <= 1000;
  if (file != NULL) fclose(file);
  if (!good) {
    snprintf(g_err.message, sizeof g_err.message, "%s: cannot be read", path);
    return WF_ERR_IO;
  }
  for (int32_t i = 0; i < count; i++) labels[i] = num_senones + 1 + i;
  wf_fst *out;
  begin(run);
  wf_status status = wf_remove_disambig(run->fst, labels, (size_t)count, &out, &g_err);
  return status == WF_OK ? end(run, "relabel HCLG", out) : status;
}

/* Adds self-loops as mkgraph hmm does. H of this task already has the costs of leaving a state, so
 * the loops only get the cost of staying. */
static wf_status add_loops(struct run *run) {
  wf_hmm *hmm;
  wf_fst *looped = NULL, *ordered = NULL;
  wf_status status = wf_hmm_read_sphinx(run->am, &hmm, &g_err);
  if (status != WF_OK) return status;
  for (size_t label = 1; label < hmm->labels.size; label++)
    hmm->labels.data[label].forward_cost = 0;
  begin(run);
  status = wf__hmm_add_loops(hmm, run->fst, 1 / hmm->lm_weight, &looped, &g_err);
  if (status == WF_OK) status = wf_epsilons_last(looped, &ordered, &g_err);
  if (status == WF_OK) status = end(run, "self-loops HCLG", ordered);
  wf_fst_free(looped);
  wf_hmm_free(hmm);
  return status;
}

static wf_status remove_epsilons(struct run *run) {
  wf_fst *out;
  begin(run);
  wf_status status = wf__emitting_only(run->fst, 0, 0, &out, &g_err);
  return status == WF_OK ? end(run, "no input epsilons HCLG", out) : status;
}

static wf_status build(struct run *run) {
  wf_status status =
      run->finish != NULL ? wf_fst_read(run->finish, &run->fst, &g_err) : load(run, "G", &run->fst);
  static const char *const levels[][2] = {{"L", "LG"}, {"C", "CLG"}, {"H", "HCLG"}};
  for (int i = 0; i < 3 && status == WF_OK && run->finish == NULL; i++)
    status = add_level(run, levels[i][0], levels[i][1]);
  if (status == WF_OK) status = remove_disambig(run);
  if (status == WF_OK && run->am != NULL) status = add_loops(run);
  if (status == WF_OK && run->output != NULL)
    status = wf_fst_write(run->fst, run->output, WF_FORMAT_OPENFST_CONST, &g_err);
  if (status == WF_OK && run->am != NULL) status = remove_epsilons(run);
  return status;
}

int main(int argc, char **argv) {
  struct run run = {0};
  bool good = true;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
      run.output = argv[++i];
    else if (strncmp(argv[i], "--threads=", 10) == 0)
      run.num_threads = atoi(argv[i] + 10);
    else if (strncmp(argv[i], "--steps=", 8) == 0)
      run.steps = argv[i] + 8;
    else if (strncmp(argv[i], "--am=", 5) == 0)
      run.am = argv[i] + 5;
    else if (strncmp(argv[i], "--finish=", 9) == 0)
      run.finish = argv[i] + 9;
    else if (argv[i][0] != '-' && run.folder == NULL)
      run.folder = argv[i];
    else
      good = false;
  }
  if (!good || run.folder == NULL) {
    fprintf(stderr,
            "usage: bench_graph FOLDER [--am=FOLDER] [--finish=HCLG] [--threads=N] "
            "[--steps=FOLDER] [-o OUT]\n");
    return 2;
  }
  wf_status status = build(&run);
  wf_fst_free(run.fst);
  if (status != WF_OK) fprintf(stderr, "bench_graph: %s\n", g_err.message);
  return status == WF_OK ? 0 : 1;
}
