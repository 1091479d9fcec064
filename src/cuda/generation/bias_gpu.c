/* bias_gpu.c - a bias in the memory of a GPU: its tables, some of them shared, and their views. */
#include "cuda/generation/bias_gpu.h"

#include <stdlib.h>

#include "cuda/device/gpu_profile.h"
#include "decode/backend.h"

static const char what[] = "a bias on the GPU";

static bool has_table(const wf_bias *bias, int which) {
  if (which == WF__TABLE_TOKENS) return true;
  if (which == WF__TABLE_WORDS) return bias->words != NULL;
  if (which == WF__TABLE_GRAMMAR) return bias->grammar != NULL;
  return which - WF__TABLE_PARTS < bias->view.flat.num_parts;
}

/* The table that `base` has of the same, or a new one. */
static wf_status take_table(wf_bias_gpu *to, const wf_bias *bias, int which,
                            const wf_bias_gpu *base, wf_error *err) {
  const int last = which < WF__TABLE_PARTS ? which : WF__TABLE_PARTS + WF__FLAT_PARTS - 1;
  for (int k = which < WF__TABLE_PARTS ? which : WF__TABLE_PARTS; base != NULL && k <= last; k++) {
    wf__bias_table *table = base->tables[k];
    if (table == NULL || !wf__bias_table_is_of(table, bias, which)) continue;
    atomic_fetch_add(&table->refs, 1);
    to->tables[which] = table;
    return WF_OK;
  }
  return wf__bias_table_create(bias, which, to->device, &to->tables[which], err);
}

/* Sends the view of all tables. */
static wf_status send_view(wf_bias_gpu *to, const wf_bias *bias, wf_error *err) {
  wf__gpu_bias there = {.view = bias->view};
  there.view.kinds = to->tables[WF__TABLE_TOKENS]->there.view.kinds;
  if (to->tables[WF__TABLE_GRAMMAR] != NULL)
    there.view.grammar = to->tables[WF__TABLE_GRAMMAR]->there.view.grammar;
  if (to->tables[WF__TABLE_WORDS] != NULL) {
    const wf__gpu_bias *words = &to->tables[WF__TABLE_WORDS]->there;
    there.view.words = words->view.words;
    there.classes = words->classes;
    there.heads = words->heads;
    there.begins = words->begins;
  }
  for (int i = 0; i < bias->view.flat.num_parts; i++) {
    const wf__gpu_bias *table = &to->tables[WF__TABLE_PARTS + i]->there;
    const wf__flat_part *part = &bias->view.flat.parts[i];
    there.view.flat.parts[i] = table->view.flat.parts[0];
    there.view.flat.parts[i].shift = part->shift; /* another place of the same model in a chain */
    there.parts[i] = table->parts[0];
  }
  WF__TRY(wf__device_alloc((void **)&to->there, sizeof there, what, err));
  return wf__device_send(to->there, &there, sizeof there, NULL, what, err);
}

static wf_status fill(wf_bias_gpu *to, const wf_bias *bias, const wf_bias_gpu *base,
                      wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(to->device), "choosing the GPU");
  for (int which = 0; which < WF__TABLE_PARTS + WF__FLAT_PARTS; which++)
    if (has_table(bias, which)) WF__TRY(take_table(to, bias, which, base, err));
  return send_view(to, bias, err);
}

static wf_status find_device(const char *name, int *number, wf_error *err) {
  wf__devices devices;
  wf__gpu_profile profile;
  WF__TRY(wf__devices_parse(name, &devices, err));
  if (!devices.cuda || devices.count > 1)
    return wf__fail(err, WF_ERR_ARGUMENT, "device %s: a bias works on one GPU: cuda or cuda:N",
                    name);
  const int found = devices.count == 1 ? devices.numbers[0] : 0;
  WF__TRY(wf__gpu_profile_read(found, &profile, err));
  *number = found; /* not before: what is freed is freed on this GPU */
  return WF_OK;
}

wf_status wf__bias_gpu_create(const wf_bias *bias, const char *device, const wf_bias_gpu *base,
                              wf_bias_gpu **out, wf_error *err) {
  *out = NULL;
  const int caller = wf__callers_device();
  wf_bias_gpu *to = wf__calloc(1, sizeof *to);
  if (to == NULL) return wf__fail_memory(err, sizeof *to, what);
  atomic_init(&to->refs, 1);
  to->num_tokens = bias->tokens->num_tokens;
  to->start = wf_bias_start(bias);
  wf_status status = find_device(device, &to->device, err);
  if (status == WF_OK && base != NULL && base->device != to->device)
    status =
        wf__fail(err, WF_ERR_ARGUMENT, "device %s: the base is on cuda:%d", device, base->device);
  if (status == WF_OK) status = fill(to, bias, base, err);
  wf__restore_device(caller);
  if (status != WF_OK) {
    wf__bias_gpu_free(to);
    return status;
  }
  *out = to;
  return WF_OK;
}

wf_bias_gpu *wf__bias_gpu_ref(wf_bias_gpu *bias) {
  atomic_fetch_add(&bias->refs, 1);
  return bias;
}

void wf__bias_gpu_free(wf_bias_gpu *bias) {
  if (bias == NULL || atomic_fetch_sub(&bias->refs, 1) != 1) return;
  const int caller = wf__callers_device();
  cudaSetDevice(bias->device);
  cudaFree(bias->there);
  for (int which = 0; which < WF__TABLE_PARTS + WF__FLAT_PARTS; which++)
    wf__bias_table_free(bias->tables[which]);
  wf__restore_device(caller);
  (void)cudaGetLastError(); /* a lost device has been reported, and no later call must */
  free(bias);
}
