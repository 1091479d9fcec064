/* fst.c - the immutable transducer container and its builder. */
#include "fst/fst.h"

#include <stdatomic.h>
#include <string.h>

#include "base/interrupt.h"
#include "fst/properties.h"

/* Groups of properties: each is computed and cached as a whole. */
enum { LOCAL, DETERMINISM, PATHS, CYCLES, NUM_GROUPS };

struct wf__fst_storage {
  atomic_uint_fast32_t refs;
  void (*release)(void *);
  void *keeper;
  int device;                      /* as wf__fst_device */
  double *wide_arcs, *wide_finals; /* as wf__fst_wide_arcs */
  /* one word per group (properties.h); 0 until computed, bit 31 is set once it is */
  atomic_uint_fast32_t properties[NUM_GROUPS];
};

struct wf_fst {
  atomic_uint_fast32_t refs;
  wf_fst_view view;
  wf_symbols *isymbols, *osymbols;
  struct boundaries *boundaries; /* word boundaries (fst.h), or NULL */
  int32_t ctc_blank;             /* as wf__fst_ctc_blank */
  struct wf__fst_storage *storage;
};

/* Word-boundary data, reference-counted and shared by fsts. */
struct boundaries {
  atomic_uint_fast32_t refs;
  uint64_t size;
  uint8_t bytes[];
};

/* --- arrays under construction ----------------------------------------------------------- */

wf_status wf__csr_add_state(wf__csr *csr, float final_cost, wf_error *err) {
  if (csr->final_cost.size >= WF__MAX_STATES)
    return wf__fail(err, WF_ERR_LIMIT, "more than %llu states", (unsigned long long)WF__MAX_STATES);
  WF__TRY(wf__interrupted_at(csr->arc_off.size, err));
  WF__TRY(wf__vec_grow(&csr->arc_off, 1, "states", err));
  WF__TRY(wf__vec_grow(&csr->final_cost, 1, "states", err));
  csr->arc_off.data[csr->arc_off.size++] = csr->arcs.size;
  csr->final_cost.data[csr->final_cost.size++] = final_cost;
  return WF_OK;
}

void wf__csr_free(wf__csr *csr) {
  wf__vec_free(&csr->arc_off);
  wf__vec_free(&csr->final_cost);
  wf__vec_free(&csr->arcs);
}

static void release_csr(void *keeper) {
  wf__csr_free(keeper);
  free(keeper);
}

/* Shrinks an array's allocation to its size if at least 1,024 elements and an eighth of the size
 * are unused. A failed realloc is ignored. */
static void shrink(void **data, uint64_t *cap, uint64_t size, size_t element) {
  if (*cap - size < 1024 || *cap - size < size / 8) return;
  void *moved = realloc(*data, size != 0 ? (size_t)(size * element) : 1);
  if (moved == NULL) return;
  *data = moved;
  *cap = size;
}

static wf_status close_csr(wf__csr *csr, int64_t start, wf_error *err) {
  if (start < 0) csr->arc_off.size = csr->final_cost.size = csr->arcs.size = 0;
  WF__TRY(wf__vec_grow(&csr->arc_off, 1, "states", err));
  WF__TRY(wf__vec_grow(&csr->arcs, 1, "arcs", err)); /* so that data is not NULL without arcs */
  WF__TRY(wf__vec_grow(&csr->final_cost, 1, "states", err));
  csr->arc_off.data[csr->arc_off.size++] = csr->arcs.size;
  shrink((void **)&csr->arcs.data, &csr->arcs.cap, csr->arcs.size, sizeof(wf_arc));
  shrink((void **)&csr->arc_off.data, &csr->arc_off.cap, csr->arc_off.size, sizeof(uint64_t));
  shrink((void **)&csr->final_cost.data, &csr->final_cost.cap, csr->final_cost.size, sizeof(float));
  return WF_OK;
}

wf_status wf__fst_from_csr(wf__csr *csr, int64_t start, wf_semiring semiring,
                           const wf_symbols *isymbols, const wf_symbols *osymbols, wf_fst **out,
                           wf_error *err) {
  *out = NULL;
  wf_status status = wf__interrupted(err);
  if (status == WF_OK) status = close_csr(csr, start, err);
  wf__csr *kept = status == WF_OK ? wf__alloc(1, sizeof *kept) : NULL;
  if (status == WF_OK && kept == NULL) status = wf__fail_memory(err, sizeof *kept, "an fst");
  if (status != WF_OK) {
    wf__csr_free(csr);
    return status;
  }
  *kept = *csr;
  *csr = (wf__csr){0};
  wf_fst_view view = {.start = start < 0 ? -1 : start,
                      .num_states = kept->final_cost.size,
                      .num_arcs = kept->arcs.size,
                      .arc_off = kept->arc_off.data,
                      .arcs = kept->arcs.data,
                      .final_cost = kept->final_cost.data,
                      .semiring = semiring};
  WF__TRY(wf__fst_from_arrays(&view, release_csr, kept, out, err));
  (*out)->isymbols = isymbols != NULL ? wf_symbols_ref(isymbols) : NULL;
  (*out)->osymbols = osymbols != NULL ? wf_symbols_ref(osymbols) : NULL;
  return WF_OK;
}

wf_status wf__fst_like(wf__csr *csr, int64_t start, const wf_fst *from, wf_fst **out,
                       wf_error *err) {
  WF__TRY(
      wf__fst_from_csr(csr, start, from->view.semiring, from->isymbols, from->osymbols, out, err));
  (*out)->ctc_blank = from->ctc_blank;
  return WF_OK;
}

/* --- the container ----------------------------------------------------------------------- */

wf_status wf__fst_from_arrays(const wf_fst_view *view, void (*release)(void *), void *keeper,
                              wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst *fst = wf__calloc(1, sizeof *fst);
  struct wf__fst_storage *storage = wf__calloc(1, sizeof *storage);
  if (fst == NULL || storage == NULL) {
    free(fst);
    free(storage);
    release(keeper);
    return wf__fail_memory(err, sizeof *fst + sizeof *storage, "an fst");
  }
  atomic_init(&fst->refs, 1);
  atomic_init(&storage->refs, 1);
  for (int group = 0; group < NUM_GROUPS; group++) atomic_init(&storage->properties[group], 0);
  storage->release = release;
  storage->keeper = keeper;
  storage->device = -1;
  fst->storage = storage;
  fst->view = *view;
  *out = fst;
  return WF_OK;
}

static struct boundaries *boundaries_ref(struct boundaries *boundaries) {
  if (boundaries != NULL) atomic_fetch_add(&boundaries->refs, 1);
  return boundaries;
}

static void boundaries_free(struct boundaries *boundaries) {
  if (boundaries != NULL && atomic_fetch_sub(&boundaries->refs, 1) == 1) free(boundaries);
}

static wf_status share(const wf_fst *fst, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst *copy = wf__calloc(1, sizeof *copy);
  if (copy == NULL) return wf__fail_memory(err, sizeof *copy, "an fst");
  atomic_init(&copy->refs, 1);
  copy->view = fst->view;
  copy->storage = fst->storage;
  atomic_fetch_add(&copy->storage->refs, 1);
  copy->boundaries = boundaries_ref(fst->boundaries);
  copy->ctc_blank = fst->ctc_blank;
  *out = copy;
  return WF_OK;
}

wf_status wf_fst_with_symbols(const wf_fst *fst, const wf_symbols *isymbols,
                              const wf_symbols *osymbols, wf_fst **out, wf_error *err) {
  WF__TRY(share(fst, out, err));
  (*out)->isymbols = isymbols != NULL ? wf_symbols_ref(isymbols) : NULL;
  (*out)->osymbols = osymbols != NULL ? wf_symbols_ref(osymbols) : NULL;
  return WF_OK;
}

wf_status wf_fst_with_semiring(const wf_fst *fst, wf_semiring semiring, wf_fst **out,
                               wf_error *err) {
  WF__TRY(wf_fst_with_symbols(fst, fst->isymbols, fst->osymbols, out, err));
  (*out)->view.semiring = semiring;
  return WF_OK;
}

wf_status wf__fst_set_boundaries(wf_fst *fst, const void *bytes, uint64_t size, wf_error *err) {
  struct boundaries *made = NULL;
  if (size > 0) {
    made = malloc(sizeof *made + (size_t)size);
    if (made == NULL) return wf__fail_memory(err, size, "word boundaries");
    atomic_init(&made->refs, 1);
    made->size = size;
    memcpy(made->bytes, bytes, (size_t)size);
  }
  boundaries_free(fst->boundaries);
  fst->boundaries = made;
  return WF_OK;
}

void wf__fst_copy_boundaries(wf_fst *fst, const wf_fst *from) {
  struct boundaries *old = fst->boundaries;
  fst->boundaries = boundaries_ref(from->boundaries);
  fst->ctc_blank = from->ctc_blank;
  boundaries_free(old);
}

const void *wf__fst_boundaries(const wf_fst *fst, uint64_t *size) {
  *size = fst->boundaries != NULL ? fst->boundaries->size : 0;
  return fst->boundaries != NULL ? fst->boundaries->bytes : NULL;
}

int32_t wf__fst_ctc_blank(const wf_fst *fst) { return fst->ctc_blank; }
void wf__fst_set_ctc_blank(wf_fst *fst, int32_t blank) { fst->ctc_blank = blank; }
void wf__fst_keep_ctc_blank(wf_fst *fst, const wf_fst *from) {
  if (fst->ctc_blank != from->ctc_blank) fst->ctc_blank = from->ctc_blank; /* fst may be `from` */
}

static bool reads(const wf_fst_view *view, int32_t label) {
  for (uint64_t i = 0; i < view->num_arcs; i++)
    if (view->arcs[i].ilabel == label) return true;
  return false;
}

wf_status wf__fst_common_blank(const wf_fst *const *fsts, size_t count, int32_t *out,
                               wf_error *err) {
  size_t first = 0;
  while (first < count && fsts[first]->ctc_blank == 0) first++;
  *out = first < count ? fsts[first]->ctc_blank : 0;
  for (size_t k = 0; k < count && *out != 0; k++) {
    const int32_t blank = fsts[k]->ctc_blank;
    if (blank != 0 && blank != *out)
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "fsts %zu and %zu are token graphs with different blanks, labels %d and %d",
                      first + 1, k + 1, *out, blank);
    if (blank == 0 && reads(&fsts[k]->view, *out))
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "fst %zu is a token graph, and fst %zu reads its blank, label %d: a token "
                      "graph and a graph that reads frames cannot be joined",
                      first + 1, k + 1, *out);
  }
  return WF_OK;
}

int wf__fst_device(const wf_fst *fst) { return fst->storage->device; }
void wf__fst_set_device(wf_fst *fst, int device) { fst->storage->device = device; }

wf_fst_view wf_fst_get_view(const wf_fst *fst) { return fst->view; }
const wf_symbols *wf_fst_isymbols(const wf_fst *fst) { return fst->isymbols; }
const wf_symbols *wf_fst_osymbols(const wf_fst *fst) { return fst->osymbols; }

wf_fst *wf_fst_ref(const wf_fst *fst) {
  wf_fst *shared = (wf_fst *)(uintptr_t)fst;
  atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf_fst_free(wf_fst *fst) {
  if (fst == NULL || atomic_fetch_sub(&fst->refs, 1) != 1) return;
  if (atomic_fetch_sub(&fst->storage->refs, 1) == 1) {
    fst->storage->release(fst->storage->keeper);
    free(fst->storage->wide_arcs);
    free(fst->storage->wide_finals);
    free(fst->storage);
  }
  wf_symbols_free(fst->isymbols);
  wf_symbols_free(fst->osymbols);
  boundaries_free(fst->boundaries);
  free(fst);
}

void wf__fst_set_wide(wf_fst *fst, double *arcs, double *finals) {
  fst->storage->wide_arcs = arcs;
  fst->storage->wide_finals = finals;
}

const double *wf__fst_wide_arcs(const wf_fst *fst) { return fst->storage->wide_arcs; }

const double *wf__fst_wide_finals(const wf_fst *fst) { return fst->storage->wide_finals; }

static const uint32_t properties_known = 1u << 31;

static wf_status local_properties(const wf_fst_view *view, uint32_t *out) {
  *out = wf__local_properties(view);
  return WF_OK;
}

/* Adds the properties of a group to *out. */
static wf_status add_properties(const wf_fst *fst, int group, uint32_t *out) {
  static wf_status (*const compute[NUM_GROUPS])(const wf_fst_view *, uint32_t *) = {
      local_properties, wf__determinism_properties, wf__path_properties, wf__cycle_properties};
  atomic_uint_fast32_t *kept = &fst->storage->properties[group];
  uint32_t properties = (uint32_t)atomic_load(kept);
  if (properties == 0) {
    WF__TRY(compute[group](&fst->view, &properties));
    properties |= properties_known;
    atomic_store(kept, properties);
  }
  *out |= properties & ~properties_known;
  return WF_OK;
}

static wf_status fail_properties(wf_error *err) {
  return wf__fail(err, WF_ERR_MEMORY, "out of memory for the properties of an fst");
}

uint32_t wf__fst_local_properties(const wf_fst *fst) {
  uint32_t found = 0;
  (void)add_properties(fst, LOCAL, &found); /* needs no memory */
  return found;
}

bool wf__fst_known_sorted(const wf_fst *fst, bool by_output) {
  uint32_t known = (uint32_t)atomic_load(&fst->storage->properties[LOCAL]);
  return (known & (uint32_t)(by_output ? WF_PROP_OLABEL_SORTED : WF_PROP_ILABEL_SORTED)) != 0;
}

wf_status wf__fst_is_acyclic(const wf_fst *fst, bool *out, wf_error *err) {
  uint32_t found = 0;
  wf_status status = add_properties(fst, CYCLES, &found);
  *out = found != 0;
  return status == WF_OK ? WF_OK : fail_properties(err);
}

wf_status wf_fst_get_properties(const wf_fst *fst, uint32_t *out, wf_error *err) {
  wf__error_clear(err);
  *out = 0;
  for (int group = 0; group < NUM_GROUPS; group++)
    if (add_properties(fst, group, out) != WF_OK) return fail_properties(err);
  return WF_OK;
}

uint32_t wf_fst_properties(const wf_fst *fst) {
  uint32_t found = 0;
  for (int group = 0; group < NUM_GROUPS; group++) (void)add_properties(fst, group, &found);
  return found;
}

void wf__fst_set_trimmed(wf_fst *fst) {
  atomic_store(&fst->storage->properties[PATHS], WF__PATH_PROPERTIES | properties_known);
}
bool wf__fst_known_trimmed(const wf_fst *fst) {
  return atomic_load(&fst->storage->properties[PATHS]) == (WF__PATH_PROPERTIES | properties_known);
}

wf_status wf__same_semiring(const wf_fst *a, const wf_fst *b, wf_error *err) {
  if (a->view.semiring == b->view.semiring) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "the two fsts are in different semirings (tropical and log)");
}

wf_status wf__fst_empty(wf_semiring semiring, wf_fst **out, wf_error *err) {
  wf__csr csr = {0};
  return wf__fst_from_csr(&csr, -1, semiring, NULL, NULL, out, err);
}

static bool is_cost(float cost) { return !isnan(cost) && cost != -INFINITY; }

wf_status wf__fst_check(const wf_fst_view *view, const char *name, wf_error *err) {
  uint64_t n = view->num_states;
  if (n > WF__MAX_STATES)
    return wf__fail(err, WF_ERR_LIMIT, "%s: %llu states, expected at most 2^31-1", name,
                    (unsigned long long)n);
  if (view->start < -1 || view->start >= (int64_t)n || (view->start < 0 && n != 0))
    return wf__fail(err, WF_ERR_FORMAT, "%s: start state %lld is out of range (%llu states)", name,
                    (long long)view->start, (unsigned long long)n);
  if (view->arc_off[0] != 0 || view->arc_off[n] != view->num_arcs)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: the arc offsets do not run from 0 to the number of arcs", name);
  for (uint64_t s = 0; s < n; s++) {
    if (view->arc_off[s] > view->arc_off[s + 1] || view->arc_off[s + 1] > view->num_arcs)
      return wf__fail(err, WF_ERR_FORMAT,
                      "%s: the arc offsets decrease or pass the number of arcs at state %llu", name,
                      (unsigned long long)s);
    if (!is_cost(view->final_cost[s]))
      return wf__fail(err, WF_ERR_FORMAT, "%s: final cost of state %llu is NaN or -infinity", name,
                      (unsigned long long)s);
  }
  for (uint64_t i = 0; i < view->num_arcs; i++) {
    const wf_arc *arc = &view->arcs[i];
    if (arc->nextstate >= n)
      return wf__fail(err, WF_ERR_FORMAT,
                      "%s: arc %llu leads to state %u, but there are only %llu states", name,
                      (unsigned long long)i, arc->nextstate, (unsigned long long)n);
    if (arc->ilabel < 0 || arc->olabel < 0)
      return wf__fail(err, WF_ERR_FORMAT, "%s: arc %llu has a negative label", name,
                      (unsigned long long)i);
    if (!is_cost(arc->weight))
      return wf__fail(err, WF_ERR_FORMAT, "%s: weight of arc %llu is NaN or -infinity", name,
                      (unsigned long long)i);
  }
  return WF_OK;
}

/* --- the builder ------------------------------------------------------------------------- */

struct builder_arc {
  uint32_t state;
  wf_arc arc;
};

struct wf_builder {
  wf_semiring semiring;
  int64_t start;
  WF__VEC(float) final_cost;
  WF__VEC(struct builder_arc) arcs;
};

wf_status wf_builder_create(wf_semiring semiring, wf_builder **out, wf_error *err) {
  *out = NULL;
  if (semiring != WF_TROPICAL && semiring != WF_LOG)
    return wf__fail(err, WF_ERR_ARGUMENT, "unknown semiring %d", (int)semiring);
  wf_builder *builder = wf__calloc(1, sizeof *builder);
  if (builder == NULL) return wf__fail_memory(err, sizeof *builder, "a builder");
  builder->semiring = semiring;
  builder->start = -1;
  *out = builder;
  return WF_OK;
}

void wf_builder_free(wf_builder *builder) {
  if (builder == NULL) return;
  wf__vec_free(&builder->final_cost);
  wf__vec_free(&builder->arcs);
  free(builder);
}

wf_status wf_builder_reserve(wf_builder *builder, uint64_t num_states, uint64_t num_arcs,
                             wf_error *err) {
  if (num_states > builder->final_cost.size)
    WF__TRY(
        wf__vec_grow(&builder->final_cost, num_states - builder->final_cost.size, "states", err));
  if (num_arcs > builder->arcs.size)
    WF__TRY(wf__vec_grow(&builder->arcs, num_arcs - builder->arcs.size, "arcs", err));
  return WF_OK;
}

wf_status wf_builder_add_states(wf_builder *builder, uint64_t count, uint32_t *out_first,
                                wf_error *err) {
  if (count > WF__MAX_STATES - builder->final_cost.size)
    return wf__fail(err, WF_ERR_LIMIT, "more than %llu states", (unsigned long long)WF__MAX_STATES);
  WF__TRY(wf__vec_grow(&builder->final_cost, count, "states", err));
  if (out_first != NULL) *out_first = (uint32_t)builder->final_cost.size;
  for (uint64_t i = 0; i < count; i++)
    builder->final_cost.data[builder->final_cost.size++] = INFINITY;
  return WF_OK;
}

static wf_status check_state(const wf_builder *builder, uint32_t state, wf_error *err) {
  if (state < builder->final_cost.size) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT, "state %u does not exist, the builder has %llu states",
                  state, (unsigned long long)builder->final_cost.size);
}

wf_status wf_builder_set_start(wf_builder *builder, uint32_t state, wf_error *err) {
  WF__TRY(check_state(builder, state, err));
  builder->start = state;
  return WF_OK;
}

wf_status wf_builder_set_final(wf_builder *builder, uint32_t state, float cost, wf_error *err) {
  WF__TRY(check_state(builder, state, err));
  if (!is_cost(cost))
    return wf__fail(err, WF_ERR_ARGUMENT, "final cost of state %u is NaN or -infinity", state);
  builder->final_cost.data[state] = cost;
  return WF_OK;
}

wf_status wf_builder_add_arcs(wf_builder *builder, const uint32_t *states, const wf_arc *arcs,
                              uint64_t count, wf_error *err) {
  WF__TRY(wf__vec_grow(&builder->arcs, count, "arcs", err));
  for (uint64_t i = 0; i < count; i++) {
    WF__TRY(check_state(builder, states[i], err));
    WF__TRY(check_state(builder, arcs[i].nextstate, err));
    if (arcs[i].ilabel < 0 || arcs[i].olabel < 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "negative label %d:%d", arcs[i].ilabel, arcs[i].olabel);
    if (!is_cost(arcs[i].weight))
      return wf__fail(err, WF_ERR_ARGUMENT, "weight of an arc of state %u is NaN or -infinity",
                      states[i]);
    builder->arcs.data[builder->arcs.size + i] = (struct builder_arc){states[i], arcs[i]};
  }
  builder->arcs.size += count;
  return WF_OK;
}

wf_status wf_builder_add_arc(wf_builder *builder, uint32_t state, wf_arc arc, wf_error *err) {
  return wf_builder_add_arcs(builder, &state, &arc, 1, err);
}

/* Counting sort by state. It is stable, so the arcs of a state keep the order in which they were
 * added. */
static wf_status fill_csr(const wf_builder *builder, wf__csr *csr, wf_error *err) {
  uint64_t n = builder->final_cost.size, m = builder->arcs.size;
  WF__TRY(wf__vec_grow(&csr->arc_off, n + 2, "states", err));
  WF__TRY(wf__vec_grow(&csr->final_cost, n + 1, "states", err));
  WF__TRY(wf__vec_grow(&csr->arcs, m + 1, "arcs", err));
  uint64_t *off = csr->arc_off.data;
  memset(off, 0, (n + 2) * sizeof *off);
  for (uint64_t i = 0; i < m; i++) off[builder->arcs.data[i].state + 2]++;
  for (uint64_t s = 0; s < n; s++) off[s + 2] += off[s + 1];
  for (uint64_t i = 0; i < m; i++)
    csr->arcs.data[off[builder->arcs.data[i].state + 1]++] = builder->arcs.data[i].arc;
  if (n != 0) memcpy(csr->final_cost.data, builder->final_cost.data, n * sizeof(float));
  csr->arc_off.size = csr->final_cost.size = n;
  csr->arcs.size = m;
  return WF_OK;
}

wf_status wf_builder_finish(wf_builder *builder, const wf_symbols *isymbols,
                            const wf_symbols *osymbols, wf_fst **out, wf_error *err) {
  *out = NULL;
  if (builder->start < 0 && builder->final_cost.size != 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "no start state was set");
  wf__csr csr = {0};
  wf_status status = fill_csr(builder, &csr, err);
  if (status != WF_OK) {
    wf__csr_free(&csr);
    return status;
  }
  WF__TRY(wf__fst_from_csr(&csr, builder->start, builder->semiring, isymbols, osymbols, out, err));
  builder->start = -1;
  builder->final_cost.size = 0;
  builder->arcs.size = 0;
  return WF_OK;
}
