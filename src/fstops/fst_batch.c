/* fst_batch.c - batches of fsts on a device. A GPU makes batches there;
 * a batch on the CPU holds the fsts, and applies operations to each of them. */
#include <string.h>

#include "base/option_tables.h"
#include "fstops/arcsort.h"
#include "fstops/device_batch.h"
#include "fstops/shortest_distance.h"

struct wf_fst_batch {
  size_t count;
  wf_semiring semiring;
  wf_symbols **symbols[2]; /* [count] symbol tables of input and of output labels; NULL: none */
  int32_t *blanks;         /* [count] as wf__fst_ctc_blank */
  wf__gpu_batch *gpu;      /* NULL: on the CPU, which uses `items` */
  struct cpu_item *items;  /* [count] or NULL on a GPU */
};

struct cpu_item {
  wf_fst *fst;
  wf_arc_origin *origins; /* NULL: none */
  uint64_t num_inputs[2]; /* number of arcs of the two inputs, if there are origins */
  double *gradients, *input_gradients[2]; /* NULL: none */
};

/* --- creation ---------------------------------------------------------------------------- */

static void forget_gradients(struct cpu_item *item) {
  free(item->gradients);
  free(item->input_gradients[0]);
  free(item->input_gradients[1]);
  item->gradients = item->input_gradients[0] = item->input_gradients[1] = NULL;
}

void wf_fst_batch_free(wf_fst_batch *batch) {
  if (batch == NULL) return;
  for (size_t i = 0; i < batch->count; i++) {
    for (int side = 0; side < 2; side++)
      if (batch->symbols[side] != NULL) wf_symbols_free(batch->symbols[side][i]);
    if (batch->items == NULL) continue;
    wf_fst_free(batch->items[i].fst);
    free(batch->items[i].origins);
    forget_gradients(&batch->items[i]);
  }
  free(batch->symbols[0]);
  free(batch->symbols[1]);
  free(batch->blanks);
  free(batch->items);
  if (batch->gpu != NULL) wf__gpu_fstops()->free(batch->gpu);
  free(batch);
}

static wf_status batch_new(size_t count, wf_semiring semiring, bool gpu, wf_fst_batch **out,
                           wf_error *err) {
  *out = NULL;
  if (count == 0) return wf__fail(err, WF_ERR_ARGUMENT, "a batch needs at least one fst");
  wf_fst_batch *batch = wf__calloc(1, sizeof *batch);
  if (batch == NULL) return wf__fail_memory(err, sizeof *batch, "a batch");
  batch->count = count;
  batch->semiring = semiring;
  for (int side = 0; side < 2; side++)
    batch->symbols[side] = wf__calloc(count, sizeof *batch->symbols[side]);
  batch->blanks = wf__calloc(count, sizeof *batch->blanks);
  if (!gpu) batch->items = wf__calloc(count, sizeof *batch->items);
  *out = batch;
  if (batch->symbols[0] != NULL && batch->symbols[1] != NULL && batch->blanks != NULL &&
      (gpu || batch->items != NULL))
    return WF_OK;
  return wf__fail_memory(err, count * sizeof *batch->items, "a batch");
}

static void take_tables(wf_fst_batch *batch, size_t i, const wf_symbols *isymbols,
                        const wf_symbols *osymbols, int32_t blank) {
  batch->blanks[i] = blank;
  const wf_symbols *from[2] = {isymbols, osymbols};
  for (int side = 0; side < 2; side++)
    if (from[side] != NULL) batch->symbols[side][i] = wf_symbols_ref(from[side]);
}

/* Ends a function that makes a batch: returns the batch, or frees it if the function failed. */
static wf_status give_result(wf_status status, wf_fst_batch *batch, wf_fst_batch **out) {
  *out = NULL;
  if (status == WF_OK)
    *out = batch;
  else
    wf_fst_batch_free(batch);
  return status;
}

wf_status wf_fst_batch_create(const wf_fst *const *fsts, size_t count, const char *device,
                              wf_fst_batch **out, wf_error *err) {
  wf_fst_batch *batch;
  const wf__device *gpu = NULL;
  *out = NULL;
  if (wf__names_gpu(device) && (gpu = wf__device_find(device, err)) == NULL) return WF_ERR_DEVICE;
  for (size_t i = 1; i < count; i++) WF__TRY(wf__same_semiring(fsts[0], fsts[i], err));
  wf_semiring semiring = count != 0 ? wf_fst_get_view(fsts[0]).semiring : WF_TROPICAL;
  wf_status status = batch_new(count, semiring, gpu != NULL, &batch, err);
  for (size_t i = 0; status == WF_OK && i < count; i++) {
    take_tables(batch, i, wf_fst_isymbols(fsts[i]), wf_fst_osymbols(fsts[i]),
                wf__fst_ctc_blank(fsts[i]));
    if (batch->items != NULL) batch->items[i].fst = wf_fst_ref(fsts[i]);
  }
  if (status == WF_OK && gpu != NULL)
    status = gpu->fstops->create(fsts, count, semiring, device, &batch->gpu, err);
  return give_result(status, batch, out);
}

/* Takes references to the results of a composer on the CPU, and copies of their origins. */
static wf_status take_results(wf_fst_batch *batch, const wf_composer *composer, wf_error *err) {
  for (size_t i = 0; i < batch->count; i++) {
    struct cpu_item *item = &batch->items[i];
    WF__TRY(wf_composer_to_fst(composer, i, &item->fst,
                               composer->with_origins ? &item->origins : NULL, err));
    for (int side = 0; side < 2; side++)
      item->num_inputs[side] = wf_fst_get_view(composer->inputs[side][i]).num_arcs;
  }
  return WF_OK;
}

wf_status wf_composer_to_batch(const wf_composer *composer, wf_fst_batch **out, wf_error *err) {
  wf_fst_batch *batch;
  const size_t count = composer->count;
  wf_semiring semiring =
      count != 0 ? wf_fst_get_view(composer->inputs[0][0]).semiring : WF_TROPICAL;
  wf_status status = batch_new(count, semiring, composer->gpu != NULL, &batch, err);
  for (size_t i = 0; status == WF_OK && i < count; i++)
    take_tables(batch, i, wf_fst_isymbols(composer->inputs[0][i]),
                wf_fst_osymbols(composer->inputs[1][i]), wf__fst_ctc_blank(composer->inputs[0][i]));
  if (status == WF_OK)
    status = composer->gpu != NULL
                 ? wf__gpu_fstops()->of_composer(composer->gpu, semiring, &batch->gpu, err)
                 : take_results(batch, composer, err);
  return give_result(status, batch, out);
}

/* --- queries ----------------------------------------------------------------------------- */

size_t wf_fst_batch_count(const wf_fst_batch *batch) { return batch->count; }

static wf_status check_index(const wf_fst_batch *batch, size_t i, wf_error *err) {
  return i < batch->count
             ? WF_OK
             : wf__fail(err, WF_ERR_ARGUMENT, "fst %zu is out of range, the batch has %zu fsts", i,
                        batch->count);
}

wf_status wf_fst_batch_to_fst(const wf_fst_batch *batch, size_t i, wf_fst **out, wf_error *err) {
  wf__csr csr = {0};
  int64_t start;
  *out = NULL;
  WF__TRY(check_index(batch, i, err));
  if (batch->items != NULL) {
    *out = wf_fst_ref(batch->items[i].fst);
    return WF_OK;
  }
  wf_status status = wf__gpu_fstops()->get(batch->gpu, i, &csr, &start, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, start, batch->semiring, batch->symbols[0][i],
                              batch->symbols[1][i], out, err);
  if (status == WF_OK) wf__fst_set_ctc_blank(*out, batch->blanks[i]);
  wf__csr_free(&csr);
  return status;
}

wf_status wf_fst_batch_get_view(const wf_fst_batch *batch, wf_fst_batch_view *view, wf_error *err) {
  *view = (wf_fst_batch_view){0};
  if (batch->gpu == NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "the batch is on the CPU; get its fsts with wf_fst_batch_to_fst");
  wf__gpu_fstops()->view(batch->gpu, view);
  return WF_OK;
}

wf_status wf_fst_batch_gradients(const wf_fst_batch *batch, size_t i, wf_gradients_of of,
                                 double **out, uint64_t *out_count, wf_error *err) {
  *out = NULL;
  *out_count = 0;
  WF__TRY(check_index(batch, i, err));
  if ((int)of < 0 || (int)of > 2)
    return wf__fail(err, WF_ERR_ARGUMENT, "gradients of %d, expected 0, 1 or 2", (int)of);
  if (batch->gpu != NULL)
    return wf__gpu_fstops()->gradients(batch->gpu, i, of, out, out_count, err);
  const struct cpu_item *item = &batch->items[i];
  if (item->gradients == NULL)
    return wf__fail(err, WF_ERR_STATE,
                    "no gradients: call wf_fst_batch_forward_score with gradients first");
  const double *from = of == WF_GRADIENTS_OF_ARCS ? item->gradients : item->input_gradients[of - 1];
  if (from == NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "no origins of arcs: the batch is not the result of a composition with "
                    "origins, or a later operation does not keep them");
  uint64_t count =
      of == WF_GRADIENTS_OF_ARCS ? wf_fst_get_view(item->fst).num_arcs : item->num_inputs[of - 1];
  *out = wf__alloc(count, sizeof **out);
  if (*out == NULL) return wf__fail_memory(err, count * sizeof **out, "gradients");
  if (count != 0) memcpy(*out, from, count * sizeof **out);
  *out_count = count;
  return WF_OK;
}

/* --- operations -------------------------------------------------------------------------- */

enum operation {
  ARCSORT_I,
  ARCSORT_O,
  CONNECT,
  DETERMINIZE,
  INVERT,
  MINIMIZE,
  PROJECT_I,
  PROJECT_O,
  REVERSE,
  RMEPSILON,
  SHORTEST_PATH
};

/* `options` are those of the operation; NULL if its name says everything. */
static wf_status on_gpu(const wf__gpu_batch *from, enum operation op, const void *options,
                        wf__gpu_batch **out, wf_error *err) {
  switch (op) {
    case ARCSORT_I: return wf__gpu_fstops()->arcsort(from, false, out, err);
    case ARCSORT_O: return wf__gpu_fstops()->arcsort(from, true, out, err);
    case CONNECT: return wf__gpu_fstops()->connect(from, out, err);
    case DETERMINIZE: return wf__gpu_fstops()->determinize(from, options, out, err);
    case INVERT: return wf__gpu_fstops()->labels(from, WF__INVERT, out, err);
    case MINIMIZE: return wf__gpu_fstops()->minimize(from, options, out, err);
    case PROJECT_I: return wf__gpu_fstops()->labels(from, WF__PROJECT_INPUT, out, err);
    case PROJECT_O: return wf__gpu_fstops()->labels(from, WF__PROJECT_OUTPUT, out, err);
    case REVERSE: return wf__gpu_fstops()->reverse(from, out, err);
    case RMEPSILON:
      return wf__gpu_fstops()->rmepsilon(from, ((const wf_rmepsilon_options *)options)->connect,
                                         out, err);
    case SHORTEST_PATH: return wf__gpu_fstops()->shortest_path(from, out, err);
  }
  return WF_OK;
}

static wf_status on_cpu(const wf_fst *fst, enum operation op, const void *options, wf_fst **out,
                        wf_error *err) {
  wf_project_options project;
  switch (op) {
    case ARCSORT_I: return wf__arcsort(fst, false, out, err);
    case ARCSORT_O: return wf__arcsort(fst, true, out, err);
    case CONNECT: return wf_connect(fst, out, err);
    case DETERMINIZE: return wf_determinize(fst, options, out, err);
    case INVERT: return wf_invert(fst, out, err);
    case MINIMIZE: return wf_minimize(fst, options, out, err);
    case PROJECT_I:
    case PROJECT_O:
      wf_project_options_init(&project);
      project.project_type = op == PROJECT_O;
      return wf_project(fst, &project, out, err);
    case REVERSE: return wf_reverse(fst, out, err);
    case RMEPSILON: return wf_rmepsilon(fst, options, out, err);
    case SHORTEST_PATH: return wf_shortest_path(fst, NULL, out, err);
  }
  return WF_OK;
}

/* Sets the origins of the arcs of a result, if the operation keeps them. */
static wf_status keep_origins(const struct cpu_item *from, enum operation op, struct cpu_item *to,
                              wf_error *err) {
  uint64_t num_arcs = wf_fst_get_view(from->fst).num_arcs;
  uint32_t *places = NULL;
  bool sorts = op == ARCSORT_I || op == ARCSORT_O;
  if (from->origins == NULL || (!sorts && op != INVERT && op != PROJECT_I && op != PROJECT_O))
    return WF_OK;
  if (sorts) WF__TRY(wf__arcsort_places(from->fst, op == ARCSORT_O, &places, err));
  to->origins = wf__alloc(num_arcs, sizeof *to->origins);
  if (to->origins == NULL) {
    free(places);
    return wf__fail_memory(err, num_arcs * sizeof *to->origins, "origins of arcs");
  }
  for (uint64_t i = 0; i < num_arcs; i++)
    to->origins[i] = from->origins[places != NULL ? places[i] : i];
  memcpy(to->num_inputs, from->num_inputs, sizeof to->num_inputs);
  free(places);
  return WF_OK;
}

static wf_status operate_with(const wf_fst_batch *from, enum operation op, const void *options,
                              wf_fst_batch **out, wf_error *err) {
  wf_fst_batch *batch;
  int isymbols = op == INVERT || op == PROJECT_O, osymbols = op != INVERT && op != PROJECT_I;
  wf_status status = batch_new(from->count, from->semiring, from->gpu != NULL, &batch, err);
  for (size_t i = 0; status == WF_OK && i < from->count; i++) {
    take_tables(batch, i, from->symbols[isymbols][i], from->symbols[osymbols][i],
                isymbols ? 0 : from->blanks[i]);
    if (batch->items == NULL) continue;
    status = on_cpu(from->items[i].fst, op, options, &batch->items[i].fst, err);
    if (status == WF_OK) status = keep_origins(&from->items[i], op, &batch->items[i], err);
    if (status != WF_OK) status = wf__fail_prefix(err, status, "fst %zu", i);
  }
  if (status == WF_OK && from->gpu != NULL)
    status = on_gpu(from->gpu, op, options, &batch->gpu, err);
  return give_result(status, batch, out);
}

static wf_status operate(const wf_fst_batch *from, enum operation op, wf_fst_batch **out,
                         wf_error *err) {
  return operate_with(from, op, NULL, out, err);
}

wf_status wf_fst_batch_arcsort(const wf_fst_batch *batch, const wf_arcsort_options *options,
                               wf_fst_batch **out, wf_error *err) {
  wf_arcsort_options o;
  *out = NULL;
  WF__TRY(wf__options_take(wf__arcsort_table(), options, &o, err));
  return operate(batch, o.sort_type == WF_SORT_OLABEL ? ARCSORT_O : ARCSORT_I, out, err);
}

wf_status wf_fst_batch_connect(const wf_fst_batch *batch, wf_fst_batch **out, wf_error *err) {
  return operate(batch, CONNECT, out, err);
}
wf_status wf_fst_batch_invert(const wf_fst_batch *batch, wf_fst_batch **out, wf_error *err) {
  return operate(batch, INVERT, out, err);
}
wf_status wf_fst_batch_reverse(const wf_fst_batch *batch, wf_fst_batch **out, wf_error *err) {
  return operate(batch, REVERSE, out, err);
}

wf_status wf_fst_batch_project(const wf_fst_batch *batch, const wf_project_options *options,
                               wf_fst_batch **out, wf_error *err) {
  wf_project_options o;
  *out = NULL;
  WF__TRY(wf__options_take(wf__project_table(), options, &o, err));
  return operate(batch, o.project_type == 1 ? PROJECT_O : PROJECT_I, out, err);
}

/* The options of WF_OPTIONS_THRESHOLD. */
static wf_status check_threshold(const wf_fst_batch *batch, float weight, int64_t nstate,
                                 wf_error *err) {
  wf_prune_options defaults;
  wf_prune_options_init(&defaults);
  if (batch->gpu == NULL || (weight >= defaults.weight && nstate == 0)) return WF_OK;
  return wf__fail(err, WF_ERR_UNSUPPORTED, "weight and nstate: only the CPU prunes results");
}

wf_status wf_fst_batch_rmepsilon(const wf_fst_batch *batch, const wf_rmepsilon_options *options,
                                 wf_fst_batch **out, wf_error *err) {
  wf_rmepsilon_options o;
  *out = NULL;
  WF__TRY(wf__options_take(wf__rmepsilon_table(), options, &o, err));
  WF__TRY(check_threshold(batch, o.weight, o.nstate, err));
  return operate_with(batch, RMEPSILON, &o, out, err);
}

/* Applies an operation on the CPU to the i-th fst of a batch that is on a GPU. */
static wf_status on_cpu_instead(const wf_fst_batch *from, enum operation op, const void *options,
                                size_t i, wf_fst **out, wf_error *err) {
  wf_fst *in;
  *out = NULL;
  WF__TRY(wf_fst_batch_to_fst(from, i, &in, err));
  wf_status status = on_cpu(in, op, options, out, err);
  wf_fst_free(in);
  return status == WF_OK ? WF_OK : wf__fail_prefix(err, status, "fst %zu", i);
}

/* Makes the error message on the CPU, which can give an input string as evidence. Determinizes one
 * fst after the other until one fails. */
static wf_status explain(const wf_fst_batch *batch, const wf_determinize_options *o,
                         wf_error *err) {
  for (size_t i = 0; i < batch->count; i++) {
    wf_fst *out;
    WF__TRY(on_cpu_instead(batch, DETERMINIZE, o, i, &out, err));
    wf_fst_free(out);
  }
  return wf__fail(err, WF_ERR_DEVICE, "the GPU could not determinize fsts that the CPU can");
}

wf_status wf_fst_batch_determinize(const wf_fst_batch *batch, const wf_determinize_options *options,
                                   wf_fst_batch **out, wf_error *err) {
  wf_determinize_options o;
  *out = NULL;
  WF__TRY(wf__options_take(wf__determinize_table(), options, &o, err));
  WF__TRY(check_threshold(batch, o.weight, o.nstate, err));
  if (batch->gpu != NULL && o.det_type == WF_DETERMINIZE_NONFUNCTIONAL)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "det_type=nonfunctional: only the CPU does that");
  o.allow_nonfunctional = o.allow_nonfunctional || o.det_type == WF_DETERMINIZE_DISAMBIGUATE;
  wf_status status = operate_with(batch, DETERMINIZE, &o, out, err);
  return status == WF_ERR_NOT_DETERMINIZABLE && batch->gpu != NULL ? explain(batch, &o, err)
                                                                   : status;
}

/* Minimizes each fst on the CPU. The results are stored in `made` [count], which must be NULL at
 * first. */
static wf_status minimize_each(const wf_fst_batch *from, const wf_minimize_options *o,
                               wf_fst_batch *to, wf_fst **made, wf_error *err) {
  for (size_t i = 0; i < from->count; i++) {
    take_tables(to, i, from->symbols[0][i], from->symbols[1][i], from->blanks[i]);
    WF__TRY(on_cpu_instead(from, MINIMIZE, o, i, &made[i], err));
  }
  return wf__gpu_fstops()->create_beside(from->gpu, (const wf_fst *const *)made, &to->gpu, err);
}

/* Minimizes a batch that the kernels do not support, or reports its errors. */
static wf_status minimize_on_cpu(const wf_fst_batch *from, const wf_minimize_options *o,
                                 wf_fst_batch **out, wf_error *err) {
  wf_fst_batch *batch;
  wf_fst **made = wf__calloc(from->count, sizeof *made);
  if (made == NULL) return wf__fail_memory(err, from->count * sizeof *made, "a batch");
  wf_status status = batch_new(from->count, from->semiring, true, &batch, err);
  if (status == WF_OK) status = minimize_each(from, o, batch, made, err);
  for (size_t i = 0; i < from->count; i++) wf_fst_free(made[i]);
  free(made);
  return give_result(status, batch, out);
}

wf_status wf_fst_batch_minimize(const wf_fst_batch *batch, const wf_minimize_options *options,
                                wf_fst_batch **out, wf_error *err) {
  wf_minimize_options o;
  *out = NULL;
  WF__TRY(wf__options_take(wf__minimize_table(), options, &o, err));
  wf_status status = operate_with(batch, MINIMIZE, &o, out, err);
  return status == WF_ERR_UNSUPPORTED && batch->gpu != NULL ? minimize_on_cpu(batch, &o, out, err)
                                                            : status;
}

wf_status wf_fst_batch_shortest_path(const wf_fst_batch *batch, wf_fst_batch **out, wf_error *err) {
  *out = NULL;
  if (batch->semiring != WF_TROPICAL)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "shortest paths need the tropical semiring; this batch is in the log semiring");
  return operate(batch, SHORTEST_PATH, out, err);
}

/* --- distances and scores ---------------------------------------------------------------- */

static wf_status distances_on_cpu(const wf_fst_batch *batch, const wf_shortest_distance_options *o,
                                  float **out, wf_error *err) {
  uint64_t num_states = 0, at = 0;
  wf_status status = WF_OK;
  for (size_t i = 0; i < batch->count; i++)
    num_states += wf_fst_get_view(batch->items[i].fst).num_states;
  *out = wf__alloc(num_states, sizeof **out);
  if (*out == NULL) return wf__fail_memory(err, num_states * sizeof **out, "distances");
  for (size_t i = 0; status == WF_OK && i < batch->count; i++) {
    float *each = NULL;
    uint64_t n = wf_fst_get_view(batch->items[i].fst).num_states;
    status = wf_shortest_distance(batch->items[i].fst, o, &each, err);
    if (status == WF_OK && n != 0) memcpy(*out + at, each, n * sizeof *each);
    at += n;
    free(each);
  }
  if (status == WF_OK) return WF_OK;
  free(*out);
  *out = NULL;
  return status;
}

wf_status wf_fst_batch_shortest_distance(const wf_fst_batch *batch,
                                         const wf_shortest_distance_options *options,
                                         float **out_distances, wf_error *err) {
  wf_shortest_distance_options o;
  *out_distances = NULL;
  WF__TRY(wf__options_take(wf__shortest_distance_table(), options, &o, err));
  if (batch->gpu == NULL) return distances_on_cpu(batch, &o, out_distances, err);
  return wf__gpu_fstops()->distances(batch->gpu, o.reverse, (double)o.delta, out_distances, err);
}

/* Adds the gradients of a composition's arcs to those of their origins. */
static void add_origin_gradients(const wf_arc_origin *origins, const double *gradients,
                                 uint64_t num_arcs, double *a_gradients, double *b_gradients) {
  for (uint64_t i = 0; i < num_arcs; i++) {
    if (a_gradients != NULL && origins[i].a != WF_NO_ARC) a_gradients[origins[i].a] += gradients[i];
    if (b_gradients != NULL && origins[i].b != WF_NO_ARC) b_gradients[origins[i].b] += gradients[i];
  }
}

static wf_status score_on_cpu(struct cpu_item *item, const wf_forward_score_options *o,
                              bool with_gradients, double *out_cost, wf_error *err) {
  forget_gradients(item);
  WF__TRY(wf_forward_score(item->fst, o, out_cost, with_gradients ? &item->gradients : NULL, err));
  if (!with_gradients || item->origins == NULL) return WF_OK;
  for (int side = 0; side < 2; side++) {
    item->input_gradients[side] = wf__calloc(item->num_inputs[side], sizeof(double));
    if (item->input_gradients[side] == NULL)
      return wf__fail_memory(err, item->num_inputs[side] * sizeof(double), "gradients");
  }
  add_origin_gradients(item->origins, item->gradients, wf_fst_get_view(item->fst).num_arcs,
                       item->input_gradients[0], item->input_gradients[1]);
  return WF_OK;
}

wf_status wf_fst_batch_forward_score(wf_fst_batch *batch, const wf_forward_score_options *options,
                                     bool with_gradients, double *out_costs, wf_error *err) {
  wf_forward_score_options o;
  WF__TRY(wf__options_take(wf__forward_score_table(), options, &o, err));
  if (with_gradients && batch->semiring != WF_LOG)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "gradients need the log semiring; this batch is in the tropical semiring");
  if (batch->gpu != NULL)
    return wf__gpu_fstops()->forward_score(batch->gpu, (double)o.delta, with_gradients, out_costs,
                                           err);
  for (size_t i = 0; i < batch->count; i++) {
    wf_status status = score_on_cpu(&batch->items[i], &o, with_gradients, &out_costs[i], err);
    if (status != WF_OK) return wf__fail_prefix(err, status, "fst %zu", i);
  }
  return WF_OK;
}
