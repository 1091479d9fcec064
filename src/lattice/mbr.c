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

struct mbr {
  const wf_compact_lattice_view *lattice;
  wf__in_arcs in;
  double *weights;         /* [arcs] of the mean over the arcs into a state: sum 1 */
  WF__VEC(int32_t) best;   /* words of the best path */
  WF__VEC(int32_t) places; /* R: 0, word, 0, word, 0 */
  float *confidences;      /* [words of R] to be set in the first round; NULL: not wanted */
  double *ahead, *back;    /* [num_states][places + 1] */
  double *row, *flow;      /* [places + 1] of one arc */
  uint8_t *steps;          /* [places + 1] of one arc */
  wf__map64 index;         /* place << 32 | word -> shares */
  WF__VEC(struct share) shares;
  double risk;
};

enum { STEP_PAIR, STEP_INSERT, STEP_DELETE };

static double mismatch(int32_t a, int32_t b) { return a == b ? 0 : 1; }
/* Cost of the arc's word aligned to no place. */
static double insertion(int32_t word) { return word == 0 ? 0 : 1 + UNPLACED; }

static double *row_of(const struct mbr *m, double *table, uint64_t state) {
  return table + state * (m->places.size + 1);
}

/* Computes the row of an arc from the row of its source. Which step is the least is unpredictable,
 * so values are selected, not branched on. Among equal ones the order is pair, insertion, deletion.
 */
static void arc_row(struct mbr *m, const wf__in_arc *arc) {
  const double *const source = row_of(m, m->ahead, arc->source);
  const int32_t *const places = m->places.data;
  const int32_t word = arc->word;
  const double inserted = insertion(word);
  const uint64_t count = m->places.size;
  double *const row = m->row, last = source[0] + inserted;
  uint8_t *const steps = m->steps;
  row[0] = last;
  for (uint64_t q = 1; q <= count; q++) {
    const int32_t place = places[q - 1];
    const double pair = source[q - 1] + mismatch(word, place), insert = source[q] + inserted,
                 left_out = last + mismatch(0, place), least = insert < pair ? insert : pair;
    const bool deletes = left_out < least;
    last = deletes ? left_out : least;
    row[q] = last;
    steps[q] = deletes ? STEP_DELETE : insert < pair ? STEP_INSERT : STEP_PAIR;
  }
}

static wf_status go_ahead(struct mbr *m, wf_error *err) {
  double *first = row_of(m, m->ahead, 0);
  first[0] = 0;
  for (uint64_t q = 1; q <= m->places.size; q++)
    first[q] = first[q - 1] + mismatch(0, m->places.data[q - 1]);
  for (uint64_t n = 1; n < m->in.num_states; n++) {
    WF__TRY(wf__interrupted(err));
    double *row = row_of(m, m->ahead, n);
    for (uint64_t q = 0; q <= m->places.size; q++) row[q] = 0;
    for (uint64_t a = m->in.in_off[n]; a < m->in.in_off[n + 1]; a++) {
      if (m->weights[a] == 0) continue;
      arc_row(m, &m->in.arcs[a]);
      for (uint64_t q = 0; q <= m->places.size; q++) row[q] += m->weights[a] * m->row[q];
    }
  }
  m->risk = row_of(m, m->ahead, m->in.num_states - 1)[m->places.size];
  return WF_OK;
}

static wf_status add_share(struct mbr *m, uint64_t place, int32_t word, double posterior,
                           double start, double end, wf_error *err) {
  uint32_t at;
  bool fresh;
  if (posterior <= 0) return WF_OK;
  WF__TRY(wf__map64_insert(&m->index, place << 32 | (uint32_t)word, (uint32_t)m->shares.size, &at,
                           &fresh, "a sausage", err));
  if (fresh)
    WF__TRY(
        wf__vec_push(&m->shares, ((struct share){.word = word, .place = place}), "a sausage", err));
  struct share *share = &m->shares.data[at];
  share->posterior += posterior;
  share->start += posterior * start;
  share->end += posterior * end;
  return WF_OK;
}

/* Distributes the probability of the arc over the places, backward along its steps. */
static wf_status arc_back(struct mbr *m, const wf__in_arc *arc, const double *target, double weight,
                          wf_error *err) {
  double *source = row_of(m, m->back, arc->source);
  double start = (double)m->lattice->frames[arc->source], end = start;
  if (arc->arc != UINT64_MAX) end += (double)m->lattice->arcs[arc->arc].weight.num_labels;
  arc_row(m, arc);
  for (uint64_t q = 0; q <= m->places.size; q++) m->flow[q] = 0;
  for (uint64_t q = m->places.size; q > 0; q--) {
    m->flow[q] += weight * target[q];
    if (m->flow[q] == 0) continue;
    switch (m->steps[q]) {
      case STEP_PAIR:
        source[q - 1] += m->flow[q];
        WF__TRY(add_share(m, q - 1, arc->word, m->flow[q], start, end, err));
        break;
      case STEP_INSERT: source[q] += m->flow[q]; break;
      default:
        m->flow[q - 1] += m->flow[q];
        WF__TRY(add_share(m, q - 1, 0, m->flow[q], end, end, err));
        break;
    }
  }
  source[0] += m->flow[0] + weight * target[0];
  return WF_OK;
}

static wf_status go_back(struct mbr *m, wf_error *err) {
  uint64_t width = m->places.size + 1;
  wf__map64_clear(&m->index);
  m->shares.size = 0;
  memset(m->back, 0, m->in.num_states * width * sizeof *m->back);
  row_of(m, m->back, m->in.num_states - 1)[m->places.size] = 1;
  for (uint64_t n = m->in.num_states - 1; n > 0; n--) {
    WF__TRY(wf__interrupted(err));
    for (uint64_t a = m->in.in_off[n]; a < m->in.in_off[n + 1]; a++)
      if (m->weights[a] != 0)
        WF__TRY(arc_back(m, &m->in.arcs[a], row_of(m, m->back, n), m->weights[a], err));
  }
  double *first = row_of(m, m->back, 0);
  for (uint64_t q = m->places.size; q > 0; q--) {
    WF__TRY(add_share(m, q - 1, 0, first[q], 0, 0, err));
    first[q - 1] += first[q];
  }
  return WF_OK;
}

/* --- rounds ------------------------------------------------------------------------------ */

static void free_tables(struct mbr *m) {
  free(m->ahead);
  free(m->back);
  free(m->row);
  free(m->flow);
  free(m->steps);
  m->ahead = m->back = m->row = m->flow = NULL;
  m->steps = NULL;
}

static wf_status make_tables(struct mbr *m, wf_error *err) {
  uint64_t width = m->places.size + 1, cells = m->in.num_states * width;
  free_tables(m);
  if (cells > MAX_CELLS) {
    return wf__fail(
        err, WF_ERR_LIMIT,
        "a lattice of %llu states and %llu words is too large for minimum Bayes risk; prune it",
        (unsigned long long)m->in.num_states, (unsigned long long)(m->places.size / 2));
  }
  m->ahead = wf__alloc(cells, sizeof *m->ahead);
  m->back = wf__alloc(cells, sizeof *m->back);
  m->row = wf__alloc(width, sizeof *m->row);
  m->flow = wf__alloc(width, sizeof *m->flow);
  m->steps = wf__alloc(width, 1);
  if (m->ahead == NULL || m->back == NULL || m->row == NULL || m->flow == NULL || m->steps == NULL)
    return wf__fail_memory(err, cells * 16, "minimum Bayes risk");
  return WF_OK;
}

/* Sets R to the words, with an empty place around each. */
static wf_status set_places(struct mbr *m, const int32_t *words, uint64_t count, wf_error *err) {
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
 * one, else takes the smallest label. */
static wf_status best_words(const struct mbr *m, int32_t *words, bool *changed, wf_error *err) {
  double *most = wf__calloc(m->places.size, sizeof *most);
  if (most == NULL)
    return wf__fail_memory(err, m->places.size * sizeof *most, "minimum Bayes risk");
  for (uint64_t q = 0; q < m->places.size; q++) {
    words[q] = m->places.data[q];
    uint32_t at = wf__map64_find(&m->index, q << 32 | (uint32_t)words[q]);
    if (at != WF__MAP64_NONE) most[q] = m->shares.data[at].posterior;
  }
  *changed = false;
  for (uint64_t i = 0; i < m->shares.size; i++) {
    const struct share *share = &m->shares.data[i];
    bool better = share->posterior > most[share->place];
    bool equal = share->posterior == most[share->place] &&
                 words[share->place] != m->places.data[share->place] &&
                 share->word < words[share->place];
    if (!better && !equal) continue;
    most[share->place] = share->posterior;
    words[share->place] = share->word;
    *changed = true;
  }
  free(most);
  return WF_OK;
}

static void take_confidences(struct mbr *m) {
  for (uint64_t q = 1; q < m->places.size && m->confidences != NULL; q += 2) {
    const uint32_t at = wf__map64_find(&m->index, q << 32 | (uint32_t)m->places.data[q]);
    const double posterior = at != WF__MAP64_NONE ? m->shares.data[at].posterior : 0;
    m->confidences[q / 2] = posterior < 1 ? (float)posterior : 1;
  }
  m->confidences = NULL;
}

/* Repeats rounds until no word changes. */
static wf_status run_rounds(struct mbr *m, bool decode, int32_t *rounds, wf_error *err) {
  WF__VEC(int32_t) words = {0};
  wf_status status = WF_OK;
  for (*rounds = 1;; ++*rounds) {
    uint64_t kept = 0;
    bool changed = false;
    WF__TRY_GOTO(status, make_tables(m, err), done);
    WF__TRY_GOTO(status, go_ahead(m, err), done);
    WF__TRY_GOTO(status, go_back(m, err), done);
    take_confidences(m);
    if (!decode || *rounds == MAX_ROUNDS) break;
    WF__TRY_GOTO(status, wf__vec_grow(&words, m->places.size, "a word sequence", err), done);
    WF__TRY_GOTO(status, best_words(m, words.data, &changed, err), done);
    if (!changed) break;
    for (uint64_t q = 0; q < m->places.size; q++)
      if (words.data[q] != 0) words.data[kept++] = words.data[q];
    WF__TRY_GOTO(status, set_places(m, words.data, kept, err), done);
  }
done:
  wf__vec_free(&words);
  return status;
}

/* --- results ----------------------------------------------------------------------------- */

static int compare_shares(const void *left, const void *right) {
  const struct share *a = left, *b = right;
  if (a->place != b->place) return a->place < b->place ? -1 : 1;
  if (a->posterior != b->posterior) return a->posterior > b->posterior ? -1 : 1;
  return a->word < b->word ? -1 : a->word > b->word;
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

static wf_status make_result(struct mbr *m, int32_t rounds, bool timed, wf_mbr_result **out,
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
  if (m->shares.size > 0)
    qsort(m->shares.data, m->shares.size, sizeof *m->shares.data, compare_shares);
  for (uint64_t q = 0; q < m->places.size; q++) {
    int32_t word = m->places.data[q];
    result->bin_off[q] = at;
    if (word != 0) { /* at least the path that contains the word is aligned to it, unless rounding
                        lost its probability */
      result->words[result->num_words] = (wf_word){word, -1, -1};
      result->confidences[result->num_words++] = 0;
    }
    for (; at < m->shares.size && m->shares.data[at].place == q; at++) {
      const struct share *share = &m->shares.data[at];
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
  if (timed) part_times(result);
  return WF_OK;
}

/* Computes sums over the lattice, the weights of the mean over the arcs into each state, and the
 * words of the best path. */
static wf_status prepare(struct mbr *m, wf_error *err) {
  WF__TRY(wf__in_arcs_make(m->lattice, &m->in, err));
  if (m->in.total == INFINITY)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the lattice has no path from its start to a final state");
  uint64_t num_arcs = m->in.in_off[m->in.num_states];
  m->weights = wf__alloc(num_arcs, sizeof *m->weights);
  uint64_t *path = wf__alloc(m->in.num_states, sizeof *path);
  wf_status status =
      m->weights != NULL && path != NULL
          ? wf__vec_grow(&m->best, m->in.num_states, "minimum Bayes risk", err)
          : wf__fail_memory(err, num_arcs * sizeof *m->weights, "minimum Bayes risk");
  if (status == WF_OK) {
    for (uint64_t n = 0; n < m->in.num_states; n++)
      for (uint64_t a = m->in.in_off[n]; a < m->in.in_off[n + 1]; a++) {
        double cost = m->in.forward[m->in.arcs[a].source] + m->in.arcs[a].cost;
        m->weights[a] =
            cost < INFINITY && m->in.backward[n] < INFINITY ? exp(m->in.forward[n] - cost) : 0;
      }
    const uint64_t count = wf__in_arcs_best_path(&m->in, path);
    for (uint64_t i = 0; i < count; i++)
      if (m->in.arcs[path[i]].word != 0) m->best.data[m->best.size++] = m->in.arcs[path[i]].word;
  }
  free(path);
  return status;
}

static void free_mbr(struct mbr *m) {
  free_tables(m);
  free(m->weights);
  wf__vec_free(&m->best);
  wf__vec_free(&m->places);
  wf__vec_free(&m->shares);
  wf__map64_free(&m->index);
  wf__in_arcs_free(&m->in);
}

/* Rounds from the words given; the result. `out` NULL: only confidences. */
static wf_status rounds_from(struct mbr *m, const int32_t *words, uint64_t num_words, bool decode,
                             wf_mbr_result **out, wf_error *err) {
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
  wf_compact_lattice_view view = wf_compact_lattice_get(lattice);
  struct mbr m = {.lattice = &view};
  wf_status status = prepare(&m, err);
  if (status == WF_OK)
    status = rounds_from(&m, words != NULL ? words : m.best.data,
                         words != NULL ? num_words : m.best.size, taken.decode, out, err);
  free_mbr(&m);
  return status;
}

wf_status wf__lattice_mbr(const wf_compact_lattice *lattice, const int32_t *words, size_t num_words,
                          float *confidences, wf_mbr_result **out, wf_error *err) {
  wf_compact_lattice_view view = wf_compact_lattice_get(lattice);
  struct mbr m = {.lattice = &view, .confidences = confidences};
  wf_status status = prepare(&m, err);
  const bool best = status == WF_OK && m.best.size == num_words &&
                    (num_words == 0 || memcmp(m.best.data, words, num_words * sizeof *words) == 0);
  if (status == WF_OK && confidences != NULL && (out == NULL || !best))
    status = rounds_from(&m, words, num_words, false, NULL, err);
  if (status == WF_OK && out != NULL)
    status = rounds_from(&m, m.best.data, m.best.size, true, out, err);
  free_mbr(&m);
  return status;
}
