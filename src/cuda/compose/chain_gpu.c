/* chain_gpu.c - composition of more than two fsts on a GPU: the composition on the left of another
 * is not written. Its states are made when the other one first visits them, as on the CPU
 * (fstops/compose_chain.h). Each composition but the last has a table of the pairs known, in the
 * order in which they were found, and the rows of those that the composition on its right has
 * visited.
 *
 * A level of the last composition asks the chain on its left for the states of its new pairs; that
 * chain asks the one on its own left; then the arcs of these states are made, sorted by output
 * label, and turned into links. The numbers of states depend on which thread was first, so for the
 * canonical order they are replaced by ranks at the end. */
#include "cuda/compose/chain_kernels.h"
#include "cuda/compose/gpu_composer.h"
#include "cuda/compose/sparse_gpu.h"
#include "cuda/fstops/ops_kernels.h"
#include "fstops/compose_filter.h"
#include "fstops/composer.h"

#define MAX_CHAIN_STATES (UINT32_MAX / 3) /* rows have 32-bit numbers */

/* A device array that keeps its contents when it grows. */
struct array {
  wf__gpu_blocks block;
  void *data;
  uint64_t bytes;
};

typedef struct wf__sparse_chain {
  wf__sparse_left as_left; /* first: a wf__sparse_left points to a chain */
  wf__sparse *sparse;      /* the inputs */
  wf__sparse_search search;
  wf__chain_rows rows;
  uint64_t next_num_b;
  uint64_t num_numbers,
      num_slots;        /* pairs that have a number in `numbers`; slots when they got it */
  struct array numbers; /* [slots] number of the pair at each slot */
  struct array marks;   /* [states] is the state made? */
  struct array link_begin, link_tail, link_end, final_cost, arcs, links;
  uint64_t num_arcs, num_links;
} wf__sparse_chain;

/* --- memory ------------------------------------------------------------------------------ */

/* Makes room for `bytes`, of which the first `used` are kept; the others are zero. */
static wf_status reserve(wf__gpu_context *c, struct array *array, uint64_t used, uint64_t bytes,
                         wf_error *err) {
  if (bytes <= array->bytes) return WF_OK;
  struct array made = {.bytes = bytes > 2 * array->bytes ? bytes : 2 * array->bytes};
  WF__TRY(wf__ops_take(c, &made.block, made.bytes, "states of a composition", &made.data, err));
  cudaError_t code = cudaMemsetAsync((char *)made.data + used, 0, made.bytes - used, c->stream);
  if (code == cudaSuccess && used != 0)
    code = cudaMemcpyAsync(made.data, array->data, used, cudaMemcpyDeviceToDevice, c->stream);
  if (code != cudaSuccess) {
    wf__ops_release(c, &made.block);
    return wf__cuda_fail(err, code, "states of a composition");
  }
  wf__ops_release(c, &array->block);
  *array = made;
  return WF_OK;
}

/* Makes room for all states that the search has found. */
static wf_status reserve_states(wf__sparse_chain *self, wf_error *err) {
  wf__gpu_context *c = self->search.context;
  const uint64_t states = self->search.count, rows = states * self->rows.num_filters;
  WF__TRY(reserve(c, &self->marks, self->marks.bytes, states * sizeof(uint32_t), err));
  WF__TRY(reserve(c, &self->final_cost, self->final_cost.bytes, states * sizeof(float), err));
  WF__TRY(reserve(c, &self->link_begin, self->link_begin.bytes, rows * sizeof(uint64_t), err));
  WF__TRY(reserve(c, &self->link_tail, self->link_tail.bytes, rows * sizeof(uint64_t), err));
  WF__TRY(reserve(c, &self->link_end, self->link_end.bytes, rows * sizeof(uint64_t), err));
  self->rows.final_cost = self->final_cost.data;
  self->rows.link_begin = self->link_begin.data;
  self->rows.link_tail = self->link_tail.data;
  self->rows.link_end = self->link_end.data;
  return WF_OK;
}

static uint64_t chain_bytes(const wf__sparse_left *as_left) {
  const wf__sparse_chain *chain = (const wf__sparse_chain *)as_left;
  const wf__sparse_left *left = chain->search.left;
  return chain->search.table.num_slots * 12 + chain->numbers.bytes + chain->marks.bytes +
         chain->link_begin.bytes * 3 + chain->final_cost.bytes + chain->arcs.bytes +
         chain->links.bytes + (left != NULL ? left->bytes(left) : 0);
}

static void chain_free(wf__sparse_left *as_left) {
  wf__sparse_chain *chain = (wf__sparse_chain *)as_left;
  wf__gpu_context *c = chain->search.context;
  struct array *arrays[] = {&chain->numbers,   &chain->marks,    &chain->link_begin,
                            &chain->link_tail, &chain->link_end, &chain->final_cost,
                            &chain->arcs,      &chain->links};
  const int caller = wf__callers_device();
  cudaSetDevice(c->device);
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) wf__ops_release(c, &arrays[i]->block);
  wf__sparse_search_end(&chain->search);
  wf__restore_device(caller);
  wf__sparse_free(chain->sparse); /* with the chain on its left */
  free(chain);
}

static wf_status chain_make(wf__sparse_left *as_left, const uint64_t *keys, uint64_t count,
                            wf__sparse_inputs *in, wf_error *err);
static wf_status chain_sort(const wf__sparse_search *search, wf__gpu_blocks *room, uint64_t *keys,
                            wf_error *err);

/* `sparse` has the inputs of the composition and becomes the chain's, also on failure. `next` is
 * the right side of the composition that visits the chain's states. */
static wf_status chain_create(wf__sparse *sparse, const wf__compose_side *next,
                              const wf_compose_options *options, wf__sparse_left **out,
                              wf_error *err) {
  wf__sparse_chain *self = wf__calloc(1, sizeof *self);
  *out = NULL;
  if (self == NULL) {
    wf__sparse_free(sparse);
    return wf__fail_memory(err, sizeof *self, "a composition");
  }
  self->as_left = (wf__sparse_left){chain_make, chain_sort, chain_bytes, chain_free};
  self->sparse = sparse;
  self->search = wf__sparse_search_of(sparse, options);
  self->rows.filter = (uint32_t)options->filter;
  self->rows.num_filters =
      (uint32_t)wf__num_filter_states(options->filter, true, next->has_epsilons);
  self->rows.b_has_epsilons = next->has_epsilons;
  self->next_num_b = next->view.num_states;
  wf_status status = wf__sparse_search_begin(&self->search, err);
  if (status == WF_OK)
    *out = &self->as_left;
  else
    chain_free(&self->as_left);
  return status;
}

/* --- making states ----------------------------------------------------------------------- */

/* The states that are being made. */
struct wanted {
  wf__gpu_blocks room;
  uint64_t count;
  uint32_t *numbers; /* [count] */
  uint64_t *pairs;   /* [count] */
  uint64_t *arc_off; /* [count + 1] */
  float *final_cost; /* [count] */
};

/* Lists the states of A in `keys` that are not made. */
static wf_status list_wanted(wf__sparse_chain *self, const uint64_t *keys, uint64_t count,
                             struct wanted *w, wf_error *err) {
  wf__gpu_context *c = self->search.context;
  const uint64_t most = count < self->search.count ? count : self->search.count;
  uint64_t *num_wanted;
  WF__TRY(reserve_states(self, err));
  TAKE(c, &w->room, w->numbers, most, "states of a composition");
  TAKE(c, &w->room, w->pairs, most, "states of a composition");
  TAKE(c, &w->room, num_wanted, 1, "states of a composition");
  WF__CUDA_TRY(cudaMemsetAsync(num_wanted, 0, sizeof *num_wanted, c->stream),
               "states of a composition");
  WF__CUDA_TRY(
      wf__chain_want(keys, count, self->next_num_b, self->rows.num_filters, self->search.table.list,
                     self->marks.data, w->numbers, w->pairs, num_wanted, c->stream),
      "states of a composition");
  READ(c, "states of a composition", VALUE(w->count, num_wanted));
  return WF_OK;
}

/* Gives the pairs found since the last call their numbers. */
static wf_status number_pairs(wf__sparse_chain *self, wf_error *err) {
  wf__gpu_context *c = self->search.context;
  const wf__sparse_table *table = &self->search.table;
  if (self->num_slots != table->num_slots) self->num_numbers = 0; /* they are at other slots */
  WF__TRY(reserve(c, &self->numbers, 0, table->num_slots * sizeof(uint32_t), err));
  WF__CUDA_TRY(wf__sparse_rank(table, table->list, self->num_numbers, self->search.count,
                               self->numbers.data, c->stream),
               "pairs of states");
  self->num_numbers = self->search.count;
  self->num_slots = table->num_slots;
  return WF_OK;
}

/* Stable sort of `index` by `keys`. */
static wf_status sort_pairs(wf__gpu_context *c, wf__gpu_blocks *room, const uint64_t *keys,
                            const uint32_t *index, uint32_t *index_out, uint64_t count,
                            int key_bits, wf_error *err) {
  uint64_t *keys_out;
  size_t bytes = 0;
  char *scratch;
  TAKE(c, room, keys_out, count, "sorting");
  WF__CUDA_TRY(
      wf__ops_sort64(keys, keys_out, index, index_out, count, key_bits, NULL, &bytes, c->stream),
      "sorting");
  TAKE(c, room, scratch, bytes, "sorting");
  WF__CUDA_TRY(
      wf__ops_sort64(keys, keys_out, index, index_out, count, key_bits, scratch, &bytes, c->stream),
      "sorting");
  return WF_OK;
}

/* Sorts the new arcs of each state by output label, behind the arcs made before. */
static wf_status add_arcs(wf__sparse_chain *self, struct wanted *w, const wf_arc *arcs,
                          uint64_t num_arcs, wf_error *err) {
  wf__gpu_context *c = self->search.context;
  uint64_t *keys;
  uint32_t *index, *order;
  int bits = 32;
  while (bits < 64 && w->count >> (bits - 32) != 0) bits++;
  TAKE(c, &w->room, keys, num_arcs, "sorting");
  TAKE(c, &w->room, index, num_arcs, "sorting");
  TAKE(c, &w->room, order, num_arcs, "sorting");
  WF__CUDA_TRY(wf__chain_arc_keys(arcs, num_arcs, w->arc_off, w->count, keys, index, c->stream),
               "sorting");
  WF__TRY(sort_pairs(c, &w->room, keys, index, order, num_arcs, bits, err));
  WF__TRY(reserve(c, &self->arcs, self->num_arcs * sizeof *arcs,
                  (self->num_arcs + num_arcs) * sizeof *arcs, err));
  self->rows.arcs = self->arcs.data;
  WF__CUDA_TRY(wf__ops_gather(arcs, NULL, order, num_arcs, self->rows.arcs + self->num_arcs, NULL,
                              c->stream),
               "arcs of a composition");
  return WF_OK;
}

/* Makes the arcs of the wanted states. The pairs that they lead to are known. */
static wf_status make_arcs(wf__sparse_chain *self, struct wanted *w, uint64_t *out_num_arcs,
                           wf_error *err) {
  wf__gpu_context *c = self->search.context;
  const wf__sparse_search *search = &self->search;
  uint64_t *item_off, *place, num_items;
  wf_arc *arcs;
  WF__TRY(wf__sparse_search_items(search, &w->room, w->pairs, w->count, &item_off, err));
  READ(c, "arcs of a composition", VALUE(num_items, item_off + w->count));
  TAKE(c, &w->room, place, num_items + 1, "arcs of a composition");
  WF__CUDA_TRY(
      wf__sparse_count(&search->in, w->pairs, w->count, item_off, num_items, place, c->stream),
      "arcs of a composition");
  WF__TRY(wf__sparse_search_add_up(search, &w->room, place, num_items + 1, err));
  READ(c, "arcs of a composition", VALUE(*out_num_arcs, place + num_items));
  if (self->num_arcs + *out_num_arcs >= WF_NO_ARC)
    return wf__fail(err, WF_ERR_LIMIT, "a composition in between has more than 2^32 - 2 arcs");
  TAKE(c, &w->room, arcs, *out_num_arcs, "arcs of a composition");
  TAKE(c, &w->room, w->arc_off, w->count + 1, "arcs of a composition");
  TAKE(c, &w->room, w->final_cost, w->count, "arcs of a composition");
  WF__CUDA_TRY(
      wf__sparse_fill(&search->in, &search->table, w->pairs, w->count, item_off, num_items, place,
                      self->numbers.data, w->arc_off, arcs, w->final_cost, NULL, c->stream),
      "arcs of a composition");
  return add_arcs(self, w, arcs, *out_num_arcs, err);
}

static wf_status make_links(wf__sparse_chain *self, struct wanted *w, uint64_t num_arcs,
                            wf_error *err) {
  wf__gpu_context *c = self->search.context;
  wf__chain_rows *rows = &self->rows;
  uint64_t *link_off, num_links;
  rows->count = w->count;
  rows->numbers = w->numbers;
  rows->arc_off = w->arc_off;
  rows->made_final = w->final_cost;
  rows->first_arc = self->num_arcs;
  rows->first_link = self->num_links;
  const uint64_t num_rows = w->count * rows->num_filters;
  TAKE(c, &w->room, link_off, num_rows + 1, "links of rows");
  WF__CUDA_TRY(wf__chain_count_links(rows, link_off, c->stream), "links of rows");
  WF__TRY(wf__sparse_search_add_up(&self->search, &w->room, link_off, num_rows + 1, err));
  READ(c, "links of rows", VALUE(num_links, link_off + num_rows));
  WF__TRY(reserve(c, &self->links, self->num_links * sizeof *rows->links,
                  (self->num_links + num_links) * sizeof *rows->links, err));
  rows->links = self->links.data;
  WF__CUDA_TRY(wf__chain_fill_links(rows, link_off, num_links, c->stream), "links of rows");
  self->num_arcs += num_arcs;
  self->num_links += num_links;
  return WF_OK;
}

static wf_status make_wanted(wf__sparse_chain *self, const uint64_t *keys, uint64_t count,
                             struct wanted *w, wf_error *err) {
  wf__sparse_search *search = &self->search;
  uint64_t num_arcs;
  WF__TRY(list_wanted(self, keys, count, w, err));
  if (w->count == 0) return WF_OK;
  if (search->left != NULL)
    WF__TRY(search->left->make(search->left, w->pairs, w->count, &search->in, err));
  WF__TRY(wf__sparse_search_step(search, w->pairs, w->count, err));
  if (search->count > MAX_CHAIN_STATES)
    return wf__fail(err, WF_ERR_LIMIT, "a composition in between has more than %u states",
                    MAX_CHAIN_STATES);
  WF__TRY(reserve_states(self, err));
  WF__TRY(number_pairs(self, err));
  WF__TRY(make_arcs(self, w, &num_arcs, err));
  return make_links(self, w, num_arcs, err);
}

static wf_status chain_make(wf__sparse_left *as_left, const uint64_t *keys, uint64_t count,
                            wf__sparse_inputs *in, wf_error *err) {
  wf__sparse_chain *self = (wf__sparse_chain *)as_left;
  struct wanted wanted = {.count = 0};
  wf_status status = make_wanted(self, keys, count, &wanted, err);
  wf__ops_release(self->search.context, &wanted.room);
  in->num_rows = self->search.count * self->rows.num_filters;
  in->num_filters = self->rows.num_filters;
  in->link_begin = self->rows.link_begin;
  in->link_tail = self->rows.link_tail;
  in->link_end = self->rows.link_end;
  in->links = self->rows.links;
  in->a_arcs = self->rows.arcs;
  in->a_final = self->rows.final_cost;
  return status;
}

/* --- canonical order --------------------------------------------------------------------- */

static wf_status order_of(const wf__sparse_search *search, uint32_t *order, wf_error *err);

/* Ranks of the chain's states in canonical order. */
static wf_status rank_states(const wf__sparse_chain *chain, wf__gpu_blocks *room, uint32_t **out,
                             wf_error *err) {
  wf__gpu_context *c = chain->search.context;
  const uint64_t count = chain->search.count;
  uint32_t *order;
  TAKE(c, room, order, count, "sorting");
  TAKE(c, room, *out, count, "sorting");
  WF__TRY(order_of(&chain->search, order, err));
  WF__CUDA_TRY(wf__chain_ranks(order, count, *out, c->stream), "sorting");
  return WF_OK;
}

static wf_status order_in(const wf__sparse_search *search, wf__gpu_blocks *room, uint32_t *order,
                          wf_error *err) {
  wf__gpu_context *c = search->context;
  uint64_t *keys;
  uint32_t *ranks = NULL, *index;
  if (search->left != NULL)
    WF__TRY(rank_states((const wf__sparse_chain *)search->left, room, &ranks, err));
  TAKE(c, room, keys, search->count, "sorting");
  TAKE(c, room, index, search->count, "sorting");
  WF__CUDA_TRY(wf__chain_rank_keys(search->table.list, search->count, search->in.num_b,
                                   search->in.num_filters, ranks, keys, index, c->stream),
               "sorting");
  return sort_pairs(c, room, keys, index, order, search->count, wf__sparse_search_key_bits(search),
                    err);
}

/* Writes the canonical order of the pairs of a search to `order` [search->count]: indices in the
 * list of its table. */
static wf_status order_of(const wf__sparse_search *search, uint32_t *order, wf_error *err) {
  wf__gpu_blocks room = {.count = 0};
  wf_status status = order_in(search, &room, order, err);
  wf__ops_release(search->context, &room);
  return status;
}

static wf_status chain_sort(const wf__sparse_search *search, wf__gpu_blocks *room, uint64_t *keys,
                            wf_error *err) {
  wf__gpu_context *c = search->context;
  uint32_t *order;
  TAKE(c, room, order, search->count, "sorting");
  WF__TRY(order_of(search, order, err));
  WF__CUDA_TRY(wf__chain_gather(search->table.list, order, search->count, keys, c->stream),
               "sorting");
  return WF_OK;
}

/* --- the whole composition --------------------------------------------------------------- */

/* Makes the last composition, with a chain on its left. */
static wf_status make_chain(wf__gpu_context *context, const wf__compose_side *sides, size_t count,
                            const wf_compose_options *options, wf__sparse **out, wf_error *err) {
  wf__compose_job job = {.a = &sides[0], .b = &sides[1], .filter = options->filter};
  wf__sparse_left *left;
  WF__TRY(wf__sparse_create_on(context, &job, sides[0].fst, sides[1].fst, NULL, out, err));
  for (size_t i = 2; i < count; i++) {
    WF__TRY(chain_create(*out, &sides[i], options, &left, err));
    job.a = NULL;
    job.b = &sides[i];
    WF__TRY(wf__sparse_create_on(context, &job, NULL, sides[i].fst, left, out, err));
  }
  return WF_OK;
}

static wf_status compose_sides(wf__gpu_context *context, const wf__compose_side *sides,
                               size_t count, const wf_compose_options *options,
                               wf__compose_output *out, wf_error *err) {
  wf__sparse *sparse;
  wf__gpu_batch *made = NULL;
  WF__TRY(make_chain(context, sides, count, options, &sparse, err));
  wf_status status = wf__sparse_run(sparse, options, false, &made, NULL, err);
  wf__sparse_free(sparse);
  if (status == WF_OK) status = wf__gpu_batch_get(made, 0, &out->csr, &out->start, err);
  wf__gpu_batch_free(made);
  return status;
}

wf_status wf__gpu_compose_sides(const wf__compose_side *sides, size_t count,
                                const wf_compose_options *options, wf__compose_output *out,
                                wf_error *err) {
  wf__gpu_context *context;
  wf__gpu_operation composing;
  int device;
  WF__TRY(wf__gpu_compose_device(options, &device, err));
  WF__TRY(wf__gpu_context_create(device, &context, err));
  wf_status status = wf__gpu_begin(context, &composing, err);
  if (status == WF_OK) {
    status = compose_sides(context, sides, count, options, out, err);
    wf__gpu_end(&composing);
  }
  wf__gpu_context_release(context);
  return status;
}
