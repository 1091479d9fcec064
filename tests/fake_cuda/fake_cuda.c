/* fake_cuda.c - GPUs imitated in host memory.
 * A stream is a queue of work. Work runs in order, and as late as CUDA allows: when somebody waits
 * for the stream, or for another stream that waits for it. So a missing event, or a buffer that is
 * refilled too early, always changes results; on a real GPU it does so only occasionally. A
 * cudaMemcpy from pageable memory is work of the default stream, and other streams do not wait for
 * it. With `eager`, some work runs earlier, at random moments.
 *
 * The first MB of an allocation is filled with 0xa5. Copies must stay within allocations. Freeing
 * checks the guard bytes on both sides of an allocation. Any call can be made to fail. One lock
 * makes all functions thread-safe. */
#include "cuda/device/gpu_profile.h"
#include "cuda_runtime_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_ALLOCATIONS = 4096,
  MAX_STREAMS = 256,
  MAX_DEVICES = 16,
  FILLED_BYTES = 1 << 20, /* of an allocation, with FILL */
  FILL = 0xa5,
  EDGE_BYTES = 256,
  EDGE = 0x6b
};

struct fake_gpus fake_gpus = {.num_devices = 3,
                              .num_processors = 12,
                              .memory_bytes = 1000000000,
                              .shared_kb = WF__SHARED_KB,
                              .max_rank_bits = WF__HAS_CLUSTERS ? WF__MAX_RANK_BITS : 0,
                              .driver = 13000};

struct work {
  void (*fn)(void *data);
  void *data;
  struct fake_stream *wait_for; /* wait until this stream has done wait_number pieces of work */
  uint64_t wait_number;
  struct work *next;
};

struct fake_stream {
  struct work *first, *last;
  uint64_t num_queued, num_done;
  int device;
  struct fake_graph *recorded; /* NULL: work is queued */
};

/* Work that is repeated. Both kinds of graphs: instantiating one moves the work. */
struct fake_graph {
  struct work *first, *last;
};

struct fake_event {
  struct fake_stream *stream; /* NULL: never recorded */
  uint64_t number;
};

struct allocation {
  char *data;
  size_t bytes;
  int device; /* -1: page-locked host memory */
};

static pthread_mutex_t g_mutex;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static struct allocation g_allocations[MAX_ALLOCATIONS];
static struct fake_stream *g_streams[MAX_STREAMS], g_default[MAX_DEVICES];
static size_t g_used[MAX_DEVICES];
static unsigned g_seed;
static _Thread_local int g_device;
static _Thread_local cudaError_t g_last;
static _Thread_local bool g_records; /* a stream */

static void make_mutex(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&g_mutex, &attributes);
  for (int i = 0; i < MAX_DEVICES; i++) g_default[i].device = i;
}

static void do_until(struct fake_stream *stream, uint64_t number) {
  while (stream->num_done < number) {
    struct work *work = stream->first;
    if (work->wait_for != NULL) do_until(work->wait_for, work->wait_number);
    stream->first = work->next;
    if (stream->first == NULL) stream->last = NULL;
    if (work->fn != NULL) work->fn(work->data);
    free(work->data);
    free(work);
    stream->num_done++;
  }
}

static void do_some(void) {
  for (int i = 0; i < MAX_STREAMS; i++) {
    g_seed = g_seed * 1664525u + 1013904223u;
    if (g_streams[i] != NULL && g_streams[i]->first != NULL && g_seed >> 30 == 0)
      do_until(g_streams[i], g_streams[i]->num_done + 1);
  }
}

static bool is_lost(void) {
  return fake_gpus.lost_at > 0 && fake_gpus.num_calls >= fake_gpus.lost_at;
}

/* Every API call begins with enter and ends with leave. Returns false if this call must fail. */
static bool enter(void) {
  pthread_once(&g_once, make_mutex);
  pthread_mutex_lock(&g_mutex);
  if (fake_gpus.eager != 0) {
    if (g_seed == 0) g_seed = fake_gpus.eager;
    do_some();
  }
  fake_gpus.num_calls++;
  return fake_gpus.num_calls != fake_gpus.fail_at && !is_lost();
}

static cudaError_t leave(cudaError_t code) {
  if (code != cudaSuccess) g_last = code;
  pthread_mutex_unlock(&g_mutex);
  return code;
}

/* Memory must not be allocated or freed, and nothing waited for, by a thread that records. */
static void check_not_recording(void) {
  if (!g_records) return;
  fprintf(stderr, "imitated GPU: a call that is not allowed while a stream is recorded\n");
  abort();
}

static struct allocation *find(const void *pointer) {
  for (int i = 0; i < MAX_ALLOCATIONS; i++) {
    struct allocation *a = &g_allocations[i];
    if (a->data != NULL && (const char *)pointer >= a->data &&
        (const char *)pointer < a->data + a->bytes)
      return a;
  }
  return NULL;
}

static struct fake_stream *stream_of(cudaStream_t stream) {
  return stream != NULL ? stream : &g_default[g_device];
}

static bool put(struct fake_stream *stream, void (*fn)(void *), void *data,
                struct fake_stream *wait_for, uint64_t wait_number) {
  struct work *work = malloc(sizeof *work);
  if (work == NULL) return false;
  *work = (struct work){fn, data, wait_for, wait_number, NULL};
  if (stream->recorded != NULL) {
    struct fake_graph *graph = stream->recorded;
    if (wait_for != NULL) abort();
    if (graph->last != NULL)
      graph->last->next = work;
    else
      graph->first = work;
    graph->last = work;
    return true;
  }
  if (stream->last != NULL)
    stream->last->next = work;
  else
    stream->first = work;
  stream->last = work;
  stream->num_queued++;
  return true;
}

/* --- the runtime ------------------------------------------------------------------------- */

const char *cudaGetErrorString(cudaError_t code) {
  return code == cudaSuccess                 ? "no error"
         : code == cudaErrorMemoryAllocation ? "out of memory"
         : code == cudaErrorUnknown          ? "unknown error"
                                             : "invalid";
}

cudaError_t cudaGetLastError(void) {
  cudaError_t code = g_last;
  g_last = cudaSuccess;
  return code;
}

enum { OLDEST_DRIVER = 12000 };
cudaError_t cudaDriverGetVersion(int *version) { return *version = fake_gpus.driver, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *version) { return *version = OLDEST_DRIVER, cudaSuccess; }

/* The environment variable WARPFST_FAKE_SHARED_KB=64 gives the profile of a GPU with 64 KB of
 * shared memory and without clusters. */
int wf__gpu_compiled_for(int32_t out[2]) {
  if (!enter()) return leave(cudaErrorUnknown);
  const char *shared_kb = getenv("WARPFST_FAKE_SHARED_KB");
  out[0] = shared_kb != NULL ? atoi(shared_kb) : fake_gpus.shared_kb;
  out[1] = shared_kb != NULL ? 0 : fake_gpus.max_rank_bits;
  return leave(fake_gpus.shared_kb > 0 ? cudaSuccess : cudaErrorNoKernelImageForDevice);
}

cudaError_t cudaGetDeviceCount(int *count) {
  if (!enter()) return leave(cudaErrorUnknown);
  if (fake_gpus.driver < OLDEST_DRIVER) return leave(cudaErrorInsufficientDriver);
  *count = fake_gpus.num_devices;
  return leave(cudaSuccess);
}

cudaError_t cudaGetDevice(int *device) {
  if (!enter()) return leave(cudaErrorUnknown);
  *device = g_device;
  return leave(cudaSuccess);
}

cudaError_t cudaSetDevice(int device) {
  if (!enter()) return leave(cudaErrorUnknown);
  if (device < 0 || device >= fake_gpus.num_devices) return leave(cudaErrorInvalidDevice);
  g_device = device;
  return leave(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  if (!enter() || device < 0 || device >= fake_gpus.num_devices)
    return leave(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrClockRate: *value = 1000; break; /* kHz: a cycle takes 1 us */
    case cudaDevAttrComputeCapabilityMajor: *value = 7; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrConcurrentManagedAccess: *value = !fake_gpus.no_unified_memory; break;
    default: *value = fake_gpus.num_processors;
  }
  return leave(cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes) {
  if (!enter()) return leave(cudaErrorUnknown);
  *all_bytes = fake_gpus.memory_bytes;
  *free_bytes = fake_gpus.memory_bytes - g_used[g_device];
  return leave(cudaSuccess);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *pointer) {
  if (!enter()) return leave(cudaErrorUnknown);
  const struct allocation *a = find(pointer);
  attributes->type = a == NULL       ? cudaMemoryTypeUnregistered
                     : a->device < 0 ? cudaMemoryTypeHost
                                     : cudaMemoryTypeDevice;
  attributes->device = a == NULL ? -2 : a->device;
  return leave(cudaSuccess);
}

static cudaError_t allocate(void **out, size_t bytes, int device) {
  check_not_recording();
  *out = NULL;
  if (!enter()) {
    fake_gpus.failed_to_allocate = !is_lost();
    return leave(is_lost() ? cudaErrorUnknown : cudaErrorMemoryAllocation);
  }
  if (device >= 0 && bytes > fake_gpus.memory_bytes - g_used[device])
    return leave(cudaErrorMemoryAllocation);
  for (int i = 0; i < MAX_ALLOCATIONS; i++) {
    if (g_allocations[i].data != NULL) continue;
    char *memory =
        aligned_alloc(EDGE_BYTES, ((bytes + EDGE_BYTES - 1) / EDGE_BYTES + 2) * EDGE_BYTES);
    if (memory == NULL) break;
    g_allocations[i] = (struct allocation){memory + EDGE_BYTES, bytes, device};
    *out = g_allocations[i].data;
    memset(memory, EDGE, EDGE_BYTES);
    memset(memory + EDGE_BYTES + bytes, EDGE, EDGE_BYTES);
    memset(*out, FILL, bytes < FILLED_BYTES ? bytes : FILLED_BYTES);
    fake_gpus.num_objects++;
    if (device >= 0) g_used[device] += bytes;
    *(device >= 0 ? &fake_gpus.device_bytes : &fake_gpus.pinned_bytes) += bytes;
    return leave(cudaSuccess);
  }
  return leave(cudaErrorMemoryAllocation);
}

static void check_edges(const struct allocation *a) {
  for (size_t i = 0; i < EDGE_BYTES; i++) {
    if (a->data[-1 - (ptrdiff_t)i] == EDGE && a->data[a->bytes + i] == EDGE) continue;
    fprintf(stderr,
            "imitated GPU: write beyond an allocation of %zu bytes, %zu bytes from its edge\n",
            a->bytes, i);
    abort();
  }
}

/* Frees memory after all streams are done, as cudaFree does. */
static cudaError_t release(void *memory) {
  check_not_recording();
  bool good = enter();
  for (int i = 0; i < MAX_STREAMS; i++)
    if (g_streams[i] != NULL) do_until(g_streams[i], g_streams[i]->num_queued);
  for (int i = 0; i < MAX_DEVICES; i++) do_until(&g_default[i], g_default[i].num_queued);
  struct allocation *a = memory != NULL ? find(memory) : NULL;
  if (memory == NULL) return leave(cudaSuccess);
  if (a == NULL || a->data != memory) abort();
  if (a->device >= 0) g_used[a->device] -= a->bytes;
  *(a->device >= 0 ? &fake_gpus.device_bytes : &fake_gpus.pinned_bytes) -= a->bytes;
  check_edges(a);
  free(a->data - EDGE_BYTES);
  a->data = NULL;
  fake_gpus.num_objects--;
  return leave(good ? cudaSuccess : cudaErrorUnknown);
}

cudaError_t cudaMalloc(void **out, size_t bytes) { return allocate(out, bytes, g_device); }
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags) {
  return allocate(out, bytes, -1);
}
cudaError_t cudaMallocManaged(void **out, size_t bytes, unsigned flags) {
  return allocate(out, bytes, g_device);
}
cudaError_t cudaFree(void *memory) { return release(memory); }
cudaError_t cudaFreeHost(void *memory) { return release(memory); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  if (!enter()) return leave(cudaErrorUnknown);
  for (int i = 0; i < MAX_STREAMS; i++) {
    if (g_streams[i] != NULL) continue;
    *out = g_streams[i] = calloc(1, sizeof **out);
    if (*out == NULL) break;
    (*out)->device = g_device;
    fake_gpus.num_objects++;
    return leave(cudaSuccess);
  }
  return leave(cudaErrorUnknown);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  bool good = enter();
  for (int i = 0; i < MAX_STREAMS; i++)
    if (g_streams[i] == stream) g_streams[i] = NULL;
  do_until(stream, stream->num_queued);
  free(stream);
  fake_gpus.num_objects--;
  return leave(good ? cudaSuccess : cudaErrorUnknown);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  check_not_recording();
  bool good = enter();
  do_until(stream_of(stream), stream_of(stream)->num_queued);
  return leave(good ? cudaSuccess : cudaErrorUnknown);
}

/* Runs the stream's work and reports success. Every third call reports cudaErrorNotReady instead
 * and runs nothing. */
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  static unsigned num_queries;
  if (!enter()) return leave(cudaErrorUnknown);
  if (++num_queries % 3 == 0) return leave(cudaErrorNotReady);
  do_until(stream_of(stream), stream_of(stream)->num_queued);
  return leave(cudaSuccess);
}

/* Priorities are ignored: they change the order of work, but not its results. */
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) {
  return cudaStreamCreateWithFlags(out, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return fake_call();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (!enter()) return leave(cudaErrorUnknown);
  if (event->stream == NULL) return leave(cudaSuccess);
  return leave(put(stream_of(stream), NULL, NULL, event->stream, event->number) ? cudaSuccess
                                                                                : cudaErrorUnknown);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  if (!enter()) return leave(cudaErrorUnknown);
  *out = calloc(1, sizeof **out);
  fake_gpus.num_objects++;
  return leave(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  bool good = enter();
  free(event);
  fake_gpus.num_objects--;
  return leave(good ? cudaSuccess : cudaErrorUnknown);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!enter()) return leave(cudaErrorUnknown);
  if (stream_of(stream)->device != g_device)
    return leave(cudaErrorInvalidValue); /* the stream must be of the current device */
  *event = (struct fake_event){stream_of(stream), stream_of(stream)->num_queued};
  return leave(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  check_not_recording();
  bool good = enter();
  if (event->stream != NULL) do_until(event->stream, event->number);
  return leave(good ? cudaSuccess : cudaErrorUnknown);
}

struct copy {
  void *to;
  const void *from;
  size_t bytes;
};

void fake_check_written(const void *from, size_t bytes) {
  const struct allocation *a = find(from);
  const char *data = from;
  if (!fake_gpus.checks_copies || a == NULL || a->device < 0) return;
  for (size_t i = 0; i + 4 <= bytes; i += 4) {
    uint32_t word;
    memcpy(&word, data + i, 4);
    if (word != FILL * 0x01010101u) continue;
    fprintf(stderr, "imitated GPU: a copy of %zu bytes reads memory that nothing wrote, at %zu\n",
            bytes, i);
    abort();
  }
}

static void do_copy(void *data) {
  const struct copy *copy = data;
  fake_check_written(copy->from, copy->bytes);
  memcpy(copy->to, copy->from, copy->bytes);
}

static bool inside(const struct allocation *a, const void *pointer, size_t bytes) {
  return a == NULL || (const char *)pointer + bytes <= a->data + a->bytes;
}

struct staged_copy {
  void *to;
  size_t bytes;
  char data[];
};

static void do_staged_copy(void *data) {
  const struct staged_copy *copy = data;
  memcpy(copy->to, copy->data, copy->bytes);
}

/* Like CUDA: pageable memory has been read when the call returns, but its contents arrive on the
 * device in the order of the stream. */
static void stage(void *to, const void *from, size_t bytes, struct fake_stream *stream) {
  struct staged_copy *copy = malloc(sizeof *copy + bytes);
  if (copy == NULL) abort();
  copy->to = to;
  copy->bytes = bytes;
  memcpy(copy->data, from, bytes);
  if (!put(stream, do_staged_copy, copy, NULL, 0)) abort();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (!enter()) return leave(cudaErrorUnknown);
  if (bytes == 0) return leave(cudaSuccess); /* the pointers may be the end of an allocation */
  const struct allocation *target = find(to), *source = find(from),
                          *device = kind == cudaMemcpyHostToDevice ? target : source,
                          *host = kind == cudaMemcpyHostToDevice ? source : target;
  if (device == NULL || device->device < 0 || (host != NULL && host->device >= 0) ||
      !inside(device, device == target ? to : from, bytes) ||
      !inside(host, host == target ? to : from, bytes))
    abort();
  if (kind == cudaMemcpyHostToDevice) fake_gpus.sent_bytes += bytes;
  if (kind == cudaMemcpyHostToDevice && host == NULL) {
    stage(to, from, bytes, stream_of(stream));
    return leave(cudaSuccess);
  }
  struct copy *copy = malloc(sizeof *copy);
  if (copy == NULL) return leave(cudaErrorUnknown);
  *copy = (struct copy){to, from, bytes};
  if (!put(stream_of(stream), do_copy, copy, NULL, 0)) abort();
  if (host == NULL)
    do_until(stream_of(stream),
             stream_of(stream)->num_queued); /* pageable memory is copied before the call returns */
  return leave(cudaSuccess);
}

cudaError_t cudaDeviceCanAccessPeer(int *possible, int device, int peer) {
  *possible = device != peer;
  return fake_call();
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) { return fake_call(); }

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  if (!enter()) return leave(cudaErrorUnknown);
  const struct allocation *target = find(to), *source = find(from);
  if (target == NULL || source == NULL || target->device != to_device ||
      source->device != from_device || !inside(target, to, bytes) || !inside(source, from, bytes))
    abort();
  struct copy *copy = malloc(sizeof *copy);
  if (copy == NULL) return leave(cudaErrorUnknown);
  *copy = (struct copy){to, from, bytes};
  if (!put(stream_of(stream), do_copy, copy, NULL, 0)) abort();
  return leave(cudaSuccess);
}

struct filling {
  void *to;
  int value;
  size_t bytes;
};

static void do_fill(void *data) {
  const struct filling *filling = data;
  memset(filling->to, filling->value, filling->bytes);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  if (!enter()) return leave(cudaErrorUnknown);
  const struct allocation *target = find(to);
  if (target == NULL || target->device < 0 || !inside(target, to, bytes)) abort();
  struct filling *filling = malloc(sizeof *filling);
  if (filling == NULL) return leave(cudaErrorUnknown);
  *filling = (struct filling){to, value, bytes};
  if (!put(stream_of(stream), do_fill, filling, NULL, 0)) abort();
  return leave(cudaSuccess);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  pthread_once(&g_once, make_mutex);
  pthread_mutex_lock(&g_mutex);
  const bool staged = kind == cudaMemcpyHostToDevice && bytes > 0 && find(from) == NULL;
  pthread_mutex_unlock(&g_mutex);
  cudaError_t code = cudaMemcpyAsync(to, from, bytes, kind, NULL);
  return code == cudaSuccess && !staged ? cudaStreamSynchronize(NULL) : code;
}

cudaError_t fake_call(void) { return leave(enter() ? cudaSuccess : cudaErrorUnknown); }

cudaError_t fake_enqueue(cudaStream_t stream, void (*fn)(void *data), void *data) {
  const bool good = enter();
  if (!good ||
      stream_of(stream)->device != g_device) { /* the stream must be of the current device */
    free(data);
    return leave(good ? cudaErrorInvalidValue : cudaErrorUnknown);
  }
  return leave(put(stream_of(stream), fn, data, NULL, 0) ? cudaSuccess : cudaErrorUnknown);
}

/* --- graphs ------------------------------------------------------------------------------ */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  if (!enter()) return leave(cudaErrorUnknown);
  if (stream == NULL || stream->recorded != NULL || g_records)
    return leave(cudaErrorStreamCaptureUnsupported);
  stream->recorded = calloc(1, sizeof *stream->recorded);
  if (stream->recorded == NULL) return leave(cudaErrorMemoryAllocation);
  fake_gpus.num_objects++;
  g_records = true;
  return leave(cudaSuccess);
}

static void free_graph(struct fake_graph *graph) {
  while (graph->first != NULL) {
    struct work *work = graph->first;
    graph->first = work->next;
    free(work->data);
    free(work);
  }
  free(graph);
  fake_gpus.num_objects--;
}

/* Recording ends, also with an error. */
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
  const bool good = enter();
  *out = NULL;
  if (stream->recorded == NULL) return leave(cudaErrorInvalidValue);
  if (good)
    *out = stream->recorded;
  else
    free_graph(stream->recorded);
  stream->recorded = NULL;
  g_records = false;
  return leave(good ? cudaSuccess : cudaErrorUnknown);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                 unsigned long long flags) {
  if (!enter()) {
    fake_gpus.failed_to_allocate = !is_lost();
    return leave(is_lost() ? cudaErrorUnknown : cudaErrorMemoryAllocation);
  }
  *out = malloc(sizeof **out);
  if (*out == NULL) return leave(cudaErrorMemoryAllocation);
  **out = *graph;
  *graph = (struct fake_graph){0};
  fake_gpus.num_objects++;
  fake_gpus.num_recorded++;
  return leave(cudaSuccess);
}

static void run_graph(void *data) {
  const struct fake_graph *graph = *(struct fake_graph **)data;
  for (const struct work *work = graph->first; work != NULL; work = work->next)
    work->fn(work->data);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  struct fake_graph **data = malloc(sizeof *data);
  if (data == NULL) return cudaErrorMemoryAllocation;
  *data = graph;
  const cudaError_t code = fake_enqueue(stream, run_graph, data);
  fake_gpus.num_launched += code == cudaSuccess;
  return code;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const bool good = enter();
  free_graph(graph);
  return leave(good ? cudaSuccess : cudaErrorUnknown);
}

/* After its launches are done. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  const bool good = enter();
  for (int i = 0; i < MAX_STREAMS; i++)
    if (g_streams[i] != NULL) do_until(g_streams[i], g_streams[i]->num_queued);
  free_graph(graph);
  return leave(good ? cudaSuccess : cudaErrorUnknown);
}
