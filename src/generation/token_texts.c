/* token_texts.c - tokens of a generator, and grammars of bytes as grammars of tokens. */
#include "generation/token_texts.h"

#include <math.h>
#include <string.h>

#include "base/interrupt.h"
#include "fst/fst.h"

enum { MOST_TOKENS = 1 << 30 };

wf_token_texts *wf__token_texts_ref(const wf_token_texts *texts) {
  wf_token_texts *shared = (wf_token_texts *)(uintptr_t)texts;
  if (shared != NULL) atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf_token_texts_free(wf_token_texts *texts) {
  if (texts == NULL || atomic_fetch_sub(&texts->refs, 1) != 1) return;
  free(texts->kinds);
  free(texts->bytes);
  free(texts->offsets);
  free(texts->order);
  free(texts->special);
  free(texts);
}

static int compare_texts(const wf_token_texts *texts, uint32_t a, uint32_t b) {
  uint64_t size_a, size_b;
  const unsigned char *text_a = wf__token_text(texts, a, &size_a),
                      *text_b = wf__token_text(texts, b, &size_b);
  const int order = memcmp(text_a, text_b, size_a < size_b ? size_a : size_b);
  if (order != 0) return order;
  if (size_a != size_b) return size_a < size_b ? -1 : 1;
  return a < b ? -1 : a > b;
}

/* Sorts by merging, with room for as many. */
static void sort_texts(const wf_token_texts *texts, uint32_t *tokens, uint32_t *room,
                       uint32_t count) {
  if (count < 2) return;
  const uint32_t half = count / 2;
  sort_texts(texts, tokens, room, half);
  sort_texts(texts, tokens + half, room, count - half);
  memcpy(room, tokens, half * sizeof *room);
  for (uint32_t a = 0, b = half, to = 0; a < half; to++) {
    const bool left = b == count || compare_texts(texts, room[a], tokens[b]) < 0;
    tokens[to] = left ? room[a++] : tokens[b++];
  }
}

static wf_status fill(wf_token_texts *texts, const char *bytes, const uint64_t *offsets,
                      const uint8_t *kinds, wf_error *err) {
  const uint32_t count = texts->num_tokens;
  for (uint32_t i = 0; i < count; i++)
    if (offsets[i + 1] < offsets[i])
      return wf__fail(err, WF_ERR_ARGUMENT, "token texts: text %u ends before it begins", i);
  const uint64_t size = offsets[count] - offsets[0];
  uint32_t *room = wf__alloc(count, sizeof *room);
  texts->kinds = wf__alloc(count, 1);
  texts->bytes = wf__alloc(size, 1);
  texts->offsets = wf__alloc((uint64_t)count + 1, sizeof *texts->offsets);
  texts->order = wf__alloc(count, sizeof *texts->order);
  texts->special = wf__alloc(count, sizeof *texts->special);
  if (room == NULL || texts->kinds == NULL || texts->bytes == NULL || texts->offsets == NULL ||
      texts->order == NULL || texts->special == NULL) {
    free(room);
    return wf__fail_memory(err, size + (uint64_t)count * 21, "token texts");
  }
  if (count > 0) memcpy(texts->kinds, kinds, count);
  if (size > 0) memcpy(texts->bytes, bytes + offsets[0], size);
  for (uint64_t i = 0; i <= count; i++) texts->offsets[i] = offsets[i] - offsets[0];
  for (uint32_t i = 0; i < count; i++) {
    if (wf__is_special(texts, i))
      texts->special[texts->num_special++] = i;
    else if (texts->offsets[i + 1] > texts->offsets[i])
      texts->order[texts->num_sorted++] = i;
  }
  sort_texts(texts, texts->order, room, texts->num_sorted);
  free(room);
  return WF_OK;
}

wf_status wf_token_texts_create(const char *bytes, const uint64_t *offsets, const uint8_t *kinds,
                                size_t num_tokens, wf_token_texts **out, wf_error *err) {
  *out = NULL;
  if (num_tokens > MOST_TOKENS)
    return wf__fail(err, WF_ERR_LIMIT, "token texts: %zu tokens, at most 2^30", num_tokens);
  wf_token_texts *texts = wf__calloc(1, sizeof *texts);
  if (texts == NULL) return wf__fail_memory(err, sizeof *texts, "token texts");
  atomic_init(&texts->refs, 1);
  texts->num_tokens = (uint32_t)num_tokens;
  wf_status status = fill(texts, bytes, offsets, kinds, err);
  if (status != WF_OK) {
    wf_token_texts_free(texts);
    return status;
  }
  *out = texts;
  return WF_OK;
}

/* The first token of [begin, end) whose byte at `depth` is `byte` or more. */
static uint32_t lower_bound(const wf_token_texts *texts, const wf__token_range *range,
                            uint32_t begin, unsigned byte) {
  uint32_t end = range->end;
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2, token = range->tokens[middle];
    if ((unsigned char)texts->bytes[texts->offsets[token] + range->depth] < byte)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

wf__token_range wf__narrow_range(const wf_token_texts *texts, const wf__token_range *range,
                                 unsigned char byte) {
  wf__token_range part = {range->tokens, 0, 0, range->depth + 1};
  part.begin = lower_bound(texts, range, range->begin, byte);
  part.end = byte == 255 ? range->end : lower_bound(texts, range, part.begin, byte + 1u);
  return part;
}

/* --- grammars ---------------------------------------------------------------------------- */

/* A place of the walk through an acceptor and the texts together. */
struct place {
  wf__token_range range;
  uint32_t state;
  float cost;
};

struct walk {
  const wf_token_texts *texts;
  wf_fst_view view;
  WF__VEC(struct place) places;
  wf__csr csr;
};

static wf_status check_bytes(const wf_fst_view *view, wf_error *err) {
  for (uint64_t s = 0; s < view->num_states; s++) {
    uint64_t seen[4] = {0};
    for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
      const wf_arc *arc = &view->arcs[a];
      if (arc->ilabel < 1 || arc->ilabel > 256 || arc->olabel != arc->ilabel)
        return wf__fail(err, WF_ERR_ARGUMENT,
                        "grammar of bytes: state %llu has an arc %d:%d, expected the same label "
                        "twice, from 1 to 256",
                        (unsigned long long)s, arc->ilabel, arc->olabel);
      const uint32_t byte = (uint32_t)arc->ilabel - 1;
      if (seen[byte / 64] >> byte % 64 & 1)
        return wf__fail(err, WF_ERR_ARGUMENT,
                        "grammar of bytes: not deterministic, state %llu has two arcs with label "
                        "%d",
                        (unsigned long long)s, arc->ilabel);
      seen[byte / 64] |= (uint64_t)1 << byte % 64;
    }
  }
  return WF_OK;
}

/* Adds an arc for each token that `place` has come to the end of, and the places after it. */
static wf_status visit(struct walk *walk, struct place place, wf_error *err) {
  for (uint32_t i = wf__skip_ended(walk->texts, &place.range); i < place.range.begin; i++) {
    const int32_t label = (int32_t)place.range.tokens[i] + 1;
    WF__TRY(wf__csr_push(
        &walk->csr,
        (wf_arc){.ilabel = label, .olabel = label, .weight = place.cost, .nextstate = place.state},
        err));
  }
  if (place.range.begin == place.range.end) return WF_OK;
  for (uint64_t a = walk->view.arc_off[place.state]; a < walk->view.arc_off[place.state + 1]; a++) {
    const wf_arc *arc = &walk->view.arcs[a];
    struct place next = {
        wf__narrow_range(walk->texts, &place.range, (unsigned char)(arc->ilabel - 1)),
        arc->nextstate, place.cost + arc->weight};
    if (next.range.begin < next.range.end)
      WF__TRY(wf__vec_push(&walk->places, next, "a grammar", err));
  }
  return WF_OK;
}

static int by_label(const void *a, const void *b) {
  const int32_t first = ((const wf_arc *)a)->ilabel, second = ((const wf_arc *)b)->ilabel;
  return first < second ? -1 : first > second;
}

static wf_status walk_states(struct walk *walk, wf_error *err) {
  for (uint64_t s = 0; s < walk->view.num_states; s++) {
    WF__TRY(wf__interrupted(err));
    WF__TRY(wf__csr_add_state(&walk->csr, walk->view.final_cost[s], err));
    const uint64_t first = walk->csr.arcs.size;
    struct place place = {{walk->texts->order, 0, walk->texts->num_sorted, 0}, (uint32_t)s, 0};
    WF__TRY(wf__vec_push(&walk->places, place, "a grammar", err));
    while (walk->places.size > 0) WF__TRY(visit(walk, walk->places.data[--walk->places.size], err));
    if (walk->csr.arcs.size > first)
      qsort(walk->csr.arcs.data + first, walk->csr.arcs.size - first, sizeof(wf_arc), by_label);
  }
  return WF_OK;
}

wf_status wf_token_texts_to_fst(const wf_token_texts *texts, const wf_fst *bytes, wf_fst **out,
                                wf_error *err) {
  *out = NULL;
  struct walk walk = {.texts = texts, .view = wf_fst_get_view(bytes)};
  WF__TRY(check_bytes(&walk.view, err));
  wf_fst *all = NULL;
  wf_status status = walk_states(&walk, err);
  if (status == WF_OK)
    status =
        wf__fst_from_csr(&walk.csr, walk.view.start, walk.view.semiring, NULL, NULL, &all, err);
  if (status == WF_OK) status = wf_connect(all, out, err);
  wf_fst_free(all);
  wf__vec_free(&walk.places);
  wf__csr_free(&walk.csr);
  return status;
}
