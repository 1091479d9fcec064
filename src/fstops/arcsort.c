/* arcsort.c - stable sort of each state's arcs by input or output label.
 *
 * States whose arcs are sorted already are copied unchanged; in most fsts that is most states. Up
 * to INSERTION_MAX arcs are sorted by insertion, more by a radix sort of (label, position) keys.
 * With real vocabularies, two or three of its four 8-bit passes are needed. */
#include "fstops/arcsort.h"

#include <string.h>

#include "base/interrupt.h"
#include "base/option_tables.h"
#include "fst/properties.h"

enum { INSERTION_MAX = 24, RADIX = 256 };

static inline int32_t label_of(const wf_arc *arc, bool by_olabel) {
  return by_olabel ? arc->olabel : arc->ilabel;
}

bool wf__is_arcsorted(const wf_fst_view *view, bool by_olabel) {
  for (uint64_t s = 0; s < view->num_states; s++)
    for (uint64_t i = view->arc_off[s] + 1; i < view->arc_off[s + 1]; i++)
      if (label_of(&view->arcs[i - 1], by_olabel) > label_of(&view->arcs[i], by_olabel))
        return false;
  return true;
}

static void sort_short(const wf_arc *in, wf_arc *out, uint64_t count, bool by_olabel) {
  for (uint64_t i = 0; i < count; i++) {
    uint64_t at = i;
    for (; at > 0 && label_of(&out[at - 1], by_olabel) > label_of(&in[i], by_olabel); at--)
      out[at] = out[at - 1];
    out[at] = in[i];
  }
}

/* One stable radix pass over the 8 bits from `shift` on. It does nothing if all keys have the same
 * digit. Returns the array that holds the keys afterwards. */
static uint64_t *radix_pass(uint64_t *keys, uint64_t *other, uint64_t count, int shift) {
  uint64_t first[RADIX] = {0};
  for (uint64_t i = 0; i < count; i++) first[keys[i] >> shift & (RADIX - 1)]++;
  if (first[keys[0] >> shift & (RADIX - 1)] == count) return keys;
  uint64_t sum = 0;
  for (int d = 0; d < RADIX; d++) {
    uint64_t here = first[d];
    first[d] = sum;
    sum += here;
  }
  for (uint64_t i = 0; i < count; i++) other[first[keys[i] >> shift & (RADIX - 1)]++] = keys[i];
  return other;
}

static wf_status sort_long(wf__arc_sorter *sorter, const wf_arc *in, wf_arc *out, uint64_t count,
                           bool by_olabel, wf_error *err) {
  if (count > UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "a state with %llu arcs", (unsigned long long)count);
  sorter->keys.size = 0;
  WF__TRY(wf__vec_grow(&sorter->keys, 2 * count, "sort keys", err));
  uint64_t *keys = sorter->keys.data, *other = keys + count;
  for (uint64_t i = 0; i < count; i++)
    keys[i] = (uint64_t)(uint32_t)label_of(&in[i], by_olabel) << 32 | i;
  for (int shift = 32; shift < 64; shift += 8) {
    uint64_t *now = radix_pass(keys, other, count, shift);
    if (now == other) other = keys;
    keys = now;
  }
  for (uint64_t i = 0; i < count; i++) out[i] = in[(uint32_t)keys[i]];
  return WF_OK;
}

wf_status wf__arcsort_state(wf__arc_sorter *sorter, const wf_arc *in, wf_arc *out, uint64_t count,
                            bool by_olabel, wf_error *err) {
  if (count == 0) return WF_OK;
  uint64_t i = 1;
  while (i < count && label_of(&in[i - 1], by_olabel) <= label_of(&in[i], by_olabel)) i++;
  if (i >= count)
    memcpy(out, in, count * sizeof *out);
  else if (count <= INSERTION_MAX)
    sort_short(in, out, count, by_olabel);
  else
    return sort_long(sorter, in, out, count, by_olabel, err);
  return WF_OK;
}

wf_status wf__arcsort(const wf_fst *fst, bool by_olabel, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  if (wf__fst_known_sorted(fst, by_olabel) || wf__is_arcsorted(&view, by_olabel)) {
    (void)wf__fst_local_properties(fst); /* so that it is known the next time */
    *out = wf_fst_ref(fst);
    return WF_OK;
  }
  wf__csr csr = {0};
  wf__arc_sorter sorter = {.keys = {0}};
  wf_status status;
  WF__TRY_GOTO(status, wf__csr_copy_states(&csr, &view, err), done);
  WF__TRY_GOTO(status, wf__vec_grow(&csr.arcs, view.num_arcs, "arcs", err), done);
  for (uint64_t s = 0; s < view.num_states; s++) {
    uint64_t begin = view.arc_off[s];
    WF__TRY_GOTO(status, wf__interrupted_at(s, err), done);
    WF__TRY_GOTO(status,
                 wf__arcsort_state(&sorter, view.arcs + begin, csr.arcs.data + begin,
                                   view.arc_off[s + 1] - begin, by_olabel, err),
                 done);
  }
  csr.arcs.size = view.num_arcs;
  status = wf__fst_like(&csr, view.start, fst, out, err);
  if (status == WF_OK) wf__fst_copy_boundaries(*out, fst);
done:
  wf__csr_free(&csr);
  wf__vec_free(&sorter.keys);
  return status;
}

static int compare_keys(const void *x, const void *y) {
  uint64_t p = *(const uint64_t *)x, q = *(const uint64_t *)y;
  return p < q ? -1 : p > q;
}

wf_status wf__arcsort_places(const wf_fst *fst, bool by_olabel, uint32_t **out_places,
                             wf_error *err) {
  wf_fst_view view = wf_fst_get_view(fst);
  *out_places = NULL;
  if (view.num_arcs >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "%llu arcs; sorting with places allows at most 2^32 - 2",
                    (unsigned long long)view.num_arcs);
  uint64_t *keys = wf__alloc(view.num_arcs, sizeof *keys);
  uint32_t *places = wf__alloc(view.num_arcs, sizeof *places);
  if (keys == NULL || places == NULL) {
    free(keys);
    free(places);
    return wf__fail_memory(err, view.num_arcs * 12, "places of arcs");
  }
  for (uint64_t i = 0; i < view.num_arcs; i++)
    keys[i] = (uint64_t)(uint32_t)label_of(&view.arcs[i], by_olabel) << 32 | i;
  for (uint64_t s = 0; s < view.num_states; s++)
    qsort(keys + view.arc_off[s], view.arc_off[s + 1] - view.arc_off[s], sizeof *keys,
          compare_keys);
  for (uint64_t i = 0; i < view.num_arcs; i++) places[i] = (uint32_t)keys[i];
  free(keys);
  *out_places = places;
  return WF_OK;
}

wf_status wf_arcsort(const wf_fst *fst, const wf_arcsort_options *options, wf_fst **out,
                     wf_error *err) {
  *out = NULL;
  wf_arcsort_options o;
  WF__TRY(wf__options_take(wf__arcsort_table(), options, &o, err));
  return wf__arcsort(fst, o.sort_type == WF_SORT_OLABEL, out, err);
}
