/* sphinx_files.h - the files of a CMU Sphinx acoustic model that decoding graphs need.
 *
 *   mdef                  transition matrix and tied states (senones) of each phone and triphone;
 *                         text ("0.3") or binary ("BMDF")
 *   transition_matrices   unnormalised counts, [matrix][state][state or exit]
 *   noisedict             words for silence and noises, one phone each */
#ifndef WF_GRAPH_SPHINX_FILES_H
#define WF_GRAPH_SPHINX_FILES_H

#include "base/input.h"
#include "base/memory.h"

/* Positions in a word, in Sphinx's order. WF__MDEF_CI: a context-independent phone. */
enum {
  WF__MDEF_INTERNAL,
  WF__MDEF_BEGIN,
  WF__MDEF_END,
  WF__MDEF_SINGLE,
  WF__MDEF_NUM_POSITIONS,
  WF__MDEF_CI = WF__MDEF_NUM_POSITIONS
};

typedef struct wf__mdef_phone {
  int32_t base, left,
      right; /* indices of context-independent phones; left and right are -1 without a context */
  int32_t position;
  int32_t tmat;
  int32_t sequence; /* index of the senone sequence */
  bool filler;
} wf__mdef_phone;

typedef struct wf__mdef {
  int32_t num_ci;     /* context-independent phones: the first of `phones` */
  int32_t num_states; /* emitting states of each phone */
  int32_t num_senones, num_tmats;
  WF__VEC(const char *) names; /* of the context-independent phones */
  WF__VEC(wf__mdef_phone) phones;
  WF__VEC(int32_t) senones; /* [sequences][num_states] */
  wf__arena texts;
} wf__mdef;

/* Checks everything: counts against the bytes left, indices against their ranges. */
wf_status wf__mdef_read(const wf__input *input, wf__mdef *out, wf_error *err);
void wf__mdef_free(wf__mdef *mdef);
/* Index of a context-independent phone, or -1. */
int32_t wf__mdef_find(const wf__mdef *mdef, wf__span name);
static inline const int32_t *wf__mdef_senones(const wf__mdef *mdef, int32_t sequence) {
  return mdef->senones.data + (int64_t)sequence * mdef->num_states;
}

/* Transition probabilities with normalised rows. Index: (matrix * num_states + from) * (num_states
 * + 1) + to. `to` == num_states is the exit. */
typedef struct wf__tmats {
  int32_t num_tmats, num_states;
  double *p;
} wf__tmats;
/* Errors: a wrong checksum, a transition that goes back, a row without counts or with negative
 * ones. */
wf_status wf__tmats_read(const wf__input *input, wf__tmats *out, wf_error *err);
void wf__tmats_free(wf__tmats *tmats);

/* noisedict: the phone of <sil> (-1 if there is none), and the phones of all other words except <s>
 * and </s>. */
typedef struct wf__noisedict {
  int32_t silence;
  WF__VEC(int32_t) fillers;
} wf__noisedict;
wf_status wf__noisedict_read(const wf__input *input, const wf__mdef *mdef, wf__noisedict *out,
                             wf_error *err);

#endif
