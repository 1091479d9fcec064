/* soak_graphs.c - builds CTC and hybrid graphs on the GPU and on the CPU. Both must have the same
 * bytes, or the same error; graphs that stay in the GPU's memory must decode to the same words. */
#include "graph_tasks.h"
#include "soak.h"

enum { ROUNDS = SOAK_SMALL ? 1 : 8 };

static void compare(test_rng *rng, const wf_status status[2], const wf_error err[2],
                    wf_fst *graph[2], bool keep) {
  if (status[0] != status[1] || strcmp(err[0].message, err[1].message) != 0)
    fail_msg("on the GPU: '%s'; on the CPU: '%s'", err[1].message, err[0].message);
  if (status[0] == WF_OK && soak_plant()) {
    wf_fst_free(graph[1]);
    graph[1] = test_fst_of(WF_TROPICAL, "0 1 1 1 0.5;1 0");
  }
  if (status[0] == WF_OK) assert_same_bytes(graph[1], graph[0], "graph built on the GPU");
  /* Without room on the GPU, the graph is in host memory. */
  if (status[0] == WF_OK)
    check_kept(rng, graph, keep && wf__fst_device(graph[1]) >= 0, "graph built on the GPU");
  for (int k = 0; k < 2; k++) wf_fst_free(graph[k]);
}

static void soak_ctc_graph(test_rng *rng, bool keep) {
  struct ctc_task task;
  wf_error err[2] = {{0}, {0}};
  wf_fst *graph[2];
  wf_status status[2];
  random_ctc_task(rng, test_next(rng), &task);
  for (int k = 0; k < 2; k++)
    status[k] = build_ctc(&task, k == 0 ? "cpu" : "cuda", keep, &graph[k], &err[k]);
  compare(rng, status, err, graph, keep);
  free_ctc_task(&task);
}

static void soak_hmm_graph(test_rng *rng, bool kaldi, bool keep) {
  struct hmm_task task;
  wf_error err[2] = {{0}, {0}};
  wf_fst *graph[2];
  wf_status status[2];
  (kaldi ? random_kaldi_task : random_sphinx_task)(rng, test_next(rng), &task);
  for (int k = 0; k < 2; k++)
    status[k] = build_hmm(&task, k == 0 ? NULL : "cuda", NULL, false, keep, &graph[k], &err[k]);
  compare(rng, status, err, graph, keep);
  free_hmm_task(&task);
}

void soak_graphs(test_rng *rng, struct soak_counts *counts) {
  for (int round = 0; round < ROUNDS; round++) {
    const uint32_t which = test_below(rng, 3);
    const bool keep = test_below(rng, 3) == 0;
    soak_note("round %d: a %s graph%s", round,
              which == 0   ? "CTC"
              : which == 1 ? "Kaldi"
                           : "Sphinx",
              keep ? ", kept in the GPU's memory" : "");
    which == 0 ? soak_ctc_graph(rng, keep) : soak_hmm_graph(rng, which == 1, keep);
    counts->operations++;
  }
}
