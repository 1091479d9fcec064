/* mbr.c - minimum Bayes risk decoding of a compact lattice, and the sausage that comes with it.
 *
 * Xu, Povey, Mangu, Zhu 2011, "Minimum Bayes Risk decoding and system combination based on a
 * recursion for edit distance", figures 4 to 6. A word sequence R, with an empty place before,
 * between and behind its words, is compared with all paths at once:
 *
 *     ahead(n, q)    mean edit distance of the paths to state n from the first q places of R; by
 *                    arc: pair, insertion or deletion, whichever is least
 *     back(n, q)     how much of the probability of all paths is aligned to place q of R when it
 *                    comes to state n
 *     bins[q]        word -> probability of being aligned to place q: a bin of the sausage
 *
 * Then every place takes the most probable word of its bin, until no place changes. `ahead` at
 * the end is the expected number of errors of R. It is exact if no two paths meet before the
 * end; otherwise it is an upper bound, since the minimum is taken after the mean. */
#include <math.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/map64.h"
#include "base/option_tables.h"
#include "lattice/in_arcs.h"
#include "lattice/mbr.h"

enum { MAX_ROUNDS = 100 };
#define MAX_CELLS ((uint64_t)1 << 28)
/* Penalty of an insertion that is aligned to no place. So words prefer an empty place of R, and
 * thus a bin. */
#define UNPLACED 1e-5

/* A word of a bin. */
struct share {
  int32_t word;
  uint64_t place;
  double posterior, start, end; /* times: sums weighted by the probability */
};

/* Cells first .. last of a row of `back` may be above 0. */
struct span {
  uint64_t first, last;
};

struct wf__mbr {
  const wf_compact_lattice_view *lattice;
  double scale;         /* factor on costs */
  double complete_beam; /* the lattice lacks paths beyond it */
  wf__in_arcs in;
  WF__VEC(double) weights;     /* [arcs] of the mean over the arcs into a state: sum 1 */
  WF__VEC(uint64_t) path;      /* arcs of the best path */
  WF__VEC(int32_t) best;       /* words of the best path */
  WF__VEC(int32_t) places;     /* R: 0, word, 0, word, 0 */
  float *confidences;          /* [words of R] to be set in the first round; NULL: not wanted */
  WF__VEC(double) ahead, back; /* [num_states][places + 1] */
  WF__VEC(struct span) spans;  /* [num_states] */
  WF__VEC(double) row;         /* [places + 1] of one arc */
  WF__VEC(uint8_t) steps;      /* [arcs][places + 1] */
  WF__VEC(uint32_t) usual;     /* [places][2] share of no word, of the word of R; or NONE */
  wf__map64 index;             /* place << 32 | word -> share, of other words */
  WF__VEC(struct share) shares, sorted;
  WF__VEC(uint64_t) bounds; /* [places + 1] of the bins in `sorted` */
  WF__VEC(int32_t) words;   /* [places] of the next round */
  WF__VEC(double) most;     /* [places] posteriors of these */
  double risk;
};

enum { STEP_PAIR, STEP_INSERT, STEP_DELETE }; /* any larger number is a deletion as well */

static double mismatch(int32_t a, int32_t b) { return a == b ? 0 : 1; }
/* Cost of the arc's word aligned to no place. */
static double insertion(int32_t word) { return word == 0 ? 0 : 1 + UNPLACED; }
static double lesser(double a, double b) { return a < b ? a : b; }

static double *row_of(const struct wf__mbr *m, double *table, uint64_t state) {
  return table + state * (m->places.size + 1);
}

static uint8_t step_of(double pair, double insert, double least, double left_out) {
  return (uint8_t)((insert < pair) * STEP_INSERT | (left_out < least) * STEP_DELETE);
}

/* Computes the row of an arc from the row of its source. Which step is the least is unpredictable,
 * so values are selected, not branched on. Among equal ones the order is pair, insertion, deletion.
 * Deletions depend on the cell before. So that only one addition and one comparison per word of R
 * wait for each other, `last` at a word is
 *     min(min(last, a) + 1, b) = min(last + 1, min(a + 1, b))
 * with a, b: the lesser of pair and insertion at the empty place and at the word. (Deleting the
 * empty place costs nothing. Rounding keeps the order, so the two sides are equal bit for bit.) */
static void arc_row(const struct wf__mbr *m, const wf__in_arc *arc, double *restrict row,
                    uint8_t *restrict steps) {
  const double *const restrict source = row_of(m, m->ahead.data, arc->source);
  const int32_t *const restrict places = m->places.data;
  const int32_t word = arc->word;
  const double inserted = insertion(word), unequal = mismatch(word, 0);
  const uint64_t count = m->places.size;
  double last = source[0] + inserted, pair, insert;
  row[0] = last;
  for (uint64_t q = 1; q < count; q += 2) {
    pair = source[q - 1] + unequal;
    insert = source[q] + inserted;
    const double empty = lesser(insert, pair), at_empty = lesser(last, empty);
    steps[q] = step_of(pair, insert, empty, last);
    row[q] = at_empty;
    pair = source[q] + mismatch(word, places[q]);
    insert = source[q + 1] + inserted;
    const double taken = lesser(insert, pair);
    steps[q + 1] = step_of(pair, insert, taken, at_empty + 1);
    row[q + 1] = last = lesser(last + 1, lesser(empty + 1, taken));
  }
  pair = source[count - 1] + unequal;
  insert = source[count] + inserted;
  const double empty = lesser(insert, pair);
  steps[count] = step_of(pair, insert, empty, last);
  row[count] = lesser(last, empty);
}

static uint8_t *steps_of(const struct wf__mbr *m, uint64_t arc) {
  return m->steps.data + arc * (m->places.size + 1);
}

/* The row of a state: the mean over the arcs into it. */
static void state_row(const struct wf__mbr *m, uint64_t n) {
  const uint64_t width = m->places.size + 1;
  double *restrict row = row_of(m, m->ahead.data, n), *restrict other = m->row.data;
  bool first = true;
  for (uint64_t a = m->in.in_off[n]; a < m->in.in_off[n + 1]; a++) {
    const double weight = m->weights.data[a];
    if (weight == 0) continue;
    arc_row(m, &m->in.arcs[a], first ? row : other, steps_of(m, a));
    for (uint64_t q = 0; q < width && first && weight != 1; q++) row[q] *= weight;
    for (uint64_t q = 0; q < width && !first; q++) row[q] += weight * other[q];
    first = false;
  }
  for (uint64_t q = 0; q < width && first; q++) row[q] = 0;
}

static wf_status go_ahead(struct wf__mbr *m, wf_error *err) {
  double *first = m->ahead.data;
  first[0] = 0;
  for (uint64_t q = 1; q <= m->places.size; q++)
    first[q] = first[q - 1] + mismatch(0, m->places.data[q - 1]);
  for (uint64_t n = 1; n < m->in.num_states; n++) {
    if (n % 64 == 1) WF__TRY(wf__interrupted(err));
    state_row(m, n);
  }
  m->risk = row_of(m, m->ahead.data, m->in.num_states - 1)[m->places.size];
  return WF_OK;
}

#define NONE UINT32_MAX

/* The share of a word of R, or of no word if the place is empty; NULL: none. */
static const struct share *usual_share(const struct wf__mbr *m, uint64_t place) {
  const uint32_t at = m->usual.data[2 * place + (m->places.data[place] != 0)];
  return at != NONE ? &m->shares.data[at] : NULL;
}

/* Finds or makes the share of a word. No word and the words of R, which are most, are not hashed.
 */
static wf_status find_share(struct wf__mbr *m, uint64_t place, int32_t word, uint32_t *out,
                            wf_error *err) {
  bool fresh;
  *out = (uint32_t)m->shares.size;
  if (word == 0 || word == m->places.data[place]) {
    uint32_t *usual = &m->usual.data[2 * place + (word != 0)];
    fresh = *usual == NONE;
    if (fresh) *usual = *out;
    *out = *usual;
  } else {
    WF__TRY(wf__map64_insert(&m->index, place << 32 | (uint32_t)word, *out, out, &fresh,
                             "a sausage", err));
  }
  if (!fresh) return WF_OK;
  return wf__vec_push(&m->shares, ((struct share){.word = word, .place = place}), "a sausage", err);
}

static wf_status add_share(struct wf__mbr *m, uint64_t place, int32_t word, double posterior,
                           double start, double end, wf_error *err) {
  uint32_t at;
  if (posterior <= 0) return WF_OK;
  WF__TRY(find_share(m, place, word, &at, err));
  struct share *share = &m->shares.data[at];
  share->posterior += posterior;
  share->start += posterior * start;
  share->end += posterior * end;
  return WF_OK;
}

static void add_flow(double *row, struct span *span, uint64_t q, double flow) {
  row[q] += flow;
  if (q < span->first) span->first = q;
  if (q > span->last) span->last = q;
}

/* Distributes the probability of arc `a` into state n over the places, backward along its steps. */
static wf_status arc_back(struct wf__mbr *m, uint64_t a, uint64_t n, wf_error *err) {
  const wf__in_arc *arc = &m->in.arcs[a];
  const double *target = row_of(m, m->back.data, n), weight = m->weights.data[a];
  const uint8_t *steps = steps_of(m, a);
  const struct span from = m->spans.data[n];
  double *source = row_of(m, m->back.data, arc->source);
  struct span *span = &m->spans.data[arc->source];
  const double start = (double)m->lattice->frames[arc->source],
               end = arc->arc != UINT64_MAX ? (double)m->lattice->frames[n] : start;
  double deleted = 0; /* of the flow at the place behind */
  uint64_t q = from.last;
  for (; q > 0 && (q >= from.first || deleted != 0); q--) {
    const double flow = deleted + weight * target[q];
    deleted = 0;
    if (flow == 0) continue;
    switch (steps[q]) {
      case STEP_PAIR:
        add_flow(source, span, q - 1, flow);
        WF__TRY(add_share(m, q - 1, arc->word, flow, start, end, err));
        break;
      case STEP_INSERT: add_flow(source, span, q, flow); break;
      default:
        deleted = flow;
        WF__TRY(add_share(m, q - 1, 0, flow, end, end, err));
        break;
    }
  }
  const double rest = q == 0 ? deleted + weight * target[0] : 0;
  if (rest != 0) add_flow(source, span, 0, rest);
  return WF_OK;
}

static wf_status go_back(struct wf__mbr *m, wf_error *err) {
  const uint64_t num_states = m->in.num_states, end = num_states - 1;
  wf__map64_clear(&m->index);
  m->shares.size = 0;
  memset(m->usual.data, 0xff, 2 * m->places.size * sizeof *m->usual.data);
  memset(m->back.data, 0, num_states * (m->places.size + 1) * sizeof *m->back.data);
  for (uint64_t n = 0; n < num_states; n++) m->spans.data[n] = (struct span){UINT64_MAX, 0};
  add_flow(row_of(m, m->back.data, end), &m->spans.data[end], m->places.size, 1);
  for (uint64_t n = end; n > 0; n--) {
    if (n % 64 == 1) WF__TRY(wf__interrupted(err));
    for (uint64_t a = m->in.in_off[n]; a < m->in.in_off[n + 1]; a++)
      if (m->weights.data[a] != 0) WF__TRY(arc_back(m, a, n, err));
  }
  double *first = m->back.data;
  for (uint64_t q = m->places.size; q > 0; q--) {
    WF__TRY(add_share(m, q - 1, 0, first[q], 0, 0, err));
    first[q - 1] += first[q];
  }
  return WF_OK;
}

/* --- rounds ------------------------------------------------------------------------------ */

static wf_status make_tables(struct wf__mbr *m, wf_error *err) {
  static const char what[] = "minimum Bayes risk";
  const uint64_t width = m->places.size + 1, num_states = m->in.num_states,
                 cells = num_states * width, num_arcs = m->in.in_off[num_states];
  if (cells > MAX_CELLS) {
    return wf__fail(
        err, WF_ERR_LIMIT,
        "a lattice of %llu states and %llu words is too large for minimum Bayes risk; prune it",
        (unsigned long long)num_states, (unsigned long long)(m->places.size / 2));
  }
  WF__TRY(wf__vec_grow(&m->ahead, cells, what, err));
  WF__TRY(wf__vec_grow(&m->back, cells, what, err));
  WF__TRY(wf__vec_grow(&m->spans, num_states, what, err));
  WF__TRY(wf__vec_grow(&m->row, width, what, err));
  WF__TRY(wf__vec_grow(&m->usual, 2 * width, what, err));
  WF__TRY(wf__vec_grow(&m->words, width, what, err));
  WF__TRY(wf__vec_grow(&m->most, width, what, err));
  return wf__vec_grow(&m->steps, num_arcs * width, what, err);
}

/* Sets R to the words, with an empty place around each. */
static wf_status set_places(struct wf__mbr *m, const int32_t *words, uint64_t count,
                            wf_error *err) {
  m->places.size = 0;
  WF__TRY(wf__vec_grow(&m->places, count * 2 + 1, "a word sequence", err));
  for (uint64_t i = 0; i < count; i++) {
    m->places.data[m->places.size++] = 0;
    m->places.data[m->places.size++] = words[i];
  }
  m->places.data[m->places.size++] = 0;
  return WF_OK;
}

/* Finds the word for each place: the most probable of its bin. Among equals it keeps the present
 * one, else takes the smallest label. Returns whether any word changes. */
static bool best_words(struct wf__mbr *m) {
  int32_t *words = m->words.data;
  double *most = m->most.data;
  bool changed = false;
  for (uint64_t q = 0; q < m->places.size; q++) {
    const struct share *share = usual_share(m, q);
    words[q] = m->places.data[q];
    most[q] = share != NULL ? share->posterior : 0;
  }
  for (uint64_t i = 0; i < m->shares.size; i++) {
    const struct share *share = &m->shares.data[i];
    bool better = share->posterior > most[share->place];
    bool equal = share->posterior == most[share->place] &&
                 words[share->place] != m->places.data[share->place] &&
                 share->word < words[share->place];
    if (!better && !equal) continue;
    most[share->place] = share->posterior;
    words[share->place] = share->word;
    changed = true;
  }
  return changed;
}

/* A word that all paths of the lattice have is not certain, because the lattice lacks paths beyond
 * its beam. How likely these are is estimated from the competitors that the words have in the
 * lattice (docs/engineering/lattices.md, "Reliability of confidences"). */
static void leave_room(const struct wf__mbr *m, float *confidences, uint64_t num_words) {
  double others = 1;
  for (uint64_t i = 0; i < num_words; i++) others += 1 - (double)confidences[i];
  const double beyond = 3 * others / (3 + (double)num_words) * exp(-m->scale * m->complete_beam);
  for (uint64_t i = 0; i < num_words; i++)
    confidences[i] = (float)((double)confidences[i] / (1 + beyond));
}

static void take_confidences(struct wf__mbr *m) {
  for (uint64_t q = 1; q < m->places.size && m->confidences != NULL; q += 2) {
    const struct share *share = usual_share(m, q);
    const double posterior = share != NULL ? share->posterior : 0;
    m->confidences[q / 2] = posterior < 1 ? (float)posterior : 1;
  }
  if (m->confidences != NULL) leave_room(m, m->confidences, m->places.size / 2);
  m->confidences = NULL;
}

/* Repeats rounds until no word changes. */
static wf_status run_rounds(struct wf__mbr *m, bool decode, int32_t *rounds, wf_error *err) {
  for (*rounds = 1;; ++*rounds) {
    uint64_t kept = 0;
    WF__TRY(make_tables(m, err));
    WF__TRY(go_ahead(m, err));
    WF__TRY(go_back(m, err));
    take_confidences(m);
    if (!decode || *rounds == MAX_ROUNDS || !best_words(m)) return WF_OK;
    for (uint64_t q = 0; q < m->places.size; q++)
      if (m->words.data[q] != 0) m->words.data[kept++] = m->words.data[q];
    WF__TRY(set_places(m, m->words.data, kept, err));
  }
}

/* --- results ----------------------------------------------------------------------------- */

static int compare_shares(const void *left, const void *right) {
  const struct share *a = left, *b = right;
  if (a->posterior != b->posterior) return a->posterior > b->posterior ? -1 : 1;
  return a->word < b->word ? -1 : a->word > b->word;
}

enum { FEW = 16 }; /* limit of insertion sort */

static void sort_bin(struct share *shares, uint64_t count) {
  if (count > FEW) {
    qsort(shares, count, sizeof *shares, compare_shares);
    return;
  }
  for (uint64_t i = 1; i < count; i++) {
    const struct share share = shares[i];
    uint64_t at = i;
    for (; at > 0 && compare_shares(&share, &shares[at - 1]) < 0; at--) shares[at] = shares[at - 1];
    shares[at] = share;
  }
}

/* Sorts shares by place, each bin by probability. */
static wf_status sort_shares(struct wf__mbr *m, wf_error *err) {
  const uint64_t count = m->shares.size, num_places = m->places.size;
  WF__TRY(wf__vec_grow(&m->sorted, count, "a sausage", err));
  WF__TRY(wf__vec_grow(&m->bounds, num_places + 1, "a sausage", err));
  uint64_t *bounds = m->bounds.data;
  memset(bounds, 0, (num_places + 1) * sizeof *bounds);
  for (uint64_t i = 0; i < count; i++) bounds[m->shares.data[i].place + 1]++;
  for (uint64_t q = 0; q < num_places; q++) bounds[q + 1] += bounds[q];
  for (uint64_t i = 0; i < count; i++)
    m->sorted.data[bounds[m->shares.data[i].place]++] = m->shares.data[i];
  for (uint64_t q = 0, first = 0; q < num_places; first = bounds[q++])
    sort_bin(m->sorted.data + first, bounds[q] - first);
  return WF_OK;
}

static int32_t frame_of(double sum, double weight) { return (int32_t)lround(sum / weight); }

void wf_mbr_result_free(wf_mbr_result *result) {
  if (result == NULL) return;
  free(result->words);
  free(result->confidences);
  free(result->bin_off);
  free(result->bin_words);
  free(result);
}

/* Makes words end no later than the next one starts. */
static void part_times(wf_mbr_result *result) {
  for (size_t i = 0; i + 1 < result->num_words; i++) {
    wf_word *word = &result->words[i], *next = &result->words[i + 1];
    if (next->start_frame < word->start_frame) next->start_frame = word->start_frame;
    if (word->end_frame > next->start_frame) word->end_frame = next->start_frame;
    if (next->end_frame < next->start_frame) next->end_frame = next->start_frame;
  }
}

static wf_status make_result(struct wf__mbr *m, int32_t rounds, bool timed, wf_mbr_result **out,
                             wf_error *err) {
  wf_mbr_result *result = wf__calloc(1, sizeof *result);
  *out = result;
  if (result == NULL) return wf__fail_memory(err, sizeof *result, "a result");
  uint64_t num_words = m->places.size / 2, at = 0;
  result->risk = m->risk;
  result->num_rounds = rounds;
  result->num_bins = m->places.size;
  result->words = wf__alloc(num_words, sizeof *result->words);
  result->confidences = wf__alloc(num_words, sizeof *result->confidences);
  result->bin_off = wf__alloc(m->places.size + 1, sizeof *result->bin_off);
  result->bin_words = wf__alloc(m->shares.size, sizeof *result->bin_words);
  if (result->words == NULL || result->confidences == NULL || result->bin_off == NULL ||
      result->bin_words == NULL)
    return wf__fail_memory(err, m->shares.size * sizeof *result->bin_words, "a sausage");
  WF__TRY(sort_shares(m, err));
  for (uint64_t q = 0; q < m->places.size; q++) {
    int32_t word = m->places.data[q];
    result->bin_off[q] = at;
    if (word != 0) { /* at least the path that contains the word is aligned to it, unless rounding
                        lost its probability */
      result->words[result->num_words] = (wf_word){word, -1, -1};
      result->confidences[result->num_words++] = 0;
    }
    for (; at < m->bounds.data[q]; at++) {
      const struct share *share = &m->sorted.data[at];
      wf_sausage_word entry = {share->word, timed ? frame_of(share->start, share->posterior) : -1,
                               timed ? frame_of(share->end, share->posterior) : -1,
                               share->posterior};
      result->bin_words[at] = entry;
      if (share->word != word || word == 0) continue;
      result->words[result->num_words - 1] = (wf_word){word, entry.start_frame, entry.end_frame};
      result->confidences[result->num_words - 1] =
          share->posterior < 1 ? (float)share->posterior : 1;
    }
  }
  result->bin_off[m->places.size] = at;
  leave_room(m, result->confidences, result->num_words);
  if (timed) part_times(result);
  return WF_OK;
}

/* Computes sums over the lattice, the weights of the mean over the arcs into each state, and the
 * words of the best path. */
static wf_status prepare(struct wf__mbr *m, wf_error *err) {
  static const char what[] = "minimum Bayes risk";
  WF__TRY(wf__in_arcs_make(m->lattice, m->scale, &m->in, err));
  if (m->in.total == INFINITY)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the lattice has no path from its start to a final state");
  const uint64_t num_states = m->in.num_states;
  m->best.size = 0;
  WF__TRY(wf__vec_grow(&m->weights, m->in.in_off[num_states], what, err));
  WF__TRY(wf__vec_grow(&m->path, num_states, what, err));
  WF__TRY(wf__vec_grow(&m->best, num_states, what, err));
  for (uint64_t n = 0; n < num_states; n++)
    for (uint64_t a = m->in.in_off[n]; a < m->in.in_off[n + 1]; a++) {
      const wf__in_arc *arc = &m->in.arcs[a];
      const double cost = m->in.forward[arc->source] + m->scale * arc->cost,
                   gap = m->in.forward[n] - cost;
      m->weights.data[a] = gap == 0 ? 1 : cost < INFINITY ? exp(gap) : 0;
    }
  const uint64_t count = wf__in_arcs_best_path(&m->in, m->path.data);
  for (uint64_t i = 0; i < count; i++) {
    const int32_t word = m->in.arcs[m->path.data[i]].word;
    if (word != 0) m->best.data[m->best.size++] = word;
  }
  return WF_OK;
}

static void free_tables(struct wf__mbr *m) {
  wf__in_arcs_free(&m->in);
  wf__vec_free(&m->weights);
  wf__vec_free(&m->path);
  wf__vec_free(&m->best);
  wf__vec_free(&m->places);
  wf__vec_free(&m->ahead);
  wf__vec_free(&m->back);
  wf__vec_free(&m->spans);
  wf__vec_free(&m->row);
  wf__vec_free(&m->steps);
  wf__map64_free(&m->index);
  wf__vec_free(&m->usual);
  wf__vec_free(&m->shares);
  wf__vec_free(&m->sorted);
  wf__vec_free(&m->bounds);
  wf__vec_free(&m->words);
  wf__vec_free(&m->most);
}

wf_status wf__mbr_create(wf__mbr **out, wf_error *err) {
  *out = wf__calloc(1, sizeof **out);
  return *out != NULL ? WF_OK : wf__fail_memory(err, sizeof **out, "minimum Bayes risk");
}

void wf__mbr_free(wf__mbr *m) {
  if (m != NULL) free_tables(m);
  free(m);
}

uint64_t wf__mbr_bytes(const wf__mbr *m) {
  return m->in.memory.cap * sizeof *m->in.memory.data +
         (m->ahead.cap + m->back.cap) * sizeof(double) + m->steps.cap +
         (m->index.bits > 0 ? (uint64_t)12 << m->index.bits : 0) +
         m->shares.cap * sizeof *m->shares.data;
}

/* Rounds from the words given; the result. `out` NULL: only confidences. */
static wf_status rounds_from(struct wf__mbr *m, const int32_t *words, uint64_t num_words,
                             bool decode, wf_mbr_result **out, wf_error *err) {
  int32_t rounds = 0;
  bool timed = true;
  WF__TRY(set_places(m, words, num_words, err));
  WF__TRY(run_rounds(m, decode, &rounds, err));
  if (out == NULL) return WF_OK;
  for (uint64_t s = 0; s < m->lattice->num_states; s++) timed = timed && m->lattice->frames[s] >= 0;
  wf_status status = make_result(m, rounds, timed, out, err);
  if (status == WF_OK) return WF_OK;
  wf_mbr_result_free(*out);
  *out = NULL;
  return status;
}

wf_status wf_compact_lattice_mbr(const wf_compact_lattice *lattice, const int32_t *words,
                                 size_t num_words, const wf_mbr_options *options,
                                 wf_mbr_result **out, wf_error *err) {
  *out = NULL;
  wf_mbr_options taken;
  WF__TRY(wf__options_take(wf__mbr_table(), options, &taken, err));
  for (size_t i = 0; i < num_words && words != NULL; i++)
    if (words[i] <= 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "word %zu is %d, which is not a word label", i,
                      words[i]);
  wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  struct wf__mbr m = {
      .lattice = &view, .scale = (double)taken.scale, .complete_beam = (double)taken.complete_beam};
  wf_status status = prepare(&m, err);
  if (status == WF_OK)
    status = rounds_from(&m, words != NULL ? words : m.best.data,
                         words != NULL ? num_words : m.best.size, taken.decode, out, err);
  free_tables(&m);
  return status;
}

wf_status wf__lattice_mbr(wf__mbr *m, const wf_compact_lattice_view *lattice, float scale,
                          float complete_beam, const int32_t *words, size_t num_words,
                          float *confidences, wf_mbr_result **out, wf_error *err) {
  m->lattice = lattice;
  m->scale = (double)scale;
  m->complete_beam = (double)complete_beam;
  m->confidences = confidences;
  WF__TRY(prepare(m, err));
  const bool best = m->best.size == num_words &&
                    (num_words == 0 || memcmp(m->best.data, words, num_words * sizeof *words) == 0);
  if (confidences != NULL && (out == NULL || !best))
    WF__TRY(rounds_from(m, words, num_words, false, NULL, err));
  return out != NULL ? rounds_from(m, m->best.data, m->best.size, true, out, err) : WF_OK;
}
