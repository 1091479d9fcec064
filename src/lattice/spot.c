/* spot.c - finds listed words in a compact lattice: keyword spotting. */
#include <math.h>

#include "base/interrupt.h"
#include "base/option_tables.h"
#include "lattice/in_arcs.h"

/* Frames are compared with this tolerance, so that rounding does not decide which of two equally
 * probable frames is the peak. */
#define TIE 1e-9

/* All arcs of one word over the same frames. */
struct occurrence {
  int32_t word, start, end;
  double posterior; /* 0: part of a hit */
};

struct spotter {
  const wf_compact_lattice_view *lattice;
  WF__VEC(int32_t) words; /* sorted */
  WF__VEC(struct occurrence) found;
  WF__VEC(wf_spot_hit) hits;
  double threshold;
};

static int compare_words(const void *left, const void *right) {
  const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
  return (a > b) - (a < b);
}

static int compare_occurrences(const void *left, const void *right) {
  const struct occurrence *a = left, *b = right;
  if (a->word != b->word) return a->word < b->word ? -1 : 1;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  if (a->end != b->end) return a->end < b->end ? -1 : 1;
  return (a->posterior > b->posterior) - (a->posterior < b->posterior);
}

static int compare_hits(const void *left, const void *right) {
  const wf_spot_hit *a = left, *b = right;
  if (a->start_frame != b->start_frame) return a->start_frame < b->start_frame ? -1 : 1;
  if (a->label != b->label) return a->label < b->label ? -1 : 1;
  if (a->probability != b->probability) return a->probability > b->probability ? -1 : 1;
  return (a->end_frame > b->end_frame) - (a->end_frame < b->end_frame);
}

static wf_status take_words(struct spotter *s, const int32_t *words, size_t count, wf_error *err) {
  WF__TRY(wf__vec_grow(&s->words, count, "a word list", err));
  for (size_t i = 0; i < count; i++) {
    if (words[i] <= 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "word %zu is %d, which is not a word label", i,
                      words[i]);
    s->words.data[s->words.size++] = words[i];
  }
  if (count > 0) qsort(s->words.data, count, sizeof *s->words.data, compare_words);
  return WF_OK;
}

/* Collects the occurrences of the words, sorted by word, start and end. */
static wf_status find_occurrences(struct spotter *s, const wf__in_arcs *in, wf_error *err) {
  const wf_compact_lattice_view *lattice = s->lattice;
  for (uint64_t n = 0; n < in->num_states; n++)
    for (uint64_t a = in->in_off[n]; a < in->in_off[n + 1]; a++) {
      const wf__in_arc *arc = &in->arcs[a];
      if (arc->word == 0 || bsearch(&arc->word, s->words.data, s->words.size, sizeof *s->words.data,
                                    compare_words) == NULL)
        continue;
      const double posterior = wf__in_arcs_posterior(in, arc, n);
      if (posterior == 0) continue;
      const int32_t start = lattice->frames[arc->source],
                    length = (int32_t)lattice->arcs[arc->arc].weight.num_labels,
                    end = start + (length > 0 ? length : start < INT32_MAX);
      if (start < 0)
        return wf__fail(err, WF_ERR_ARGUMENT,
                        "paths of the lattice to word %d differ in their number of frames",
                        arc->word);
      WF__TRY(wf__vec_push(&s->found, ((struct occurrence){arc->word, start, end, posterior}),
                           "occurrences of words", err));
    }
  if (s->found.size == 0) return WF_OK;
  qsort(s->found.data, s->found.size, sizeof *s->found.data, compare_occurrences);
  size_t kept = 0;
  for (size_t i = 1; i < s->found.size; i++) {
    const struct occurrence *next = &s->found.data[i];
    struct occurrence *last = &s->found.data[kept];
    if (last->word == next->word && last->start == next->start && last->end == next->end)
      last->posterior += next->posterior;
    else
      s->found.data[++kept] = *next;
  }
  s->found.size = kept + 1;
  return WF_OK;
}

/* Makes the hits of occurrences of one word that overlap in a chain. */
static wf_status spot_chain(struct spotter *s, struct occurrence *chain, size_t count,
                            wf_error *err) {
  for (;;) {
    int32_t peak = 0;
    double most = 0;
    for (size_t i = 0; i < count; i++) { /* a sum of frames grows only where an occurrence starts */
      double sum = 0;
      if (chain[i].posterior == 0 ||
          (i > 0 && chain[i - 1].start == chain[i].start && chain[i - 1].posterior > 0))
        continue;
      WF__TRY(wf__interrupted(err));
      for (size_t k = 0; k < count && chain[k].start <= chain[i].start; k++)
        if (chain[k].end > chain[i].start) sum += chain[k].posterior;
      if (sum <= most + TIE && most > 0) continue;
      most = sum;
      peak = chain[i].start;
    }
    if (most == 0 || most < s->threshold) return WF_OK;
    double start = 0, end = 0;
    for (size_t k = 0; k < count && chain[k].start <= peak; k++) {
      if (chain[k].end <= peak) continue;
      start += chain[k].posterior * chain[k].start;
      end += chain[k].posterior * chain[k].end;
      chain[k].posterior = 0;
    }
    const wf_spot_hit hit = {chain[0].word, (int32_t)lround(start / most),
                             (int32_t)lround(end / most), most < 1 ? most : 1};
    WF__TRY(wf__vec_push(&s->hits, hit, "hits", err));
  }
}

static wf_status spot(struct spotter *s, wf_error *err) {
  wf__in_arcs in = {0};
  WF__TRY(wf__in_arcs_make(s->lattice, 1, &in, err));
  wf__in_arcs_sum_backward(&in);
  wf_status status = find_occurrences(s, &in, err);
  wf__in_arcs_free(&in);
  for (size_t first = 0, next; first < s->found.size && status == WF_OK; first = next) {
    const struct occurrence *found = s->found.data;
    int32_t end = found[first].end;
    for (next = first + 1;
         next < s->found.size && found[next].word == found[first].word && found[next].start < end;
         next++)
      if (found[next].end > end) end = found[next].end;
    status = spot_chain(s, &s->found.data[first], next - first, err);
  }
  return status;
}

wf_status wf_compact_lattice_spot(const wf_compact_lattice *lattice, const int32_t *words,
                                  size_t num_words, const wf_spot_options *options,
                                  wf_spot_hit **out_hits, size_t *out_count, wf_error *err) {
  *out_hits = NULL;
  *out_count = 0;
  wf_spot_options taken;
  WF__TRY(wf__options_take(wf__spot_table(), options, &taken, err));
  wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  struct spotter s = {.lattice = &view, .threshold = (double)taken.threshold};
  wf_status status = take_words(&s, words, num_words, err);
  if (status == WF_OK && num_words > 0) status = spot(&s, err);
  if (status == WF_OK && s.hits.size > 0) {
    qsort(s.hits.data, s.hits.size, sizeof *s.hits.data, compare_hits);
    *out_hits = s.hits.data;
    *out_count = s.hits.size;
  } else {
    wf__vec_free(&s.hits);
  }
  wf__vec_free(&s.words);
  wf__vec_free(&s.found);
  return status;
}
