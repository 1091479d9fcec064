/* wlm_read.c - opening, checking and querying a .wlm file. */
#include "lm/wlm_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/callbacks.h"
#include "base/memory.h"
#include "base/platform.h"
#include "fst/symbols.h"

static const char section_names[WF__WLM_SECTIONS][16] = {
    "words", "unigrams", "states", "tags", "buckets", "small arcs", "large arcs", "codebook"};
#define REMEDY "; make or copy it again"
#define CHECK_AT_ONCE ((uint64_t)256 << 20)

bool wf__wlm_is(const wf__input *input) {
  return input->size >= sizeof wf__wlm_magic &&
         memcmp(input->data, wf__wlm_magic, sizeof wf__wlm_magic) == 0;
}

/* --- the header -------------------------------------------------------------------------- */

/* True if bytes == count * size. Cannot overflow. */
static bool is_size(uint64_t bytes, uint64_t count, uint64_t size) {
  return bytes / size == count && bytes % size == 0;
}

static bool is_arcs(const wf__wlm_header *h, uint64_t bytes, uint64_t count) {
  if (h->cost_bits == 0) return is_size(bytes, count, sizeof(wf__wlm_arc));
  uint64_t bits = (uint64_t)h->word_bits + h->next_bits + h->cost_bits;
  return count <= UINT64_MAX / 128 && bytes == (count * bits + 7) / 8;
}

static bool sizes_fit(const wf__wlm_header *h) {
  const wf__wlm_section *s = h->sections;
  if (h->cost_bits > 0 && (h->word_bits < 1 || h->word_bits > 32 || h->next_bits < 1 ||
                           h->next_bits > 32 || h->cost_bits > 32))
    return false;
  bool book = h->cost_bits > 0 && h->cost_bits < 32;
  if (book && h->cost_bits > 24) return false;
  return is_size(s[WF__WLM_UNIGRAMS].size, h->num_words, sizeof(wf__wlm_unigram)) &&
         is_size(s[WF__WLM_STATES].size, h->num_states, sizeof(wf__wlm_state)) &&
         is_size(s[WF__WLM_TAGS].size, h->num_small, sizeof(uint16_t)) &&
         is_size(s[WF__WLM_BUCKETS].size, h->num_buckets, sizeof(wf__wlm_bucket)) &&
         is_arcs(h, s[WF__WLM_SMALL_ARCS].size, h->num_small) &&
         is_arcs(h, s[WF__WLM_LARGE_ARCS].size, h->num_large) &&
         s[WF__WLM_CODEBOOK].size == (book ? (uint64_t)4 << h->cost_bits : 0);
}

static wf_status check_header(const wf__input *input, const wf__wlm_header *h, wf_error *err) {
  if (input->size < sizeof *h)
    return wf__fail(err, WF_ERR_FORMAT, "%s: %zu bytes are too few for a language model" REMEDY,
                    input->path, input->size);
  if (h->version != WF__WLM_VERSION)
    return wf__fail(
        err, WF_ERR_FORMAT,
        "%s: format version %u, expected version %d; build the model again with this version",
        input->path, h->version, WF__WLM_VERSION);
  if (wf__wlm_crc(0, h, offsetof(wf__wlm_header, crc)) != h->crc)
    return wf__fail(err, WF_ERR_FORMAT, "%s: the header is damaged" REMEDY, input->path);
  if (h->file_size != input->size)
    return wf__fail(err, WF_ERR_FORMAT, "%s: %zu bytes, the header says %llu" REMEDY, input->path,
                    input->size, (unsigned long long)h->file_size);
  uint64_t end = sizeof *h;
  for (int i = 0; i < WF__WLM_SECTIONS; i++) {
    const wf__wlm_section *s = &h->sections[i];
    if (s->offset < end || s->offset % WF__WLM_ALIGNMENT != 0 || s->offset > h->file_size ||
        s->size > h->file_size - s->offset || h->file_size - s->offset - s->size < 8)
      return wf__fail(err, WF_ERR_FORMAT, "%s: the section of %s does not fit the file" REMEDY,
                      input->path, section_names[i]);
    end = s->offset + s->size;
  }
  if (!sizes_fit(h) || h->order < 1 || h->order > WF_LM_MAX_ORDER || h->num_states < 1 ||
      h->num_states >= UINT32_MAX || h->start >= h->num_states || h->bos >= h->num_words ||
      h->eos >= h->num_words || (h->unk >= h->num_words && h->unk != WF__WLM_NONE))
    return wf__fail(err, WF_ERR_FORMAT, "%s: the sizes in the header contradict each other" REMEDY,
                    input->path);
  return WF_OK;
}

static wf_status check_section(const wf__input *input, int i, wf_error *err) {
  const wf__wlm_header *h = (const wf__wlm_header *)(const void *)input->data;
  const wf__wlm_section *s = &h->sections[i];
  if (wf__wlm_crc(0, input->data + s->offset, s->size) == s->crc) return WF_OK;
  return wf__fail(err, WF_ERR_FORMAT, "%s: the %s are damaged" REMEDY, input->path,
                  section_names[i]);
}

/* --- opening ----------------------------------------------------------------------------- */

static void set_view(wf__wlm *lm) {
  const wf__wlm_header *h = lm->header;
  const uint8_t *data = lm->input.data;
  lm->view =
      (wf__wlm_view){.unigrams = (const void *)(data + h->sections[WF__WLM_UNIGRAMS].offset),
                     .states = (const void *)(data + h->sections[WF__WLM_STATES].offset),
                     .tags = (const void *)(data + h->sections[WF__WLM_TAGS].offset),
                     .buckets = (const void *)(data + h->sections[WF__WLM_BUCKETS].offset),
                     .small = data + h->sections[WF__WLM_SMALL_ARCS].offset,
                     .large = data + h->sections[WF__WLM_LARGE_ARCS].offset,
                     .codebook = h->cost_bits > 0 && h->cost_bits < 32
                                     ? (const void *)(data + h->sections[WF__WLM_CODEBOOK].offset)
                                     : NULL,
                     .num_states = h->num_states,
                     .num_small = h->num_small,
                     .num_buckets = h->num_buckets,
                     .num_large = h->num_large,
                     .num_words = h->num_words,
                     .start = h->start,
                     .bos = h->bos,
                     .eos = h->eos,
                     .unk = h->unk,
                     .word_bits = h->word_bits,
                     .next_bits = h->next_bits,
                     .cost_bits = h->cost_bits};
}

static wf_status take(wf__wlm *lm, wf_error *err) {
  const wf__input *input = &lm->input;
  if (!wf__wlm_is(input))
    return wf__fail(err, WF_ERR_FORMAT, "%s: not a language model made by 'warpfst lm convert'",
                    input->path);
  lm->header = (const wf__wlm_header *)(const void *)input->data;
  WF__TRY(check_header(input, lm->header, err));
  for (int i = 0; i < WF__WLM_SECTIONS && (i == WF__WLM_WORDS || i == WF__WLM_CODEBOOK ||
                                           input->size <= CHECK_AT_ONCE || i == WF__WLM_UNIGRAMS);
       i++)
    WF__TRY(check_section(input, i, err));
  const wf__wlm_section *words = &lm->header->sections[WF__WLM_WORDS];
  wf__cursor cursor = {.begin = input->data,
                       .at = input->data + words->offset,
                       .end = input->data + words->offset + words->size,
                       .path = input->path};
  WF__TRY(wf__symbols_read_binary(&cursor, &lm->words, err));
  set_view(lm);
  if (!wf__wlm_knows(&lm->view, lm->view.bos))
    return wf__fail(err, WF_ERR_FORMAT, "%s: the model has no start of sentence (<s>)" REMEDY,
                    input->path);
  return WF_OK;
}

wf_status wf__wlm_open_input(wf__input *input, wf__wlm **out, wf_error *err) {
  *out = NULL;
  wf__wlm *lm = wf__calloc(1, sizeof *lm);
  if (lm == NULL) {
    wf__input_close(input);
    return wf__fail_memory(err, sizeof *lm, "a language model");
  }
  atomic_init(&lm->refs, 1);
  atomic_init(&lm->num_copies, 0);
  lm->input = *input;
  wf_status status = take(lm, err);
  if (status != WF_OK) {
    wf__wlm_free(lm);
    return status;
  }
  *out = lm;
  return WF_OK;
}

wf_status wf__wlm_open_made(const char *folder,
                            wf_status (*make)(void *user, const char *path, wf_error *err),
                            void *user, wf__wlm **out, wf_error *err) {
  *out = NULL;
  wf__input input;
  const size_t size = strlen(folder) + 64;
  char *path = wf__alloc(size, 1);
  if (path == NULL) return wf__fail_memory(err, size, "a path");
  snprintf(path, size, "%s/.warpfst.%lld.%p.wlm", folder, (long long)wf__process_id(),
           (void *)path);
  wf_status status = make(user, path, err);
  if (status == WF_OK) status = wf__input_open(path, &input, err);
  if (status == WF_OK) status = wf__wlm_open_input(&input, out, err);
  wf__path_remove(path);
  free(path);
  return status;
}

wf__wlm *wf__wlm_ref(const wf__wlm *lm) {
  wf__wlm *shared = (wf__wlm *)(uintptr_t)lm;
  atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf__wlm_free(wf__wlm *lm) {
  if (lm == NULL || atomic_fetch_sub(&lm->refs, 1) != 1) return;
  wf_symbols_free(lm->words);
  wf__wlm_table_free(lm->table);
  wf__input_close(&lm->input);
  free(lm);
}

/* --- checking ---------------------------------------------------------------------------- */

static bool is_cost(float cost) { return cost == INFINITY || fabsf(cost) <= 1e30f; }

static bool arc_fits(const wf__wlm_view *v, const wf__wlm_arc *arc) {
  return arc->word < v->num_words && arc->next < v->num_states && is_cost(arc->cost);
}

static bool small_state_fits(const wf__wlm_view *v, uint64_t first, uint64_t count,
                             uint64_t *used) {
  if (first != *used || count > WF__WLM_SMALL || first + count > v->num_small) return false;
  *used += count;
  for (uint64_t i = first; i < first + count; i++) {
    wf__wlm_arc arc = wf__wlm_arc_at(v, v->small, i);
    if (!arc_fits(v, &arc) || v->tags[i] != wf__wlm_tag(wf__wlm_hash(arc.word))) return false;
  }
  return true;
}

static bool large_state_fits(const wf__wlm_view *v, uint64_t where, uint64_t first, uint64_t count,
                             uint64_t *used, uint64_t *arcs) {
  if (first != *used || first + count > v->num_buckets) return false;
  *used += count;
  for (uint64_t b = first; b < first + count; b++) {
    uint64_t head = wf__wlm_head(&v->buckets[b]),
             base = head & (((uint64_t)1 << WF__WLM_BASE_BITS) - 1),
             size = head >> WF__WLM_BASE_BITS & 15;
    if (base != *arcs || size > WF__WLM_BUCKET || base + size > v->num_large) return false;
    *arcs += size;
    for (uint64_t i = base; i < base + size; i++) {
      wf__wlm_arc arc = wf__wlm_arc_at(v, v->large, i), found;
      uint64_t hash = wf__wlm_hash(arc.word);
      if (!arc_fits(v, &arc) || v->buckets[b].tags[i - base] != wf__wlm_tag(hash) ||
          !wf__wlm_find(v, where, arc.word, hash, &found))
        return false;
    }
  }
  return true;
}

wf_status wf__wlm_verify(const wf__wlm *lm, const wf_progress *progress, wf_error *err) {
  const wf__wlm_view *v = &lm->view;
  uint64_t small = 0, buckets = 0, large = 0;
  for (int i = 0; i < WF__WLM_SECTIONS; i++) {
    WF__TRY(wf__progress(progress, "checking sums", (double)i / WF__WLM_SECTIONS, err));
    WF__TRY(check_section(&lm->input, i, err));
  }
  for (uint64_t s = 0; s < v->num_states; s++) {
    const wf__wlm_state *state = &v->states[s];
    uint64_t first = state->where & (WF__WLM_LARGE - 1),
             count = state->where >> (WF__WLM_FIRST_BITS + 1);
    bool fits =
        (state->backoff < s || (s == 0 && state->backoff == 0)) && is_cost(state->backoff_cost);
    if (state->where & WF__WLM_LARGE)
      fits = fits && large_state_fits(v, state->where, first, count, &buckets, &large);
    else
      fits = fits && small_state_fits(v, first, count, &small);
    if (!fits)
      return wf__fail(err, WF_ERR_FORMAT, "%s: state %llu is malformed" REMEDY, lm->input.path,
                      (unsigned long long)s);
    if (s % 1048576 == 0)
      WF__TRY(wf__progress(progress, "checking states", (double)s / (double)v->num_states, err));
  }
  for (uint32_t w = 0; w < v->num_words; w++)
    if (v->unigrams[w].next != WF__WLM_NONE &&
        (v->unigrams[w].next >= v->num_states || !is_cost(v->unigrams[w].cost)))
      return wf__fail(err, WF_ERR_FORMAT, "%s: the unigram of word %u is malformed" REMEDY,
                      lm->input.path, w);
  if (small != v->num_small || buckets != v->num_buckets || large != v->num_large)
    return wf__fail(err, WF_ERR_FORMAT, "%s: some arcs belong to no state" REMEDY, lm->input.path);
  return WF_OK;
}

/* --- queries ----------------------------------------------------------------------------- */

void wf__wlm_info(const wf__wlm *lm, wf_lm_info *info) {
  const wf__wlm_header *h = lm->header;
  info->num_arcs = h->num_small + h->num_large;
  info->num_bytes = h->file_size;
  info->scale = h->scale;
  info->difference = h->difference;
  info->cost_bits = h->cost_bits == 0 ? 32 : h->cost_bits;
  info->packed = h->cost_bits > 0;
  info->has_unk = h->unk != WF__WLM_NONE && wf__wlm_knows(&lm->view, h->unk);
  for (uint32_t k = 1; k <= h->order; k++) info->num_ngrams[k] = h->num_ngrams[k - 1];
  for (uint32_t w = 0; w < h->num_words; w++)
    info->num_words += wf__wlm_knows(&lm->view, w) && w != h->bos && w != h->eos && w != h->unk;
  for (int i = WF__WLM_UNIGRAMS; i <= WF__WLM_BUCKETS; i++)
    info->index_bytes += h->sections[i].size;
}

uint64_t wf__wlm_table_bytes(const wf__wlm *lm) {
  const wf__wlm_arc_table *table = atomic_load(&((wf__wlm *)(uintptr_t)lm)->table);
  return table == NULL ? 0
                       : table->num_lines * WF__WLM_LINE * sizeof(wf__wlm_slot) +
                             lm->view.num_states * sizeof(wf__wlm_hop);
}

bool wf__wlm_has_word(const wf__wlm *lm, int32_t word) {
  const wf__wlm_view *v = &lm->view;
  return word >= 0 && (uint32_t)word != v->bos && (uint32_t)word != v->eos &&
         (uint32_t)word != v->unk && wf__wlm_knows(v, (uint32_t)word);
}

static int32_t order_of(const wf__wlm *lm, uint32_t state) {
  int32_t level = 0;
  while (level + 1 < (int32_t)lm->header->order && state >= lm->header->level_begin[level + 1])
    level++;
  return level + 1;
}

float wf__wlm_query(const wf__wlm *lm, uint32_t state, int32_t word, uint32_t *next,
                    int32_t *order) {
  const wf__wlm_view *v = &lm->view;
  uint32_t known = wf__wlm_has_word(lm, word) ? (uint32_t)word : v->unk, at;
  *next = 0;
  if (order != NULL) *order = 0;
  if (state >= v->num_states || known == WF__WLM_NONE || !wf__wlm_knows(v, known)) return INFINITY;
  float cost = wf__wlm_cost(lm, state, known, next, &at);
  if (order != NULL) *order = order_of(lm, at);
  return cost;
}

float wf__wlm_final(const wf__wlm *lm, uint32_t state, int32_t *order) {
  const wf__wlm_view *v = &lm->view;
  uint32_t next, at;
  if (order != NULL) *order = 0;
  if (state >= v->num_states || !wf__wlm_knows(v, v->eos)) return INFINITY;
  float cost = wf__wlm_cost(lm, state, v->eos, &next, &at);
  if (order != NULL) *order = order_of(lm, at);
  return cost;
}
