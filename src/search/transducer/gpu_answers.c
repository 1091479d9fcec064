/* gpu_answers.c - a built-in model on GPUs. Lanes are in groups, several on each GPU: while it
 * computes for one, threads search the lanes of another. */
#include <stdlib.h>

#include "search/devices.h"
#include "search/transducer/transducer_shared.h"

#define MOST_ANSWER_BYTES ((uint64_t)512 << 20) /* of all groups, in page-locked memory */

wf_status wf__gpu_answers_open(wf__transducer_shared *shared, wf_error *err) {
  wf__devices devices;
  WF__TRY(wf__devices_parse(shared->options.device, &devices, err));
  int count = devices.count;
  if (!devices.cuda) return WF_OK;
  if (wf__device_find(shared->options.device, err) == NULL) return WF_ERR_DEVICE;
  if (count == 0) WF__TRY(wf__gpu_transducers()->count_gpus(&count, err));
  if (count > WF__TRANSDUCER_GPUS)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "device %s: a transducer works on at most %d GPUs",
                    shared->options.device, WF__TRANSDUCER_GPUS);
  for (int d = 0; d < count; d++, shared->num_gpus++)
    WF__TRY(wf__gpu_transducers()->weights_send(
        shared->model, devices.count > 0 ? devices.numbers[d] : d, &shared->weights[d], err));
  return WF_OK;
}

static void close_groups(wf__transducer_group **groups, size_t count) {
  for (size_t g = 0; g < count; g++) {
    if (groups[g] != NULL) wf__gpu_transducers()->group_close(groups[g]);
    groups[g] = NULL;
  }
}

void wf__gpu_answers_close(wf__transducer_shared *shared) {
  wf__device_search_close(shared);
  close_groups(shared->batch_groups, WF__TRANSDUCER_GROUPS * shared->num_gpus);
  close_groups(shared->stream_groups, shared->num_gpus);
  for (size_t d = 0; d < shared->num_gpus; d++)
    wf__gpu_transducers()->weights_free(shared->weights[d]);
}

/* There is limited room for the answers. */
static size_t most_lanes(const void *opaque) {
  const wf__transducer_shared *shared = opaque;
  const uint64_t bytes =
      wf__most_hypotheses(shared) * wf__transducer_num_logits(shared->model) * sizeof(float);
  const uint64_t most = MOST_ANSWER_BYTES / bytes;
  return shared->num_gpus * (most < WF__TRANSDUCER_GROUPS  ? WF__TRANSDUCER_GROUPS
                             : most > WF__TRANSDUCER_LANES ? WF__TRANSDUCER_LANES
                                                           : (size_t)most);
}

/* So that a lane has the same group in a batch of any size, lanes go to groups in turn: a lane's
 * contexts are in its group's memory. */
static size_t most_groups(const void *shared) {
  return WF__TRANSDUCER_GROUPS * ((const wf__transducer_shared *)shared)->num_gpus;
}

static size_t num_places(const void *shared) {
  return ((const wf__transducer_shared *)shared)->num_gpus;
}

static wf_status begin_group(wf__transducer_shared *shared, size_t g, const int64_t *num_frames,
                             int64_t *scratch, wf_error *err) {
  const wf__score_cut cut = wf__gpu_score_cut(shared);
  size_t count = 0;
  for (size_t i = g; i < shared->num_lanes; i += shared->num_groups)
    scratch[count++] = num_frames[i];
  if (shared->groups[g] == NULL)
    WF__TRY(wf__gpu_transducers()->group_open(shared->weights[g % shared->num_gpus],
                                              &shared->groups[g], err));
  return wf__gpu_transducers()->group_begin(shared->groups[g], &cut, scratch, count, shared->stream,
                                            err);
}

static wf_status begin(void *opaque, bool streams, const int64_t *num_frames, size_t num_lanes,
                       size_t num_groups, wf_error *err) {
  wf__transducer_shared *shared = opaque;
  if (shared->broken)
    return wf__fail(err, WF_ERR_DEVICE, "an earlier CUDA error left this decoder unusable");
  shared->groups = streams ? shared->stream_groups : shared->batch_groups;
  WF__TRY(wf__asking_lanes_make(shared, num_lanes, num_groups, err));
  int64_t *scratch = wf__alloc(num_lanes, sizeof *scratch);
  wf_status status = scratch != NULL ? WF_OK : wf__fail_memory(err, num_lanes * 8, "a batch");
  for (size_t g = 0; g < num_groups && status == WF_OK; g++)
    status = begin_group(shared, g, num_frames, scratch, err);
  free(scratch);
  return status;
}

static wf_status take(void *opaque, size_t lane, const wf_scores *scores, wf_error *err) {
  wf__transducer_shared *shared = opaque;
  const size_t d = lane % shared->num_groups % shared->num_gpus;
  shared->lanes[lane].scores = scores;
  return wf__gpu_transducers()->scores_where(shared->weights[d], scores, shared->stream,
                                             &shared->lanes[lane].where, err);
}

static void ask(void *opaque, size_t lane, wf__searcher *searcher) {
  const wf__transducer_shared *shared = opaque;
  wf__asking_lane *own = &shared->lanes[lane];
  wf__gpu_transducers()->group_put(shared->groups[lane % shared->num_groups],
                                   lane / shared->num_groups, own->scores, own->where,
                                   &((wf__transducer_search *)searcher)->predictions);
  own->scores = NULL;
}

static wf_status submit(void *opaque, size_t group, wf_error *err) {
  wf__transducer_shared *shared = opaque;
  wf__transducer_counts counts;
  WF__TRY(wf__gpu_transducers()->group_submit(shared->groups[group], &counts, err));
  shared->stats.num_rows += counts.num_rows;
  shared->stats.num_contexts += counts.num_contexts;
  return WF_OK;
}

static wf_status wait_for_group(void *shared, size_t group, wf_error *err) {
  return wf__gpu_transducers()->group_wait(((wf__transducer_shared *)shared)->groups[group], err);
}

/* After an error of streams, ends what is under way. Groups stay, because other streams have
 * contexts in their memory; after an error of CUDA, nothing there can be used. */
static void end_streams(wf__transducer_shared *shared, wf_status status) {
  for (size_t d = 0; d < shared->num_gpus && status != WF_ERR_DEVICE; d++)
    if (shared->stream_groups[d] != NULL &&
        wf__gpu_transducers()->group_wait(shared->stream_groups[d], NULL) != WF_OK)
      status = WF_ERR_DEVICE;
  shared->broken = status == WF_ERR_DEVICE;
  if (!shared->broken) return;
  wf__device_search_close(shared); /* has them, too */
  close_groups(shared->stream_groups, shared->num_gpus);
}

/* After an error of a batch, answers are under way, or lost: its groups are opened anew. */
static void end(void *opaque, wf_status status, const wf__round_counts *counts) {
  wf__transducer_shared *shared = opaque;
  wf__asking_lanes_end(shared, counts);
  if (status == WF_OK || shared->broken) return;
  if (shared->groups == shared->stream_groups) {
    end_streams(shared, status);
    return;
  }
  close_groups(shared->batch_groups, WF__TRANSDUCER_GROUPS * shared->num_gpus);
  shared->broken = status == WF_ERR_DEVICE;
}

const wf__answer_ops wf__gpu_answers = {.most_lanes = most_lanes,
                                        .most_groups = most_groups,
                                        .num_places = num_places,
                                        .begin = begin,
                                        .take = take,
                                        .ask = ask,
                                        .submit = submit,
                                        .wait = wait_for_group,
                                        .end = end,
                                        .covers = wf__device_search_covers,
                                        .covers_chunk = wf__device_search_covers_chunk,
                                        .decode = wf__device_search_decode,
                                        .path = wf__device_search_path,
                                        .follow = wf__device_search_follow};
