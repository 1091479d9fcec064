/* compact_lattice.c - making, sharing and freeing compact lattices. */
#include "lattice/compact_lattice.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>

#include "base/interrupt.h"

enum { FRAMES_UNKNOWN = -2, FRAMES_DIFFER = -1 };

struct wf_compact_lattice {
  atomic_size_t refs;
  wf__compact_arrays arrays;
  WF__VEC(int32_t) frames;
};

wf_status wf__compact_add_state(wf__compact_arrays *arrays, wf_compact_weight final,
                                wf_error *err) {
  WF__TRY(wf__interrupted_at(arrays->arc_off.size, err));
  WF__TRY(wf__vec_grow(&arrays->arc_off, 2, "lattice states", err)); /* one more for the end */
  WF__TRY(wf__vec_grow(&arrays->finals, 1, "lattice states", err));
  arrays->arc_off.data[arrays->arc_off.size++] = arrays->arcs.size;
  arrays->finals.data[arrays->finals.size++] = final;
  return WF_OK;
}

void wf__compact_arrays_free(wf__compact_arrays *arrays) {
  wf__vec_free(&arrays->arc_off);
  wf__vec_free(&arrays->arcs);
  wf__vec_free(&arrays->finals);
  wf__vec_free(&arrays->labels);
}

static wf_status check_weight(const wf__compact_arrays *arrays, const wf_compact_weight *weight,
                              uint64_t state, wf_error *err) {
  if (weight->first_label <= arrays->labels.size &&
      weight->num_labels <= arrays->labels.size - weight->first_label)
    return WF_OK;
  return wf__fail(err, WF_ERR_FORMAT,
                  "compact lattice: state %" PRIu64 ": alignment of %" PRIu32
                  " labels lies outside of the lattice's %zu",
                  state, weight->num_labels, (size_t)arrays->labels.size);
}

wf_status wf__compact_find_frames(const wf__compact_arrays *a, int32_t *frames, wf_error *err) {
  uint64_t num_states = a->arc_off.size;
  for (uint64_t s = 0; s < num_states; s++) frames[s] = s == 0 ? 0 : FRAMES_UNKNOWN;
  for (uint64_t s = 0; s < num_states; s++) {
    if (frames[s] == FRAMES_UNKNOWN) frames[s] = FRAMES_DIFFER; /* no arc leads here */
    uint64_t end = s + 1 < num_states ? a->arc_off.data[s + 1] : a->arcs.size;
    for (uint64_t i = a->arc_off.data[s]; i < end; i++) {
      const wf_compact_arc *arc = &a->arcs.data[i];
      if (arc->nextstate < 0 || (uint64_t)arc->nextstate <= s ||
          (uint64_t)arc->nextstate >= num_states) {
        return wf__fail(err, WF_ERR_FORMAT,
                        "compact lattice: an arc of state %" PRIu64 " leads to %" PRId32
                        ", not to a later state of %" PRIu64,
                        s, arc->nextstate, num_states);
      }
      int64_t there = frames[s] < 0 ? FRAMES_DIFFER : (int64_t)frames[s] + arc->weight.num_labels;
      int32_t *next = &frames[arc->nextstate];
      if (there > INT32_MAX)
        return wf__fail(err, WF_ERR_LIMIT, "compact lattice: a path has more than %d frames",
                        INT32_MAX);
      *next = *next == FRAMES_UNKNOWN || *next == there ? (int32_t)there : FRAMES_DIFFER;
    }
  }
  return WF_OK;
}

static wf_status check_labels(const wf__compact_arrays *a, wf_error *err) {
  for (uint64_t s = 0, i = 0; s < a->arc_off.size; s++) {
    if (a->finals.data[s].graph_cost < INFINITY)
      WF__TRY(check_weight(a, &a->finals.data[s], s, err));
    for (const uint64_t end = s + 1 < a->arc_off.size ? a->arc_off.data[s + 1] : a->arcs.size;
         i < end; i++)
      WF__TRY(check_weight(a, &a->arcs.data[i].weight, s, err));
  }
  return WF_OK;
}

wf_status wf__compact_finish(wf_status status, wf__compact_arrays *arrays, wf_compact_lattice **out,
                             wf_error *err) {
  *out = NULL;
  wf_compact_lattice *lattice = status == WF_OK ? wf__calloc(1, sizeof *lattice) : NULL;
  if (lattice == NULL) {
    wf__compact_arrays_free(arrays);
    return status != WF_OK ? status : wf__fail_memory(err, sizeof *lattice, "a lattice");
  }
  atomic_init(&lattice->refs, 1);
  lattice->arrays = *arrays;
  *arrays = (wf__compact_arrays){0};
  status = wf__vec_grow(&lattice->arrays.arc_off, 1, "lattice states", err);
  if (status == WF_OK) {
    lattice->arrays.arc_off.data[lattice->arrays.arc_off.size] =
        lattice->arrays.arcs.size; /* not counted: arc_off.size is the number of states */
    status = wf__vec_grow(&lattice->frames, lattice->arrays.arc_off.size, "lattice states", err);
  }
  if (status == WF_OK)
    status = wf__compact_find_frames(&lattice->arrays, lattice->frames.data, err);
  if (status == WF_OK) status = check_labels(&lattice->arrays, err);
  if (status != WF_OK) {
    wf_compact_lattice_free(lattice);
    return status;
  }
  *out = lattice;
  return WF_OK;
}

wf_status wf__compact_finish_with(wf_status status, wf__compact_arrays *arrays,
                                  wf__label_vec *labels, wf_compact_lattice **out, wf_error *err) {
  if (status == WF_OK) {
    arrays->labels = *labels;
    *labels = (wf__label_vec){0};
  }
  return wf__compact_finish(status, arrays, out, err);
}

wf_compact_lattice_view wf_compact_lattice_get_view(const wf_compact_lattice *lattice) {
  const wf__compact_arrays *a = &lattice->arrays;
  return (wf_compact_lattice_view){.num_states = a->arc_off.size,
                                   .num_arcs = a->arcs.size,
                                   .num_labels = a->labels.size,
                                   .arc_off = a->arc_off.data,
                                   .arcs = a->arcs.data,
                                   .finals = a->finals.data,
                                   .labels = a->labels.data,
                                   .frames = lattice->frames.data};
}

wf_compact_lattice *wf_compact_lattice_ref(const wf_compact_lattice *lattice) {
  wf_compact_lattice *mutable_lattice = (wf_compact_lattice *)(uintptr_t)lattice;
  atomic_fetch_add_explicit(&mutable_lattice->refs, 1, memory_order_relaxed);
  return mutable_lattice;
}

void wf_compact_lattice_free(wf_compact_lattice *lattice) {
  if (lattice == NULL || atomic_fetch_sub_explicit(&lattice->refs, 1, memory_order_acq_rel) != 1)
    return;
  wf__compact_arrays_free(&lattice->arrays);
  wf__vec_free(&lattice->frames);
  free(lattice);
}
