/* move_scores.c - scores from one GPU to another. On the GPU where they lie, a kernel packs all
 * that go to other GPUs; then one copy sends those of each target. So the scores may be memory of
 * any allocator, and a copy is direct if the two GPUs have peer access. If not, the driver sends
 * it through the host. */
#include "cuda/decoder/move_scores.h"

#include <stdatomic.h>

#include "base/callbacks.h"

/* --- which GPU searches what ------------------------------------------------------------- */

/* A GPU of the decoder, or one with scores. */
struct gpu {
  int device;
  bool works;         /* it is one of the decoder's */
  double speed;       /* of its workers, compared with the others */
  double frames;      /* of the scores that lie there */
  double missing;     /* frames that it still gets from others */
  double moved_share; /* of its frames */
  double owed;        /* frames to move so far */
};

enum { MAX_GPUS = 128 }; /* more than CUDA supports */

struct gpus {
  struct gpu all[MAX_GPUS];
  int count;
};

static struct gpu *gpu_of(struct gpus *gpus, int device) {
  int i = 0;
  while (i < gpus->count && gpus->all[i].device != device) i++;
  if (i == gpus->count) gpus->all[gpus->count++] = (struct gpu){.device = device};
  return &gpus->all[i];
}

static double frames_of(const wf_scores *scores) { return (double)scores->num_frames + 1; }

/* Lists the decoder's GPUs with their speeds; equal ones if some are not known. */
static void add_workers(struct gpus *gpus, const struct wf__cuda_backend *self) {
  bool known = true;
  for (int i = 0; i < self->num_workers; i++)
    known = known && self->workers[i].experience.frames_per_s > 0;
  for (int i = 0; i < self->num_workers; i++) {
    const wf__gpu_worker *worker = &self->workers[i];
    struct gpu *gpu = gpu_of(gpus, worker->device);
    gpu->works = true;
    gpu->speed = known ? gpu->speed + worker->experience.frames_per_s : 1;
  }
}

static void plan_shares(struct gpus *gpus, double frames) {
  double speeds = 0;
  for (int i = 0; i < gpus->count; i++) speeds += gpus->all[i].speed;
  for (int i = 0; i < gpus->count; i++) {
    struct gpu *gpu = &gpus->all[i];
    const double kept = frames * gpu->speed / speeds;
    gpu->missing = kept > gpu->frames ? kept - gpu->frames : 0;
    gpu->moved_share = gpu->frames > kept ? (gpu->frames - kept) / gpu->frames : 0;
  }
}

static struct gpu *neediest(struct gpus *gpus) {
  struct gpu *best = NULL;
  for (int i = 0; i < gpus->count; i++)
    if (gpus->all[i].works && (best == NULL || gpus->all[i].missing > best->missing))
      best = &gpus->all[i];
  return best;
}

static bool works(const struct wf__cuda_backend *self, int device) {
  return wf__devices_sharing(&self->devices, device) > 0;
}

/* Leaves scores where they are if their copies would take too much of gpu_memory. */
static void respect_memory(const struct wf__cuda_backend *self, const wf_scores *scores,
                           const uint32_t *order, uint32_t num_chosen, const int *homes,
                           int *targets) {
  uint64_t bytes = 0;
  if (self->options.gpu_memory == 0) return;
  for (uint32_t i = 0; i < num_chosen; i++)
    if (targets[order[i]] != homes[order[i]])
      bytes += (uint64_t)scores[order[i]].num_frames * (uint64_t)self->graph->min_columns *
               wf__dtype_bytes(scores[order[i]].dtype);
  if (bytes <= (uint64_t)self->options.gpu_memory / 4) return;
  for (uint32_t i = 0; i < num_chosen; i++)
    if (works(self, homes[order[i]])) targets[order[i]] = homes[order[i]];
}

void wf__spread_scores(const struct wf__cuda_backend *self, const wf_scores *scores,
                       const uint32_t *order, uint32_t num_chosen, const int *homes, int *targets) {
  struct gpus gpus = {.count = 0};
  double frames = 0;
  add_workers(&gpus, self);
  for (uint32_t i = 0; i < num_chosen; i++) {
    const int home = homes[order[i]];
    targets[order[i]] = home;
    if (home < 0) continue;
    gpu_of(&gpus, home)->frames += frames_of(&scores[order[i]]);
    frames += frames_of(&scores[order[i]]);
  }
  plan_shares(&gpus, frames);
  for (uint32_t i = 0; i < num_chosen; i++) {
    const uint32_t u = order[i];
    if (homes[u] < 0) continue;
    struct gpu *home = gpu_of(&gpus, homes[u]);
    const double size = frames_of(&scores[u]);
    home->owed += size * home->moved_share;
    if (home->works && home->owed <= size / 2) continue;
    struct gpu *target = neediest(&gpus);
    home->owed -= size;
    target->missing -= size;
    targets[u] = target->device;
  }
  respect_memory(self, scores, order, num_chosen, homes, targets);
}

void wf__tell_of_moving(struct wf__cuda_backend *self, int home) {
  if (home < 0 || self->told_of_moving || works(self, home)) return;
  self->told_of_moving = true;
  wf__log(WF_LOG_WARNING, "scores lie on GPU %d, which is none of this decoder's: they are copied",
          home);
}

/* --- memory ------------------------------------------------------------------------------ */

static struct wf__moved_room *room_of(struct wf__cuda_backend *self, int device) {
  for (uint64_t i = 0; i < self->moved.size; i++)
    if (self->moved.data[i].device == device) return &self->moved.data[i];
  return NULL;
}

static wf_status add_room(struct wf__cuda_backend *self, int device, wf_error *err) {
  struct wf__moved_room room = {.device = device};
  if (room_of(self, device) != NULL) return WF_OK;
  WF__TRY(wf__vec_grow(&self->moved, 1, "scores of other GPUs", err));
  WF__CUDA_TRY(cudaSetDevice(device), "choosing the GPU");
  WF__CUDA_TRY(cudaStreamCreateWithFlags(&room.stream, cudaStreamNonBlocking), "a stream");
  self->moved.data[self->moved.size++] = room;
  return WF_OK;
}

uint64_t wf__moved_bytes(const struct wf__cuda_backend *self, int device) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < self->moved.size; i++)
    if (self->moved.data[i].device == device)
      bytes += self->moved.data[i].sent.bytes + self->moved.data[i].received.bytes;
  return bytes;
}

wf_status wf__moved_wait(struct wf__cuda_backend *self, int device, wf_error *err) {
  const struct wf__moved_room *room = room_of(self, device);
  if (device >= 0 && (room == NULL || room->filled == 0)) return WF_OK;
  cudaError_t first = cudaSuccess;
  for (uint64_t i = 0; i < self->moved.size; i++) {
    const cudaError_t code = cudaStreamSynchronize(self->moved.data[i].stream);
    if (first == cudaSuccess) first = code;
  }
  return first == cudaSuccess ? WF_OK : wf__cuda_fail(err, first, "scores of another GPU");
}

void wf__move_scores_close(struct wf__cuda_backend *self) {
  for (uint64_t i = 0; i < self->moved.size; i++) {
    (void)cudaSetDevice(self->moved.data[i].device);
    cudaStreamDestroy(self->moved.data[i].stream);
    cudaFree(self->moved.data[i].sent.data);
    cudaFree(self->moved.data[i].received.data);
  }
  wf__vec_free(&self->moved);
}

/* --- moving ------------------------------------------------------------------------------ */

struct moving {
  struct wf__cuda_backend *self;
  const wf_scores *scores;
  const int *homes, *targets;
  size_t count;
  wf_scores *moved;
};

static bool is_moved(const struct moving *m, size_t i) {
  return m->homes[i] >= 0 && m->targets[i] >= 0 && m->homes[i] != m->targets[i] &&
         m->scores[i].num_frames > 0 && m->self->graph->min_columns > 0;
}

static uint64_t bytes_of(const struct moving *m, size_t i) {
  const int32_t columns = m->self->graph->min_columns;
  const wf_scores host = {.dtype = m->scores[i].dtype};
  return wf__gpu_packed_bytes(&host, m->scores[i].num_frames, columns);
}

/* Makes room for an eighth more than needed, since the next batch may move a little more and
 * allocating takes long. The stream of another GPU may write there next, which does not wait for
 * what this GPU does with new memory: compute-sanitizer marks it as not written. */
static wf_status reserve(wf__device_buffer *buffer, uint64_t bytes, const char *what,
                         wf_error *err) {
  if (bytes <= buffer->bytes) return WF_OK;
  WF__TRY(wf__device_reserve(buffer, bytes + bytes / 8, what, err));
  return wf__device_settle(what, err);
}

/* Allocates the rooms. The list of copies comes first in the sender's. */
static wf_status reserve_rooms(const struct moving *m, wf_error *err) {
  struct wf__cuda_backend *self = m->self;
  for (size_t i = 0; i < m->count; i++) {
    if (!is_moved(m, i)) continue;
    WF__TRY(add_room(self, m->homes[i], err));
    WF__TRY(add_room(self, m->targets[i], err));
  }
  for (uint64_t k = 0; k < self->moved.size; k++) {
    struct wf__moved_room *room = &self->moved.data[k];
    uint64_t sent = 0, received = 0;
    room->num_copies = 0;
    room->filled = 0;
    for (size_t i = 0; i < m->count; i++) {
      if (!is_moved(m, i)) continue;
      sent += m->homes[i] == room->device ? bytes_of(m, i) : 0;
      received += m->targets[i] == room->device ? bytes_of(m, i) : 0;
      room->num_copies += m->homes[i] == room->device;
    }
    room->list_bytes = wf__round_up_256(room->num_copies * sizeof(wf__score_copy));
    WF__CUDA_TRY(cudaSetDevice(room->device), "choosing the GPU");
    if (sent > 0)
      WF__TRY(reserve(&room->sent, room->list_bytes + sent, "scores for another GPU", err));
    if (received > 0) WF__TRY(reserve(&room->received, received, "scores of another GPU", err));
  }
  return WF_OK;
}

/* Lists the copies from `home` to `target` and says where the scores will be. *bytes: of the scores
 * listed so far. */
static void list_copies(const struct moving *m, const struct wf__moved_room *home,
                        struct wf__moved_room *target, wf__score_copy *list, uint64_t *bytes,
                        uint64_t *count) {
  const int32_t columns = m->self->graph->min_columns;
  for (size_t i = 0; i < m->count; i++) {
    if (!is_moved(m, i) || m->homes[i] != home->device || m->targets[i] != target->device) continue;
    const wf_scores *scores = &m->scores[i];
    list[(*count)++] = (wf__score_copy){.from = scores->data,
                                        .to = (char *)home->sent.data + home->list_bytes + *bytes,
                                        .stride = scores->stride,
                                        .num_frames = scores->num_frames,
                                        .num_columns = columns,
                                        .element_bytes = (int32_t)wf__dtype_bytes(scores->dtype)};
    m->moved[i].data = (char *)target->received.data + target->filled;
    m->moved[i].stride = m->moved[i].num_columns = columns;
    *bytes += bytes_of(m, i);
    target->filled += bytes_of(m, i);
  }
}

/* Makes a room's stream wait for what another stream (NULL: the default one) of a GPU has now. */
static wf_status wait_for_stream(const struct wf__moved_room *room, int device, cudaStream_t stream,
                                 wf_error *err) {
  cudaEvent_t event;
  WF__CUDA_TRY(cudaSetDevice(device), "choosing the GPU");
  WF__CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  cudaError_t code = cudaEventRecord(event, stream);
  if (code == cudaSuccess) code = cudaSetDevice(room->device);
  if (code == cudaSuccess) code = cudaStreamWaitEvent(room->stream, event, 0);
  cudaEventDestroy(event);
  return code == cudaSuccess ? WF_OK : wf__cuda_fail(err, code, "scores of another GPU");
}

/* Lets the current device's copies go to another GPU directly if that is possible. */
static void enable_peer_access(int from, int to) {
  static atomic_bool asked[MAX_GPUS][MAX_GPUS]; /* in this process; asking again is an error */
  int possible = 0;
  if (from >= MAX_GPUS || to >= MAX_GPUS || atomic_exchange(&asked[from][to], true)) return;
  if (cudaDeviceCanAccessPeer(&possible, from, to) == cudaSuccess && possible != 0)
    (void)cudaDeviceEnablePeerAccess(to, 0);
  (void)cudaGetLastError(); /* others may have enabled it */
}

/* Queues the copies from one GPU to all others. */
static wf_status send_from(const struct moving *m, struct wf__moved_room *home,
                           wf__score_copy *list, wf_error *err) {
  struct wf__cuda_backend *self = m->self;
  uint64_t bytes = 0, count = 0, first[MAX_GPUS + 1] = {0}, began[MAX_GPUS];
  for (uint64_t k = 0; k < self->moved.size; k++) {
    began[k] = self->moved.data[k].filled;
    list_copies(m, home, &self->moved.data[k], list, &bytes, &count);
    first[k + 1] = bytes;
  }
  WF__TRY(wait_for_stream(home, home->device, NULL, err));
  if (self->stream != NULL)
    WF__TRY(wait_for_stream(home, self->workers[0].device, self->stream, err));
  WF__CUDA_TRY(cudaMemcpyAsync(home->sent.data, list, count * sizeof *list, cudaMemcpyHostToDevice,
                               home->stream),
               "scores for another GPU");
  WF__CUDA_TRY(wf__copy_scores_launch(home->sent.data, (uint32_t)count, home->stream),
               "scores for another GPU");
  for (uint64_t k = 0; k < self->moved.size; k++) {
    struct wf__moved_room *target = &self->moved.data[k];
    if (first[k + 1] == first[k]) continue;
    enable_peer_access(home->device, target->device);
    WF__CUDA_TRY(cudaMemcpyPeerAsync((char *)target->received.data + began[k], target->device,
                                     (char *)home->sent.data + home->list_bytes + first[k],
                                     home->device, first[k + 1] - first[k], home->stream),
                 "scores of another GPU");
  }
  return WF_OK;
}

wf_status wf__move_scores(struct wf__cuda_backend *self, const wf_scores *scores, const int *homes,
                          const int *targets, size_t count, wf_scores *moved, wf_error *err) {
  const struct moving m = {self, scores, homes, targets, count, moved};
  uint64_t most = 0;
  for (size_t i = 0; i < count; i++) moved[i] = scores[i];
  WF__TRY(reserve_rooms(&m, err));
  for (uint64_t k = 0; k < self->moved.size; k++)
    if (self->moved.data[k].num_copies > most) most = self->moved.data[k].num_copies;
  if (most == 0) return WF_OK;
  wf__score_copy *list = wf__alloc(most, sizeof *list);
  if (list == NULL) return wf__fail_memory(err, most * sizeof *list, "scores of another GPU");
  wf_status status = WF_OK;
  for (uint64_t k = 0; k < self->moved.size && status == WF_OK; k++)
    if (self->moved.data[k].num_copies > 0) status = send_from(&m, &self->moved.data[k], list, err);
  free(list);
  return status;
}
