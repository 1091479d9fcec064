/* composer.c - the public calls that compose one pair, or many pairs, on the CPU or a GPU. */
#include "fstops/composer.h"

#include <stdlib.h>
#include <string.h>

#include "base/option_tables.h"
#include "fstops/parallel.h"

enum { ORDER_CANONICAL = 1 };

static wf_status take_options(const wf_compose_options *options, bool with_origins,
                              wf_compose_options *o, wf_error *err) {
  WF__TRY(wf__options_take(wf__compose_table(), options, o, err));
  if (with_origins && o->phi_label != 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "origins of arcs are not available with phi_label: an arc may have several");
  if (!wf__compose_on_gpu(o)) return WF_OK;
  if (o->order != ORDER_CANONICAL)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "device %s composes in the canonical order only: set order=canonical",
                    o->device);
  if (o->phi_label != 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "device %s does not take failure arcs (phi_label)",
                    o->device);
  return WF_OK;
}

/* --- one pair ---------------------------------------------------------------------------- */

static wf_status compose_on_gpu(const wf_fst *a, const wf_fst *b, const wf_compose_options *o,
                                wf_fst **out, wf_error *err) {
  wf_composer *composer;
  WF__TRY(wf_composer_create(&a, 1, &b, 1, 1, o, false, &composer, err));
  wf_status status = wf_composer_run(composer, err);
  if (status == WF_OK) status = wf_composer_to_fst(composer, 0, out, NULL, err);
  wf_composer_free(composer);
  return status;
}

wf_status wf_compose(const wf_fst *a, const wf_fst *b, const wf_compose_options *options,
                     wf_fst **out, wf_error *err) {
  wf_compose_options o;
  *out = NULL;
  WF__TRY(take_options(options, false, &o, err));
  const bool on_gpu = wf__compose_on_gpu(&o);
  if (!on_gpu && o.check_symbols) WF__TRY(wf__joined_symbols((const wf_fst *[]){a, b}, 2, err));
  return on_gpu ? compose_on_gpu(a, b, &o, out, err) : wf__compose_pair(a, b, &o, out, NULL, err);
}

wf_status wf_compose_n(const wf_fst *const *fsts, size_t count, const wf_compose_options *options,
                       wf_fst **out, wf_error *err) {
  enum { MAX_FSTS = 256 }; /* the chain is made by recursion */
  wf_compose_options o;
  *out = NULL;
  if (count < 2 || count > MAX_FSTS)
    return wf__fail(err, WF_ERR_ARGUMENT, "%zu fsts: a composition takes 2 to %d", count, MAX_FSTS);
  if (count == 2) return wf_compose(fsts[0], fsts[1], options, out, err);
  WF__TRY(take_options(options, false, &o, err));
  if (o.check_symbols) WF__TRY(wf__joined_symbols(fsts, count, err));
  return wf__compose_fsts(fsts, count, &o, out, err);
}

/* --- many pairs -------------------------------------------------------------------------- */

static void forget_results(wf_composer *self) {
  for (size_t i = 0; i < self->count; i++) {
    if (self->made != NULL) {
      wf_fst_free(self->made[i]);
      self->made[i] = NULL;
    }
    if (self->origins != NULL) {
      free(self->origins[i]);
      self->origins[i] = NULL;
    }
  }
  self->has_run = false;
}

void wf_composer_free(wf_composer *composer) {
  if (composer == NULL) return;
  if (composer->gpu != NULL) wf__device_found()->compose->free(composer->gpu);
  forget_results(composer);
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; composer->inputs[side] != NULL && i < composer->count; i++)
      wf_fst_free(composer->inputs[side][i]);
    free(composer->inputs[side]);
  }
  free(composer->made);
  free(composer->origins);
  free(composer);
}

static wf_status check_symbols(const wf_fst *const *const from[2], const size_t num[2],
                               size_t count, wf_error *err) {
  for (size_t i = 0; i < count; i++) {
    const wf_fst *pair[2] = {from[0][num[0] == 1 ? 0 : i], from[1][num[1] == 1 ? 0 : i]};
    wf_status status = wf__joined_symbols(pair, 2, err);
    if (status != WF_OK) return count == 1 ? status : wf__fail_prefix(err, status, "pair %zu", i);
  }
  return WF_OK;
}

static wf_status fill(wf_composer *self, const wf_fst *const *const from[2], const size_t num[2],
                      wf_error *err) {
  bool fits = true;
  const wf__device *gpu = NULL;
  if (wf__compose_on_gpu(&self->options) &&
      (gpu = wf__device_find(self->options.device, err)) == NULL)
    return WF_ERR_DEVICE;
  for (int side = 0; side < 2; side++) {
    self->inputs[side] = wf__calloc(self->count, sizeof *self->inputs[side]);
    fits = fits && self->inputs[side] != NULL;
    for (size_t i = 0; fits && i < self->count; i++)
      self->inputs[side][i] = wf_fst_ref(from[side][num[side] == 1 ? 0 : i]);
  }
  if (gpu == NULL) {
    self->made = wf__calloc(self->count, sizeof *self->made);
    if (self->with_origins) self->origins = wf__calloc(self->count, sizeof *self->origins);
    fits = fits && self->made != NULL && (!self->with_origins || self->origins != NULL);
  }
  if (!fits) return wf__fail_memory(err, self->count * sizeof *self->made, "a composer");
  if (gpu == NULL) return WF_OK;
  return gpu->compose->create(self->inputs[0], self->inputs[1], self->count, &self->options,
                              self->with_origins, &self->gpu, err);
}

wf_status wf_composer_create(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                             size_t num_b, size_t count, const wf_compose_options *options,
                             bool with_origins, wf_composer **out, wf_error *err) {
  wf_compose_options o;
  *out = NULL;
  WF__TRY(take_options(options, with_origins, &o, err));
  if ((num_a != 1 && num_a != count) || (num_b != 1 && num_b != count))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "%zu and %zu fsts for %zu compositions: each side needs one fst or as many as "
                    "there are compositions",
                    num_a, num_b, count);
  const wf_fst *const *const from[2] = {a, b};
  const size_t num[2] = {num_a, num_b};
  if (o.check_symbols) WF__TRY(check_symbols(from, num, count, err));
  wf_composer *self = wf__calloc(1, sizeof *self);
  if (self == NULL) return wf__fail_memory(err, sizeof *self, "a composer");
  self->options = o;
  self->count = count;
  self->with_origins = with_origins;
  wf_status status = fill(self, from, num, err);
  self->options.device = NULL; /* the string belongs to the caller, who may free it */
  if (status == WF_OK)
    *out = self;
  else
    wf_composer_free(self);
  return status;
}

/* A run on the CPU: threads share the pairs. */
struct job {
  wf_composer *composer;
  wf_compose_options options;
  wf_error *errors; /* [threads] error of the first pair that failed in the thread */
  uint64_t *failed; /* [threads] index of that pair; UINT64_MAX: none */
};

static void compose_item(void *user, uint64_t item, int worker) {
  struct job *job = user;
  wf_composer *self = job->composer;
  wf_error err;
  wf_status status =
      wf__compose_pair(self->inputs[0][item], self->inputs[1][item], &job->options,
                       &self->made[item], self->with_origins ? &self->origins[item] : NULL, &err);
  if (status == WF_OK || item > job->failed[worker]) return;
  job->failed[worker] = item;
  job->errors[worker] = err;
}

static wf_status run_items(struct job *job, wf__pool *pool, wf_error *err) {
  uint64_t num_workers = pool == NULL ? 1 : (uint64_t)wf__pool_size(pool), first = 0;
  const size_t count = job->composer->count;
  job->errors = wf__calloc(num_workers, sizeof *job->errors);
  job->failed = wf__alloc(num_workers, sizeof *job->failed);
  wf_status status = job->errors == NULL || job->failed == NULL
                         ? wf__fail_memory(err, num_workers * sizeof *job->errors, "a composer")
                         : WF_OK;
  if (status == WF_OK) {
    memset(job->failed, 0xff, num_workers * sizeof *job->failed);
    if (pool != NULL) status = wf__pool_try(pool, count, compose_item, job, err);
    for (size_t i = 0; pool == NULL && i < count; i++) compose_item(job, i, 0);
    for (uint64_t i = 1; i < num_workers; i++)
      if (job->failed[i] < job->failed[first]) first = i;
    if (status == WF_OK && job->failed[first] != UINT64_MAX)
      status = wf__fail(err, job->errors[first].code, "pair %llu: %s",
                        (unsigned long long)job->failed[first], job->errors[first].message);
  }
  free(job->errors);
  free(job->failed);
  return status;
}

wf_status wf_composer_run(wf_composer *composer, wf_error *err) {
  if (composer->gpu != NULL) return wf__device_found()->compose->run(composer->gpu, err);
  struct job job = {.composer = composer, .options = composer->options};
  const int32_t num_threads = composer->options.num_threads != 0 ? composer->options.num_threads
                                                                 : wf__compose_auto_threads();
  wf__pool *pool = NULL;
  forget_results(composer);
  if (num_threads != 1 && composer->count > 1) {
    WF__TRY(wf__pool_create(num_threads, &pool, err));
    job.options.num_threads = 1; /* within a pair */
  }
  wf_status status = run_items(&job, pool, err);
  wf__pool_free(pool);
  if (status != WF_OK) forget_results(composer);
  composer->has_run = status == WF_OK;
  return status;
}

static wf_status check_result(const wf_composer *composer, size_t i, bool origins, wf_error *err) {
  if (i >= composer->count)
    return wf__fail(err, WF_ERR_ARGUMENT, "pair %zu is out of range, the composer has %zu pairs", i,
                    composer->count);
  if (!composer->has_run) return wf__fail(err, WF_ERR_STATE, "the composer has not run");
  if (origins && !composer->with_origins)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "origins were not requested");
  return WF_OK;
}

wf_status wf_composer_get_view(const wf_composer *composer, size_t i, wf_fst_view *view,
                               const wf_arc_origin **origins, wf_error *err) {
  if (composer->gpu != NULL)
    return wf__device_found()->compose->view(composer->gpu, i, view, origins, err);
  *view = (wf_fst_view){.start = -1};
  if (origins != NULL) *origins = NULL;
  WF__TRY(check_result(composer, i, false, err));
  *view = wf_fst_get_view(composer->made[i]);
  if (origins != NULL && composer->with_origins) *origins = composer->origins[i];
  return WF_OK;
}

wf_status wf_composer_to_fst(const wf_composer *composer, size_t i, wf_fst **out,
                             wf_arc_origin **out_origins, wf_error *err) {
  if (composer->gpu != NULL) {
    WF__TRY(wf__device_found()->compose->get(composer->gpu, i, out, out_origins, err));
    wf__fst_keep_ctc_blank(*out, composer->inputs[0][i]);
    return WF_OK;
  }
  *out = NULL;
  if (out_origins != NULL) *out_origins = NULL;
  WF__TRY(check_result(composer, i, out_origins != NULL, err));
  if (out_origins != NULL) {
    const uint64_t num_arcs = wf_fst_get_view(composer->made[i]).num_arcs;
    *out_origins = wf__alloc(num_arcs, sizeof **out_origins);
    if (*out_origins == NULL)
      return wf__fail_memory(err, num_arcs * sizeof **out_origins, "origins of arcs");
    memcpy(*out_origins, composer->origins[i], num_arcs * sizeof **out_origins);
  }
  *out = wf_fst_ref(composer->made[i]);
  return WF_OK;
}
