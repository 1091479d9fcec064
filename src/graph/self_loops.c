/* self_loops.c - adds the self-loops of HMM states. This comes last, so that no earlier step has to
 * carry them.
 *
 * If all arcs into a state s have labels with the same self-loop (the same "class"), s gets the
 * loop, and all arcs that leave s get its forward cost. Otherwise each class gets a separate state
 * in front of s:
 *
 *     --a--> s --x-->          becomes     --a--> s' (loop a) --eps--> s --x-->
 *     --b--> s                             --b--> s" (loop b) --eps--> s
 *
 * If s has only one arc and is not final, s' and s" get a copy of that arc instead of the epsilon.
 * Then s is left out if no other arc enters it. Class 0: epsilons, labels without a self-loop, and
 * the start.
 *
 * A state's arcs with input epsilons come last, as decoding wants them. The sizes of the result are
 * known before it is written: pieces of states are written by any number of threads. */
#include <string.h>

#include "base/map64.h"
#include "fst/properties.h"
#include "fstops/connect.h"
#include "fstops/parallel.h"
#include "graph/hmm.h"

/* Classes other than those of labels. CLASS_MIXED_PLAIN: mixed, and class 0 is one of them. */
enum { CLASS_NONE = -1, CLASS_MIXED = -2, CLASS_MIXED_PLAIN = -3 };
/* An index of arcs that is not one. */
#define NO_ARC UINT64_MAX

/* 64 states. */
struct marks {
  uint64_t mixed, dropped; /* bitmaps */
  uint32_t kept_before;    /* number of states that are not dropped before these */
};

struct piece {
  /* the targets of arcs to copies, in order: state << 32 | class, then the numbers in the result */
  WF__VEC(uint64_t) keys;
  uint32_t *targets;
  uint64_t num_arcs; /* of the kept states, with their loops */
  uint64_t arc_off;  /* in the result */
  uint64_t bad_arc;  /* the first with a label out of range, or NO_ARC */
  wf_status status;
};

struct looping {
  const wf_hmm *hmm;
  wf_fst_view view;
  float scale;
  uint64_t num_pieces, num_kept;
  int32_t *class_of; /* [num_states] */
  struct marks *marks;
  struct piece *pieces;
  wf__map64 copies; /* state << 32 | class -> number of the copy */
  WF__VEC(uint64_t) copy_keys;
  uint32_t *copy_targets; /* [number of copies] target of the arc that is not the loop */
  wf__csr csr;
};

static int32_t class_of_label(const struct looping *l, int32_t label) {
  return label == 0 ? 0 : l->hmm->labels.data[label].loop;
}
static float forward_cost(const struct looping *l, int32_t loop) {
  return loop > 0 ? l->scale * l->hmm->labels.data[loop].forward_cost : 0;
}
static wf_arc loop_arc(const struct looping *l, uint64_t self, int32_t loop) {
  return (wf_arc){(uint32_t)self, l->scale * l->hmm->labels.data[loop].loop_cost, loop, 0};
}

static bool is_mixed(const struct looping *l, uint64_t s) {
  return l->marks[s / 64].mixed >> (s % 64) & 1;
}
static bool is_dropped(const struct looping *l, uint64_t s) {
  return l->marks[s / 64].dropped >> (s % 64) & 1;
}
static bool has_one_arc(const struct looping *l, uint64_t s) {
  return l->view.arc_off[s + 1] - l->view.arc_off[s] == 1 && !wf__is_final(&l->view, s);
}
/* The number in the result of a state that is kept. */
static uint32_t kept_number(const struct looping *l, uint64_t s) {
  const struct marks *marks = &l->marks[s / 64];
  uint64_t before = ~marks->dropped & (((uint64_t)1 << (s % 64)) - 1);
  return marks->kept_before + (uint32_t)__builtin_popcountll(before);
}

/* --- classes of states ------------------------------------------------------------------- */

static int32_t join(int32_t have, int32_t loop) {
  if (have == CLASS_NONE || have == loop) return loop;
  return have == 0 || loop == 0 || have == CLASS_MIXED_PLAIN ? CLASS_MIXED_PLAIN : CLASS_MIXED;
}

/* Joins the classes of the arcs that leave a piece's states into those of their targets. The order
 * does not matter, so threads do it at once. */
static void join_piece(void *user, uint64_t p, int worker) {
  struct looping *l = user;
  struct piece *piece = &l->pieces[p];
  const uint64_t *arc_off = l->view.arc_off, end = wf__piece_end(p, l->view.num_states);
  (void)worker;
  piece->bad_arc = NO_ARC;
  for (uint64_t i = arc_off[p * WF__PIECE_STATES]; i < arc_off[end]; i++) {
    const wf_arc *arc = &l->view.arcs[i];
    if (arc->ilabel > wf__hmm_num_labels(l->hmm)) {
      piece->bad_arc = i;
      return;
    }
    int32_t *class = &l->class_of[arc->nextstate], loop = class_of_label(l, arc->ilabel);
    int32_t have = __atomic_load_n(class, __ATOMIC_RELAXED), joined;
    do joined = join(have, loop);
    while (joined != have && !__atomic_compare_exchange_n(class, &have, joined, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  }
}

static wf_status find_classes(struct looping *l, wf__pool *pool, wf_error *err) {
  memset(l->class_of, 0xff, l->view.num_states * sizeof *l->class_of); /* CLASS_NONE */
  l->class_of[l->view.start] = 0;
  WF__TRY(wf__pool_try(pool, l->num_pieces, join_piece, l, err));
  for (uint64_t p = 0; p < l->num_pieces; p++)
    if (l->pieces[p].bad_arc != NO_ARC)
      return wf__fail(
          err, WF_ERR_ARGUMENT, "input label %d is out of range; the model has labels 1 to %d",
          (int)l->view.arcs[l->pieces[p].bad_arc].ilabel, (int)wf__hmm_num_labels(l->hmm));
  return WF_OK;
}

static void mark_piece(void *user, uint64_t p, int worker) {
  struct looping *l = user;
  (void)worker;
  l->pieces[p].num_arcs = 0;
  for (uint64_t s = p * WF__PIECE_STATES; s < wf__piece_end(p, l->view.num_states); s++) {
    int32_t class = l->class_of[s];
    uint64_t bit = (uint64_t)1 << (s % 64);
    if (class <= CLASS_MIXED) l->marks[s / 64].mixed |= bit;
    if (class == CLASS_MIXED && has_one_arc(l, s))
      l->marks[s / 64].dropped |= bit;
    else
      l->pieces[p].num_arcs += l->view.arc_off[s + 1] - l->view.arc_off[s] + (class > 0);
  }
}

/* --- copies ------------------------------------------------------------------------------ */

/* Does the arc lead to a copy of its target? */
static bool to_copy(const struct looping *l, const wf_arc *arc) {
  return is_mixed(l, arc->nextstate) && class_of_label(l, arc->ilabel) != 0;
}
static uint64_t key_of(const struct looping *l, const wf_arc *arc) {
  return (uint64_t)arc->nextstate << 32 | (uint32_t)class_of_label(l, arc->ilabel);
}

static wf_status list_keys(struct looping *l, uint64_t p, wf_error *err) {
  const uint64_t *arc_off = l->view.arc_off, end = wf__piece_end(p, l->view.num_states);
  for (uint64_t i = arc_off[p * WF__PIECE_STATES]; i < arc_off[end]; i++)
    if (to_copy(l, &l->view.arcs[i]))
      WF__TRY(wf__vec_push(&l->pieces[p].keys, key_of(l, &l->view.arcs[i]), "states", err));
  return WF_OK;
}

static void list_piece(void *user, uint64_t p, int worker) {
  struct looping *l = user;
  (void)worker;
  l->pieces[p].status = list_keys(l, p, NULL);
}

/* Numbers the copies that a piece's arcs lead to, in the order of the arcs. */
static wf_status number_piece(struct looping *l, struct piece *piece, wf_error *err) {
  enum { AHEAD = 16 };
  uint64_t *keys = piece->keys.data, size = piece->keys.size;
  piece->targets = wf__alloc(size, sizeof *piece->targets);
  if (piece->status != WF_OK || piece->targets == NULL)
    return wf__fail_memory(err, size * 12, "states");
  for (uint64_t i = 0; i < size; i++) {
    uint64_t copy = l->copy_keys.size;
    uint32_t number;
    bool fresh;
    if (i + AHEAD < size) wf__map64_prefetch(&l->copies, keys[i + AHEAD]);
    if (l->num_kept + copy >= WF__MAX_STATES)
      return wf__fail(err, WF_ERR_LIMIT, "more than 2^31 states");
    WF__TRY(wf__map64_insert(&l->copies, keys[i], (uint32_t)copy, &number, &fresh, "states", err));
    if (fresh) WF__TRY(wf__vec_push(&l->copy_keys, keys[i], "states", err));
    piece->targets[i] = (uint32_t)l->num_kept + number;
  }
  wf__vec_free(&piece->keys);
  return WF_OK;
}

/* Finds the targets of copies. A copy's arc to another copy is that of a state, too, so no copies
 * are added. */
static void find_targets(void *user, uint64_t p, int worker) {
  struct looping *l = user;
  (void)worker;
  for (uint64_t k = p * WF__PIECE_STATES; k < wf__piece_end(p, l->copy_keys.size); k++) {
    uint64_t s = l->copy_keys.data[k] >> 32;
    const wf_arc *only = &l->view.arcs[l->view.arc_off[s]];
    if (!has_one_arc(l, s))
      l->copy_targets[k] = kept_number(l, s);
    else if (to_copy(l, only))
      l->copy_targets[k] = (uint32_t)l->num_kept + wf__map64_find(&l->copies, key_of(l, only));
    else
      l->copy_targets[k] = kept_number(l, only->nextstate);
  }
}

static wf_status number_copies(struct looping *l, wf__pool *pool, wf_error *err) {
  WF__TRY(wf__pool_try(pool, l->num_pieces, list_piece, l, err));
  for (uint64_t p = 0; p < l->num_pieces; p++) WF__TRY(number_piece(l, &l->pieces[p], err));
  uint64_t num_copies = l->copy_keys.size;
  l->copy_targets = wf__alloc(num_copies, sizeof *l->copy_targets);
  if (l->copy_targets == NULL) return wf__fail_memory(err, num_copies * 4, "states");
  WF__TRY(wf__pool_try(pool, wf__num_pieces(num_copies), find_targets, l, err));
  wf__map64_free(&l->copies); /* makes room for the result */
  return WF_OK;
}

/* --- the result -------------------------------------------------------------------------- */

/* Arcs of one state under construction: arcs that read a frame come first. */
struct writer {
  wf_arc *front, *back; /* the next to write: of a frame; of epsilon */
};

static void put(struct writer *writer, wf_arc arc) {
  *(arc.ilabel != 0 ? writer->front++ : writer->back++) = arc;
}

static struct writer writer_at(struct looping *l, uint64_t off, const wf_arc *arcs, uint64_t count,
                               bool loop) {
  struct writer writer = {l->csr.arcs.data + off, l->csr.arcs.data + off + loop};
  for (uint64_t i = 0; i < count; i++) writer.back += arcs[i].ilabel != 0;
  return writer;
}

static void write_piece(void *user, uint64_t p, int worker) {
  struct looping *l = user;
  const uint32_t *target = l->pieces[p].targets;
  uint64_t off = l->pieces[p].arc_off;
  (void)worker;
  for (uint64_t s = p * WF__PIECE_STATES; s < wf__piece_end(p, l->view.num_states); s++) {
    const wf_arc *arcs = l->view.arcs + l->view.arc_off[s];
    uint64_t count = l->view.arc_off[s + 1] - l->view.arc_off[s];
    int32_t class = l->class_of[s];
    if (is_dropped(l, s)) {
      target += to_copy(l, arcs);
      continue;
    }
    uint32_t self = kept_number(l, s);
    struct writer writer = writer_at(l, off, arcs, count, class > 0);
    for (uint64_t i = 0; i < count; i++) {
      wf_arc arc = arcs[i];
      arc.nextstate = to_copy(l, &arcs[i]) ? *target++ : kept_number(l, arc.nextstate);
      arc.weight += forward_cost(l, class);
      put(&writer, arc);
    }
    if (class > 0) put(&writer, loop_arc(l, self, class));
    float final_cost = l->view.final_cost[s];
    l->csr.arc_off.data[self] = off;
    l->csr.final_cost.data[self] =
        final_cost != INFINITY ? final_cost + forward_cost(l, class) : INFINITY;
    off += count + (class > 0);
  }
}

/* Every copy has two arcs. */
static void write_copies(void *user, uint64_t p, int worker) {
  struct looping *l = user;
  uint64_t num_copies = l->copy_keys.size, base = l->csr.arcs.size - 2 * num_copies;
  (void)worker;
  for (uint64_t k = p * WF__PIECE_STATES; k < wf__piece_end(p, num_copies); k++) {
    uint64_t s = l->copy_keys.data[k] >> 32, self = l->num_kept + k, off = base + 2 * k;
    int32_t loop = (int32_t)(uint32_t)l->copy_keys.data[k];
    wf_arc arc = {.weight = forward_cost(l, loop)};
    if (has_one_arc(l, s)) {
      arc = l->view.arcs[l->view.arc_off[s]];
      arc.weight += forward_cost(l, loop);
    }
    arc.nextstate = l->copy_targets[k];
    struct writer writer = writer_at(l, off, &arc, 1, true);
    put(&writer, arc);
    put(&writer, loop_arc(l, self, loop));
    l->csr.arc_off.data[self] = off;
    l->csr.final_cost.data[self] = INFINITY;
  }
}

static wf_status reserve(struct looping *l, wf_error *err) {
  uint64_t num_copies = l->copy_keys.size, num_states = l->num_kept + num_copies, num_arcs = 0;
  for (uint64_t p = 0; p < l->num_pieces; p++) {
    l->pieces[p].arc_off = num_arcs;
    num_arcs += l->pieces[p].num_arcs;
  }
  num_arcs += 2 * num_copies;
  WF__TRY(wf__vec_grow(&l->csr.arc_off, num_states + 1, "states", err));
  WF__TRY(wf__vec_grow(&l->csr.final_cost, num_states + 1, "states", err));
  WF__TRY(wf__vec_grow(&l->csr.arcs, num_arcs + 1, "arcs", err));
  l->csr.arc_off.size = l->csr.final_cost.size = num_states;
  l->csr.arcs.size = num_arcs;
  return WF_OK;
}

static wf_status make_states(struct looping *l, wf__pool *pool, wf_error *err) {
  WF__TRY(find_classes(l, pool, err));
  WF__TRY(wf__pool_try(pool, l->num_pieces, mark_piece, l, err));
  for (uint64_t w = 0; w * 64 < l->view.num_states; w++) {
    uint64_t left = l->view.num_states - w * 64;
    l->marks[w].kept_before = (uint32_t)l->num_kept;
    l->num_kept += (left < 64 ? left : 64) - (uint64_t)__builtin_popcountll(l->marks[w].dropped);
  }
  WF__TRY(number_copies(l, pool, err));
  WF__TRY(reserve(l, err));
  WF__TRY(wf__pool_try(pool, l->num_pieces, write_piece, l, err));
  return wf__pool_try(pool, wf__num_pieces(l->copy_keys.size), write_copies, l, err);
}

static wf_status add_loops(struct looping *l, int64_t *start, wf_error *err) {
  uint64_t n = l->view.num_states;
  wf__pool *pool;
  l->num_pieces = wf__num_pieces(n);
  l->class_of = wf__alloc(n, sizeof *l->class_of);
  l->marks = wf__calloc(n / 64 + 1, sizeof *l->marks);
  l->pieces = wf__calloc(l->num_pieces, sizeof *l->pieces);
  if (l->class_of == NULL || l->marks == NULL || l->pieces == NULL)
    return wf__fail_memory(err, n * sizeof *l->class_of, "self-loops");
  WF__TRY(wf__pool_for_fst(0, &l->view, &pool, err));
  wf_status status = make_states(l, pool, err);
  wf__pool_free(pool);
  if (status == WF_OK) *start = kept_number(l, (uint64_t)l->view.start);
  return status;
}

wf_status wf__hmm_add_loops(const wf_hmm *hmm, const wf_fst *fst, float self_loop_scale,
                            wf_fst **out, wf_error *err) {
  *out = NULL;
  struct looping l = {.hmm = hmm, .view = wf_fst_get_view(fst), .scale = self_loop_scale};
  int64_t start = -1;
  wf_fst *made = NULL;
  wf_status status = l.view.start >= 0 ? add_loops(&l, &start, err) : WF_OK;
  for (uint64_t p = 0; l.pieces != NULL && p < l.num_pieces; p++) {
    wf__vec_free(&l.pieces[p].keys);
    free(l.pieces[p].targets);
  }
  free(l.pieces);
  free(l.marks);
  free(l.class_of);
  wf__map64_free(&l.copies);
  wf__vec_free(&l.copy_keys);
  free(l.copy_targets);
  if (status == WF_OK)
    status =
        wf__fst_from_csr(&l.csr, start, l.view.semiring, NULL, wf_fst_osymbols(fst), &made, err);
  else
    wf__csr_free(&l.csr);
  if (status == WF_OK && wf__fst_known_trimmed(fst)) wf__fst_set_trimmed(made);
  if (status == WF_OK) status = wf__connect(made, 0, out, err);
  wf_fst_free(made);
  return status;
}

wf_status wf__hmm_loop_table(const wf_hmm *hmm, float self_loop_scale, wf__loop_table *out,
                             wf_error *err) {
  const uint64_t count = hmm->labels.size;
  int32_t *loop = wf__alloc(count, sizeof *loop);
  float *costs = wf__alloc(2 * count, sizeof *costs);
  *out = (wf__loop_table){count - 1, loop, costs, costs + count};
  if (loop == NULL || costs == NULL) return wf__fail_memory(err, count * 12, "self-loops");
  for (uint64_t label = 0; label < count; label++) {
    const wf__hmm_label *from = &hmm->labels.data[label];
    loop[label] = from->loop;
    costs[label] = self_loop_scale * from->loop_cost;
    costs[count + label] = self_loop_scale * from->forward_cost;
  }
  return WF_OK;
}

void wf__hmm_loop_table_free(wf__loop_table *table) {
  free(table->loop);
  free(table->loop_cost);
}
