/* disambiguate_futures.c - the pairs of states that one string reaches and that have a common
 * future.
 *
 * Pairs are followed from the start to where they meet or end, then marked backwards. States of
 * different classes (disambiguate_classes.c) have no common future: so only arcs with equal label
 * and equal class of next states are paired, and where no two strings that begin alike end alike,
 * there is nothing to pair. A pair of equal states has a future, and is not stored. */
#include "base/interrupt.h"
#include "fstops/disambiguate.h"
#include "fstops/pair_table.h"

/* An arc that may be one of a pair. */
struct arm {
  uint64_t key; /* label << 32 | class of the next state */
  uint32_t to;
};

struct edge {
  uint32_t from, to; /* pairs */
};

struct finder {
  const wf_fst_view *view;
  uint32_t *class_of;
  uint8_t *has_others; /* [states] does the class have other states? */
  uint64_t *off;       /* [states + 1] arms of each state, sorted */
  WF__VEC(struct arm) arms;
  wf__pairs pairs; /* the smaller state first */
  WF__VEC(struct edge) edges;
  WF__VEC(uint8_t) future; /* [pairs] do they have a common future? */
};

static int compare_arms(const void *x, const void *y) {
  const struct arm *a = x, *b = y;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return (a->to > b->to) - (a->to < b->to);
}

/* Lists the arcs from or to states that are not alone in their class. */
static wf_status list_arms(struct finder *f, wf_error *err) {
  const wf_fst_view *view = f->view;
  for (uint64_t s = 0; s < view->num_states; s++) {
    uint64_t first = f->off[s] = f->arms.size;
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      uint32_t to = view->arcs[i].nextstate;
      if (!f->has_others[s] && !f->has_others[to]) continue;
      struct arm arm = {(uint64_t)(uint32_t)view->arcs[i].ilabel << 32 | f->class_of[to], to};
      WF__TRY(wf__vec_push(&f->arms, arm, "common futures", err));
    }
    struct arm *arms = f->arms.data + first;
    uint64_t size = f->arms.size - first, kept = 0;
    if (size < 2) continue;
    qsort(arms, size, sizeof *arms, compare_arms);
    for (uint64_t i = 0; i < size; i++) /* arcs may differ in their output alone */
      if (kept == 0 || compare_arms(&arms[kept - 1], &arms[i]) != 0) arms[kept++] = arms[i];
    f->arms.size = first + kept;
  }
  f->off[view->num_states] = f->arms.size;
  return WF_OK;
}

/* The first arm of [first, end) whose key is at least `key`. */
static uint64_t arm_bound(const struct finder *f, uint64_t first, uint64_t end, uint64_t key) {
  while (first < end) {
    uint64_t middle = first + (end - first) / 2;
    if (f->arms.data[middle].key < key)
      first = middle + 1;
    else
      end = middle;
  }
  return first;
}

static uint64_t group_end(const struct finder *f, uint64_t first, uint64_t end) {
  uint64_t key = f->arms.data[first].key;
  while (first < end && f->arms.data[first].key == key) first++;
  return first;
}

/* Can a string go on from both states, which are different, into one class? */
static bool go_on_together(const struct finder *f, uint32_t a, uint32_t b) {
  bool turn = f->off[a + 1] - f->off[a] > f->off[b + 1] - f->off[b];
  uint32_t few = turn ? b : a, many = turn ? a : b;
  uint64_t at = f->off[many], end = f->off[many + 1];
  for (uint64_t i = f->off[few]; i < f->off[few + 1] && at < end; i++) {
    at = arm_bound(f, at, end, f->arms.data[i].key);
    if (at < end && f->arms.data[at].key == f->arms.data[i].key) return true;
  }
  return false;
}

/* Adds a pair of different states, unless it is clear that they have no common future. */
static wf_status add_pair(struct finder *f, uint32_t a, uint32_t b, bool *added, uint32_t *out,
                          wf_error *err) {
  bool end = wf__is_final(f->view, a) && wf__is_final(f->view, b);
  *added = end || go_on_together(f, a, b);
  if (!*added) return WF_OK;
  WF__TRY(wf__pairs_find(&f->pairs, a < b ? a : b, a < b ? b : a, out, err));
  if (f->pairs.list.size == f->future.size) return WF_OK;
  return wf__vec_push(&f->future, end, "pairs of states", err);
}

/* Two arms with one key, of the states of pair `from`. */
static wf_status follow(struct finder *f, uint32_t from, uint32_t a, uint32_t b, wf_error *err) {
  if (a == b) {
    f->future.data[from] = 1;
    return WF_OK;
  }
  bool added;
  uint32_t to;
  WF__TRY(add_pair(f, a, b, &added, &to, err));
  return added ? wf__vec_push(&f->edges, ((struct edge){from, to}), "pairs of states", err) : WF_OK;
}

static wf_status follow_pair(struct finder *f, uint32_t k, wf_error *err) {
  wf__pair pair = f->pairs.list.data[k];
  uint64_t i = f->off[pair.first], end_i = f->off[pair.first + 1];
  uint64_t j = f->off[pair.second], end_j = f->off[pair.second + 1];
  while (i < end_i && j < end_j) {
    uint64_t key_i = f->arms.data[i].key, key_j = f->arms.data[j].key;
    if (key_i < key_j) {
      i = arm_bound(f, i, end_i, key_j);
    } else if (key_j < key_i) {
      j = arm_bound(f, j, end_j, key_i);
    } else {
      uint64_t first_j = j;
      j = group_end(f, j, end_j);
      for (; i < end_i && f->arms.data[i].key == key_i; i++)
        for (uint64_t at = first_j; at < j; at++)
          WF__TRY(follow(f, k, f->arms.data[i].to, f->arms.data[at].to, err));
    }
  }
  return WF_OK;
}

static wf_status find_pairs(struct finder *f, wf_error *err) {
  bool added;
  uint32_t k;
  for (uint64_t s = 0; s < f->view->num_states; s++)
    for (uint64_t i = f->off[s], end; i < f->off[s + 1]; i = end) {
      end = group_end(f, i, f->off[s + 1]);
      for (uint64_t one = i; one < end; one++)
        for (uint64_t two = one + 1; two < end; two++)
          WF__TRY(add_pair(f, f->arms.data[one].to, f->arms.data[two].to, &added, &k, err));
    }
  for (k = 0; k < f->pairs.list.size; k++) {
    WF__TRY(wf__interrupted_at(k, err));
    WF__TRY(follow_pair(f, k, err));
  }
  wf__map64_free(&f->pairs.map);
  return WF_OK;
}

/* Marks the pairs from which a pair with a future can be reached. */
static wf_status mark_futures(struct finder *f, wf_error *err) {
  uint64_t n = f->pairs.list.size, num_edges = f->edges.size, depth = 0;
  uint64_t *off = wf__calloc(n + 2, sizeof *off);
  uint32_t *from = wf__alloc(num_edges, sizeof *from), *stack = wf__alloc(n, sizeof *stack);
  wf_status status = WF_OK;
  if (off == NULL || from == NULL || stack == NULL) {
    status = wf__fail_memory(err, n * 12 + num_edges * 4, "pairs of states");
    goto done;
  }
  for (uint64_t i = 0; i < num_edges; i++) off[f->edges.data[i].to + 2]++;
  for (uint64_t k = 0; k < n; k++) off[k + 2] += off[k + 1];
  for (uint64_t i = 0; i < num_edges; i++)
    from[off[f->edges.data[i].to + 1]++] = f->edges.data[i].from;
  for (uint32_t k = 0; k < n; k++)
    if (f->future.data[k]) stack[depth++] = k;
  while (depth > 0) {
    uint32_t k = stack[--depth];
    for (uint64_t i = off[k]; i < off[k + 1]; i++) {
      if (f->future.data[from[i]]) continue;
      f->future.data[from[i]] = 1;
      stack[depth++] = from[i];
    }
  }
done:
  free(off);
  free(from);
  free(stack);
  return status;
}

static int compare_states(const void *x, const void *y) {
  const uint32_t *a = x, *b = y;
  return (*a > *b) - (*a < *b);
}

/* Lists the states of each state's pairs with a future, and the state itself. */
static wf_status list_states(struct finder *f, wf__futures *out, wf_error *err) {
  uint64_t n = f->view->num_states, size = n;
  for (uint64_t k = 0; k < f->pairs.list.size; k++) size += f->future.data[k] ? 2 : 0;
  *out = (wf__futures){wf__calloc(n + 2, sizeof *out->off), wf__alloc(size, sizeof *out->states)};
  if (out->off == NULL || out->states == NULL)
    return wf__fail_memory(err, (n + 2) * 8 + size * 4, "common futures");
  for (uint64_t s = 0; s < n; s++) out->off[s + 2] = 1;
  for (uint64_t k = 0; k < f->pairs.list.size; k++) {
    if (!f->future.data[k]) continue;
    out->off[f->pairs.list.data[k].first + 2]++;
    out->off[f->pairs.list.data[k].second + 2]++;
  }
  for (uint64_t s = 0; s < n; s++) out->off[s + 2] += out->off[s + 1];
  for (uint64_t s = 0; s < n; s++) out->states[out->off[s + 1]++] = (uint32_t)s;
  for (uint64_t k = 0; k < f->pairs.list.size; k++) {
    if (!f->future.data[k]) continue;
    wf__pair pair = f->pairs.list.data[k];
    out->states[out->off[pair.first + 1]++] = pair.second;
    out->states[out->off[pair.second + 1]++] = pair.first;
  }
  for (uint64_t s = 0; s < n; s++)
    if (out->off[s + 1] - out->off[s] > 1)
      qsort(out->states + out->off[s], out->off[s + 1] - out->off[s], sizeof *out->states,
            compare_states);
  return WF_OK;
}

static wf_status find(struct finder *f, wf__futures *out, wf_error *err) {
  uint64_t n = f->view->num_states;
  f->class_of = wf__calloc(n, sizeof *f->class_of);
  f->has_others = wf__calloc(n, 1);
  f->off = wf__alloc(n + 1, sizeof *f->off);
  if (f->class_of == NULL || f->has_others == NULL || f->off == NULL)
    return wf__fail_memory(err, n * 13, "common futures");
  WF__TRY(wf__disambiguate_classes(f->view, f->class_of, f->has_others, err));
  WF__TRY(list_arms(f, err));
  WF__TRY(find_pairs(f, err));
  WF__TRY(mark_futures(f, err));
  return list_states(f, out, err);
}

wf_status wf__futures_find(const wf_fst_view *view, wf__futures *out, wf_error *err) {
  struct finder f = {.view = view};
  wf_status status = find(&f, out, err);
  free(f.class_of);
  free(f.has_others);
  free(f.off);
  wf__vec_free(&f.arms);
  wf__pairs_free(&f.pairs);
  wf__vec_free(&f.edges);
  wf__vec_free(&f.future);
  return status;
}

void wf__futures_free(wf__futures *futures) {
  free(futures->off);
  free(futures->states);
  *futures = (wf__futures){0};
}
