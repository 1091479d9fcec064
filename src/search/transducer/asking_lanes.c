/* asking_lanes.c - the lanes of a batch whose requests to the model are answered together. */
#include <stdlib.h>

#include "search/transducer/transducer_shared.h"

wf_status wf__asking_lanes_make(wf__transducer_shared *shared, size_t num_lanes, size_t num_groups,
                                wf_error *err) {
  shared->lanes = wf__calloc(num_lanes, sizeof *shared->lanes);
  shared->num_lanes = num_lanes;
  shared->num_groups = num_groups;
  return shared->lanes != NULL ? WF_OK
                               : wf__fail_memory(err, num_lanes * sizeof *shared->lanes, "a batch");
}

void wf__asking_lanes_end(wf__transducer_shared *shared, const wf__round_counts *counts) {
  wf_transducer_stats *stats = &shared->stats;
  stats->num_rounds += counts->num_rounds;
  stats->search_s += counts->run_s;
  stats->submit_s += counts->score_s;
  stats->wait_s += counts->wait_s;
  free(shared->lanes);
  shared->lanes = NULL;
}
