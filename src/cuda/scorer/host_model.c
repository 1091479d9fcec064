/* host_model.c - page-locked copies of language models, shared by all GPUs. */
#include "cuda/scorer/host_model.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cuda/device/device_memory.h"

struct copy {
  const void *model;
  int32_t placement;
  uint64_t users;
  char *data;
  struct copy *next;
};

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER; /* over the list */
static struct copy *g_copies;

static wf_status make(uint64_t bytes, struct copy **out, wf_error *err) {
  struct copy *copy = wf__calloc(1, sizeof *copy);
  if (copy == NULL) return wf__fail_memory(err, sizeof *copy, "a language model");
  const wf_status status =
      wf__pinned_alloc((void **)&copy->data, bytes, "the language model (see placement)", err);
  if (status == WF_OK)
    *out = copy;
  else
    free(copy);
  return status;
}

static wf_status acquire(const void *model, int32_t placement, uint64_t bytes,
                         wf__host_model_fill *fill, void *user, char **out, wf_error *err) {
  struct copy *copy = g_copies;
  while (copy != NULL && (copy->model != model || copy->placement != placement)) copy = copy->next;
  if (copy == NULL) {
    WF__TRY(make(bytes, &copy, err));
    copy->model = model;
    copy->placement = placement;
    copy->next = g_copies;
    g_copies = copy;
    fill(user, copy->data);
  }
  copy->users++;
  *out = copy->data;
  return WF_OK;
}

wf_status wf__host_model_acquire(const void *model, int32_t placement, uint64_t bytes,
                                 wf__host_model_fill *fill, void *user, char **out, wf_error *err) {
  *out = NULL;
  pthread_mutex_lock(&g_mutex); /* while it is filled, too: others wait for the same copy */
  const wf_status status = acquire(model, placement, bytes, fill, user, out, err);
  pthread_mutex_unlock(&g_mutex);
  return status;
}

void wf__host_model_release(char *data) {
  struct copy *unused = NULL;
  if (data == NULL) return;
  pthread_mutex_lock(&g_mutex);
  for (struct copy **place = &g_copies; *place != NULL; place = &(*place)->next) {
    struct copy *copy = *place;
    if (copy->data != data) continue;
    if (--copy->users == 0) {
      *place = copy->next;
      unused = copy;
    }
    break;
  }
  pthread_mutex_unlock(&g_mutex);
  if (unused == NULL) return;
  cudaFreeHost(unused->data);
  free(unused);
}
