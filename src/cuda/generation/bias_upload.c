/* bias_upload.c - the tables of a bias in a GPU's memory (bias_kernels.h). */
#include <stdlib.h>
#include <string.h>

#include "cuda/generation/bias_gpu.h"
#include "lm/wlm_read.h"
#include "plan/lane_memory.h"

static const char what[] = "a bias on the GPU";

/* Arrays that become one allocation. */
enum { MOST_ARRAYS = 8 };
struct arrays {
  const void *data[MOST_ARRAYS];
  uint64_t bytes[MOST_ARRAYS], room[MOST_ARRAYS]; /* room: bytes with those that are only read */
  const void *there[MOST_ARRAYS];
  int count;
};

/* Adds an array; returns its number. */
static int add_array(struct arrays *arrays, const void *data, uint64_t bytes, uint64_t room) {
  const int i = arrays->count++;
  arrays->data[i] = data;
  arrays->bytes[i] = bytes;
  arrays->room[i] = room;
  return i;
}
#define ADD_ARRAY(arrays, data, count) \
  add_array(arrays, data, (uint64_t)(count) * sizeof *(data), (uint64_t)(count) * sizeof *(data))
/* One for tokens, which is read up to a multiple of 4. */
#define ADD_TOKENS(arrays, data, count)                       \
  add_array(arrays, data, (uint64_t)(count) * sizeof *(data), \
            (((uint64_t)(count) + 3) & ~(uint64_t)3) * sizeof *(data))

static wf_status send(wf__bias_table *table, struct arrays *arrays, wf_error *err) {
  uint64_t bytes = 0;
  for (int i = 0; i < arrays->count; i++) bytes += wf__round_up_256(arrays->room[i]);
  WF__TRY(wf__device_alloc((void **)&table->memory, bytes, what, err));
  WF__CUDA_TRY(cudaMemsetAsync(table->memory, 0, bytes, NULL), what); /* what is only read */
  char *at = table->memory;
  for (int i = 0; i < arrays->count; i++) {
    WF__TRY(wf__device_send(at, arrays->data[i], arrays->bytes[i], NULL, what, err));
    arrays->there[i] = at;
    at += wf__round_up_256(arrays->room[i]);
  }
  return wf__device_settle(what, err);
}

/* --- lists ------------------------------------------------------------------------------- */

struct lists {
  WF__VEC(wf__bias_list) lists;
  WF__VEC(wf__bias_entry) entries;
  WF__VEC(uint32_t) index;
  const wf_token_texts *tokens;
};

static void free_lists(struct lists *lists) {
  wf__vec_free(&lists->lists);
  wf__vec_free(&lists->entries);
  wf__vec_free(&lists->index);
}

static int by_token(const void *a, const void *b) {
  const uint32_t first = ((const wf__bias_entry *)a)->token,
                 second = ((const wf__bias_entry *)b)->token;
  return first < second ? -1 : first > second;
}

static wf_status begin_list(struct lists *to, wf_error *err) {
  const wf__bias_list list = {.first = to->entries.size};
  return wf__vec_push(&to->lists, list, what, err);
}

static wf_status add_entry(struct lists *to, uint32_t token, uint32_t value, wf_error *err) {
  const wf__bias_entry entry = {token, value};
  return wf__is_special(to->tokens, token) ? WF_OK : wf__vec_push(&to->entries, entry, what, err);
}

/* Ends the last list: sorts it if it is long, and notes its places. */
static wf_status end_list(struct lists *to, wf_error *err) {
  wf__bias_list *list = &to->lists.data[to->lists.size - 1];
  const uint64_t count = to->entries.size - list->first;
  if (count > UINT32_MAX || to->index.size > UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "bias: more than 2^32 tokens are listed");
  list->count = (uint32_t)count;
  if (count <= WF__BIAS_LISTED) return WF_OK;
  list->index = (uint32_t)to->index.size;
  const wf__bias_entry *entries = to->entries.data + list->first;
  qsort(to->entries.data + list->first, count, sizeof *entries, by_token);
  uint32_t at = 0;
  for (uint64_t column = 0;; column += WF__BIAS_COLUMNS) {
    while (at < count && entries[at].token < column) at++;
    WF__TRY(wf__vec_push(&to->index, at, what, err));
    if (column >= to->tokens->num_tokens) return WF_OK;
  }
}

/* Sends lists with other arrays, and sets the part's. Frees them. */
static wf_status send_lists(wf__bias_table *table, struct arrays *arrays, struct lists *lists,
                            wf__bias_part *part, wf_error *err) {
  const int first = arrays->count;
  ADD_ARRAY(arrays, lists->lists.data, lists->lists.size);
  ADD_ARRAY(arrays, lists->entries.data, lists->entries.size);
  ADD_ARRAY(arrays, lists->index.data, lists->index.size);
  const wf_status status = send(table, arrays, err);
  part->lists = arrays->there[first];
  part->entries = arrays->there[first + 1];
  part->index = arrays->there[first + 2];
  free_lists(lists);
  return status;
}

/* --- phrases and n-grams ----------------------------------------------------------------- */

static wf_status list_children(const wf_bias *bias, int i, struct lists *to, wf_error *err) {
  const wf__phrase_rows *rows = &bias->phrases[i];
  for (uint64_t node = 0; node < bias->view.flat.parts[i].num_nodes; node++) {
    WF__TRY(begin_list(to, err));
    for (uint64_t c = rows->first[node]; c < rows->first[node + 1]; c++)
      WF__TRY(add_entry(to, rows->children[c].token, rows->children[c].node, err));
    WF__TRY(end_list(to, err));
  }
  return WF_OK;
}

static wf_status send_phrases(const wf_bias *bias, int i, wf__bias_table *table, wf_error *err) {
  const wf__flat_part *part = &bias->view.flat.parts[i];
  const uint64_t slots = part->table_bits > 0 ? (uint64_t)1 << part->table_bits : 0;
  struct arrays arrays = {.count = 0};
  struct lists lists = {.tokens = bias->tokens};
  const wf_status status = list_children(bias, i, &lists, err);
  if (status != WF_OK) {
    free_lists(&lists);
    return status;
  }
  const int keys = ADD_ARRAY(&arrays, part->keys, slots),
            values = ADD_ARRAY(&arrays, part->values, slots),
            nodes = ADD_ARRAY(&arrays, part->nodes, part->num_nodes);
  WF__TRY(send_lists(table, &arrays, &lists, &table->there.parts[0], err));
  wf__flat_part *there = &table->there.view.flat.parts[0];
  there->keys = arrays.there[keys];
  there->values = arrays.there[values];
  there->nodes = arrays.there[nodes];
  return WF_OK;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static wf_status list_arcs(const wf__ngram_rows *rows, const wf__wlm_view *view,
                           const uint8_t *arcs, uint64_t first, uint64_t count, struct lists *to,
                           wf_error *err) {
  const uint64_t size = arcs == view->small ? view->num_small : view->num_large;
  for (uint64_t i = first; i < first + count && i < size; i++) {
    const wf__wlm_arc arc = wf__wlm_arc_at(view, arcs, i);
    if (arc.word >= view->num_words) continue;
    for (uint64_t k = rows->first[arc.word]; k < rows->first[arc.word + 1]; k++)
      WF__TRY(add_entry(to, rows->tokens[k], bits_of(arc.cost), err));
  }
  return WF_OK;
}

static wf_status list_state(const wf__ngram_rows *rows, const wf__wlm_view *view, uint32_t state,
                            struct lists *to, wf_error *err) {
  const uint64_t where = view->states[state].where, first = where & (WF__WLM_LARGE - 1),
                 count = where >> (WF__WLM_FIRST_BITS + 1);
  if (!(where & WF__WLM_LARGE))
    return count <= WF__WLM_SMALL ? list_arcs(rows, view, view->small, first, count, to, err)
                                  : WF_OK;
  for (uint64_t b = first; b < first + count && b < view->num_buckets; b++) {
    const uint64_t head = wf__wlm_head(&view->buckets[b]);
    WF__TRY(list_arcs(rows, view, view->large, head & (((uint64_t)1 << WF__WLM_BASE_BITS) - 1),
                      head >> WF__WLM_BASE_BITS & 15, to, err));
  }
  return WF_OK;
}

/* State 0 has unigrams in place of a list. */
static wf_status list_states(const wf__ngram_rows *rows, const wf__wlm_view *view, struct lists *to,
                             wf_error *err) {
  for (uint64_t state = 0; state < view->num_states; state++) {
    WF__TRY(begin_list(to, err));
    if (state > 0) WF__TRY(list_state(rows, view, (uint32_t)state, to, err));
    WF__TRY(end_list(to, err));
  }
  return WF_OK;
}

static wf_status send_ngrams(const wf_bias *bias, int i, int device, wf__bias_table *table,
                             wf_error *err) {
  const wf__flat_part *part = &bias->view.flat.parts[i];
  const wf__ngram_rows *rows = bias->ngrams[i];
  const wf__wlm_view *view;
  struct arrays arrays = {.count = 0};
  struct lists lists = {.tokens = bias->tokens};
  WF__TRY(
      wf__gpu_find_model(&table->models, part, &(wf__model_room){.device = device}, &view, err));
  const wf_status status = list_states(rows, &part->lm, &lists, err);
  if (status != WF_OK) {
    free_lists(&lists);
    return status;
  }
  const int word_of = ADD_ARRAY(&arrays, part->word_of, part->num_labels),
            unigrams = ADD_TOKENS(&arrays, rows->unigrams, bias->tokens->num_tokens);
  WF__TRY(send_lists(table, &arrays, &lists, &table->there.parts[0], err));
  wf__flat_part *there = &table->there.view.flat.parts[0];
  there->lm = *view;
  there->word_of = arrays.there[word_of];
  table->there.parts[0].unigrams = arrays.there[unigrams];
  return WF_OK;
}

/* --- other tables ------------------------------------------------------------------------ */

/* Columns behind the last token are silent. */
static wf_status send_tokens(const wf_bias *bias, wf__bias_table *table, wf_error *err) {
  const uint64_t count = bias->tokens->num_tokens, room = (count + 3) & ~(uint64_t)3;
  uint8_t *all = wf__alloc(room, 1);
  if (all == NULL) return wf__fail_memory(err, room, what);
  memset(all, WF_TOKEN_SILENT, room);
  if (count > 0) memcpy(all, bias->tokens->kinds, count);
  struct arrays arrays = {.count = 0};
  const int kinds = ADD_ARRAY(&arrays, all, room);
  const wf_status status = send(table, &arrays, err);
  free(all);
  table->there.view.kinds = arrays.there[kinds];
  return status;
}

static wf_status send_words(const wf_bias *bias, int device, wf__bias_table *table, wf_error *err) {
  const wf__bias_words *words = bias->words;
  const wf_token_texts *texts = words->texts;
  const uint32_t count = texts->num_tokens;
  const wf__flat_part model = {
      .model = words->lm, .lm = words->view.lm, .placement = WF__LM_DEVICE};
  const wf__wlm_view *view;
  WF__TRY(
      wf__gpu_find_model(&table->models, &model, &(wf__model_room){.device = device}, &view, err));
  uint8_t *heads = wf__alloc(count, 1);
  if (heads == NULL) return wf__fail_memory(err, count, what);
  for (uint32_t t = 0; t < count; t++)
    heads[t] = texts->offsets[t + 1] > texts->offsets[t] ? (uint8_t)texts->bytes[texts->offsets[t]]
                                                         : 0; /* of class WF__TOKEN_DEPENDS */
  struct arrays arrays = {.count = 0};
  const int nodes = ADD_ARRAY(&arrays, words->nodes.data, words->nodes.size),
            bytes = ADD_ARRAY(&arrays, texts->bytes, texts->offsets[count]),
            offsets = ADD_ARRAY(&arrays, texts->offsets, (uint64_t)count + 1),
            classes = ADD_TOKENS(&arrays, words->classes, count),
            firsts = ADD_TOKENS(&arrays, heads, count),
            begins = ADD_TOKENS(&arrays, words->begins, count);
  const wf_status status = send(table, &arrays, err);
  free(heads);
  wf__words_view *there = &table->there.view.words;
  *there = words->view;
  there->nodes = arrays.there[nodes];
  there->bytes = arrays.there[bytes];
  there->offsets = arrays.there[offsets];
  there->lm = *view;
  table->there.classes = arrays.there[classes];
  table->there.heads = arrays.there[firsts];
  table->there.begins = arrays.there[begins];
  return status;
}

static wf_status send_grammar(const wf_bias *bias, wf__bias_table *table, wf_error *err) {
  const wf_fst_view *view = &bias->view.grammar;
  struct arrays arrays = {.count = 0};
  const int off = ADD_ARRAY(&arrays, view->arc_off, view->num_states + 1),
            arcs = ADD_ARRAY(&arrays, view->arcs, view->num_arcs),
            finals = ADD_ARRAY(&arrays, view->final_cost, view->num_states);
  WF__TRY(send(table, &arrays, err));
  wf_fst_view *there = &table->there.view.grammar;
  *there = *view;
  there->arc_off = arrays.there[off];
  there->arcs = arrays.there[arcs];
  there->final_cost = arrays.there[finals];
  return WF_OK;
}

static wf_status fill(const wf_bias *bias, int which, int device, wf__bias_table *table,
                      wf_error *err) {
  const int i = which - WF__TABLE_PARTS;
  if (which == WF__TABLE_TOKENS) {
    table->tokens = wf__token_texts_ref(bias->tokens);
    return send_tokens(bias, table, err);
  }
  if (which == WF__TABLE_WORDS) {
    table->words = wf__bias_words_ref(bias->words);
    return send_words(bias, device, table, err);
  }
  if (which == WF__TABLE_GRAMMAR) {
    table->grammar = wf_fst_ref(bias->grammar);
    return send_grammar(bias, table, err);
  }
  table->there.view.flat.parts[0] = bias->view.flat.parts[i];
  if (bias->ngrams[i] == NULL) return send_phrases(bias, i, table, err);
  table->ngrams = wf__ngram_rows_ref(bias->ngrams[i]);
  return send_ngrams(bias, i, device, table, err);
}

wf_status wf__bias_table_create(const wf_bias *bias, int which, int device, wf__bias_table **out,
                                wf_error *err) {
  *out = NULL;
  wf__bias_table *table = wf__calloc(1, sizeof *table);
  if (table == NULL) return wf__fail_memory(err, sizeof *table, what);
  atomic_init(&table->refs, 1);
  const wf_status status = fill(bias, which, device, table, err);
  if (status != WF_OK) {
    wf__bias_table_free(table);
    return status;
  }
  *out = table;
  return WF_OK;
}

bool wf__bias_table_is_of(const wf__bias_table *table, const wf_bias *bias, int which) {
  if (which == WF__TABLE_TOKENS) return table->tokens == bias->tokens;
  if (which == WF__TABLE_WORDS) return table->words == bias->words;
  if (which == WF__TABLE_GRAMMAR)
    return wf_fst_get_view(table->grammar).arcs == bias->view.grammar.arcs;
  return table->ngrams != NULL && table->ngrams == bias->ngrams[which - WF__TABLE_PARTS];
}

void wf__bias_table_free(wf__bias_table *table) {
  if (table == NULL || atomic_fetch_sub(&table->refs, 1) != 1) return;
  cudaFree(table->memory);
  wf__gpu_models_free(&table->models);
  wf_token_texts_free(table->tokens);
  wf__ngram_rows_free(table->ngrams);
  wf__bias_words_free(table->words);
  wf_fst_free(table->grammar);
  free(table);
}
