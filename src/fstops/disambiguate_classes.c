/* disambiguate_classes.c - classes of states that may have a common future, by folding.
 *
 * A folding is the finest partition of states in which arcs of one key that leave one class enter
 * one class. It takes nearly linear time: a table has the arcs of each class, and where two classes
 * become one, those of the smaller are entered into it.
 *
 * 1. Forwards, by label: two states that one string reaches are in one class.
 * 2. Backwards, arcs between the same classes of 1 having one key, and final states of one class of
 *    1 being together: so are two states that one string reaches, if a string leads from both to
 *    final states. Classes of 2 lie inside those of 1.
 *
 * Strings that begin alike and go on differently are apart after 2, though 1 joins them. */
#include "base/interrupt.h"
#include "fstops/disambiguate.h"
#include "fstops/pair_table.h"

struct step {
  uint32_t key, to;
};

struct folding {
  uint64_t num_states;
  uint64_t *off; /* [states + 1] steps of each state, sorted by key */
  struct step *steps;
  uint32_t *parent;       /* [states] of a forest: its roots stand for classes */
  uint32_t *next;         /* [states] circular lists of the states of each class */
  uint64_t *size;         /* [roots] number of steps */
  wf__map64 table;        /* root << 32 | key -> to; classes of one state are not in it */
  WF__VEC(wf__pair) todo; /* states that must be in one class */
};

static wf_status folding_init(struct folding *f, uint64_t num_states, uint64_t num_steps,
                              wf_error *err) {
  *f = (struct folding){.num_states = num_states,
                        .off = wf__calloc(num_states + 2, sizeof *f->off),
                        .steps = wf__alloc(num_steps, sizeof *f->steps),
                        .parent = wf__alloc(num_states, sizeof *f->parent),
                        .next = wf__alloc(num_states, sizeof *f->next),
                        .size = wf__alloc(num_states, sizeof *f->size)};
  if (f->off == NULL || f->steps == NULL || f->parent == NULL || f->next == NULL || f->size == NULL)
    return wf__fail_memory(err, num_states * 24 + num_steps * sizeof *f->steps, "common futures");
  return WF_OK;
}

static void folding_free(struct folding *f) {
  free(f->off);
  free(f->steps);
  free(f->parent);
  free(f->next);
  free(f->size);
  wf__map64_free(&f->table);
  wf__vec_free(&f->todo);
}

static uint32_t root_of(struct folding *f, uint32_t s) {
  while (f->parent[s] != s) s = f->parent[s] = f->parent[f->parent[s]];
  return s;
}

/* Enters the steps of the class of `member` into the table, as those of `root`. */
static wf_status enter(struct folding *f, uint32_t root, uint32_t member, wf_error *err) {
  uint32_t s = member;
  do {
    for (uint64_t i = f->off[s]; i < f->off[s + 1]; i++) {
      uint32_t have, to = f->steps[i].to;
      WF__TRY(wf__map64_insert(&f->table, (uint64_t)root << 32 | f->steps[i].key, to, &have, NULL,
                               "common futures", err));
      if (have != to) WF__TRY(wf__vec_push(&f->todo, ((wf__pair){have, to}), "states", err));
    }
    s = f->next[s];
  } while (s != member);
  return WF_OK;
}

static wf_status join(struct folding *f, uint32_t a, uint32_t b, wf_error *err) {
  a = root_of(f, a), b = root_of(f, b);
  if (a == b) return WF_OK;
  uint32_t large = f->size[a] < f->size[b] ? b : a, small = large == a ? b : a;
  if (f->next[large] == large) WF__TRY(enter(f, large, large, err));
  WF__TRY(enter(f, large, small, err));
  f->parent[small] = large;
  f->size[large] += f->size[small];
  uint32_t after = f->next[large];
  f->next[large] = f->next[small];
  f->next[small] = after;
  return WF_OK;
}

static wf_status fold(struct folding *f, wf_error *err) {
  uint64_t count = 0;
  for (uint32_t s = 0; s < f->num_states; s++) {
    f->parent[s] = f->next[s] = s;
    f->size[s] = f->off[s + 1] - f->off[s];
  }
  for (uint64_t s = 0; s < f->num_states; s++) {
    for (uint64_t i = f->off[s] + 1; i < f->off[s + 1]; i++)
      if (f->steps[i].key == f->steps[i - 1].key)
        WF__TRY(wf__vec_push(&f->todo, ((wf__pair){f->steps[i - 1].to, f->steps[i].to}), "states",
                             err));
    while (f->todo.size > 0) {
      wf__pair pair = f->todo.data[--f->todo.size];
      WF__TRY(wf__interrupted_at(count++, err));
      WF__TRY(join(f, pair.first, pair.second, err));
    }
  }
  wf__map64_free(&f->table);
  return WF_OK;
}

static bool has_others(const struct folding *f, uint32_t s) { return f->next[s] != s; }

/* --- forwards ----------------------------------------------------------------------------- */

static wf_status fold_forwards(struct folding *f, const wf_fst_view *view, wf_error *err) {
  WF__TRY(folding_init(f, view->num_states, view->num_arcs, err));
  for (uint64_t s = 0; s <= view->num_states; s++) f->off[s] = view->arc_off[s];
  for (uint64_t i = 0; i < view->num_arcs; i++)
    f->steps[i] = (struct step){(uint32_t)view->arcs[i].ilabel, view->arcs[i].nextstate};
  return fold(f, err);
}

/* --- backwards ---------------------------------------------------------------------------- */

static int compare_steps(const void *x, const void *y) {
  const struct step *a = x, *b = y;
  return (a->key > b->key) - (a->key < b->key);
}

/* A key for each label with which arcs leave a class of `forward`. */
static wf_status key_of(struct folding *forward, wf__map64 *keys, uint32_t s, int32_t label,
                        uint32_t *key, wf_error *err) {
  return wf__map64_insert(keys, (uint64_t)root_of(forward, s) << 32 | (uint32_t)label,
                          (uint32_t)keys->size, key, NULL, "common futures", err);
}

/* Steps from each state to the sources of its arcs that are not alone in their classes. One more
 * state, the last, has steps to final states. */
static wf_status add_steps(struct folding *f, const wf_fst_view *view, struct folding *forward,
                           wf__map64 *keys, wf_error *err) {
  uint32_t end = (uint32_t)view->num_states;
  for (uint32_t s = 0; s < view->num_states; s++) {
    if (!has_others(forward, s)) continue;
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      struct step *step = &f->steps[f->off[view->arcs[i].nextstate + 1]++];
      step->to = s;
      WF__TRY(key_of(forward, keys, s, view->arcs[i].ilabel, &step->key, err));
    }
    if (wf__is_final(view, s)) f->steps[f->off[end + 1]++] = (struct step){root_of(forward, s), s};
  }
  return WF_OK;
}

static wf_status fold_backwards(struct folding *f, const wf_fst_view *view, struct folding *forward,
                                wf_error *err) {
  uint64_t n = view->num_states, num_steps = 0;
  for (uint32_t s = 0; s < n; s++)
    if (has_others(forward, s)) num_steps += view->arc_off[s + 1] - view->arc_off[s] + 1;
  WF__TRY(folding_init(f, n + 1, num_steps, err));
  for (uint32_t s = 0; s < n; s++) {
    if (!has_others(forward, s)) continue;
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      f->off[view->arcs[i].nextstate + 2]++;
  }
  for (uint64_t s = 0; s < n; s++) f->off[s + 2] += f->off[s + 1];
  wf__map64 keys = {0};
  wf_status status = add_steps(f, view, forward, &keys, err);
  wf__map64_free(&keys);
  if (status != WF_OK) return status;
  for (uint64_t s = 0; s <= n; s++)
    if (f->off[s + 1] - f->off[s] > 1)
      qsort(f->steps + f->off[s], f->off[s + 1] - f->off[s], sizeof *f->steps, compare_steps);
  return fold(f, err);
}

wf_status wf__disambiguate_classes(const wf_fst_view *view, uint32_t *class_of,
                                   uint8_t *have_others, wf_error *err) {
  struct folding forward = {0}, backward = {0};
  wf_status status = fold_forwards(&forward, view, err);
  if (status == WF_OK) status = fold_backwards(&backward, view, &forward, err);
  for (uint32_t s = 0; s < view->num_states && status == WF_OK; s++) {
    class_of[s] = root_of(&backward, s);
    have_others[s] = has_others(&backward, s);
  }
  folding_free(&forward);
  folding_free(&backward);
  return status;
}
