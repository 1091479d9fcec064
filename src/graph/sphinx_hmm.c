/* sphinx_hmm.c - CMU Sphinx acoustic models as wf_hmm.
 *
 * The phones of lexicons are the model's context-independent phones. The phones of windows are
 * these phones with a position in the word (AH_b, AH_i, AH_e, AH_s). Fillers (SIL, +NSN+) have no
 * position and no context, and count as silence in the context of other phones. A model without
 * triphones has no positions and windows of one phone.
 *
 * Labels are senone + 1. Usually a senone is shared only among states with the same transition
 * matrix, and so has one self-loop. If a senone has several different self-loops, each further one
 * gets a label above num_senones, so that costs stay exact. */
#include <stdio.h>
#include <string.h>

#include "base/map64.h"
#include "base/platform.h"
#include "graph/hmm.h"
#include "graph/sphinx_files.h"
#include "graph/sphinx_hmm.h"

struct sphinx {
  wf__mdef mdef;
  wf__tmats tmats;
  int32_t silence;     /* context-independent phone; -1: none */
  int32_t *base_of;    /* [num_phones + 1] phones of windows: context-independent phone */
  int32_t *position;   /* [num_phones + 1] phones of windows: position */
  wf__map64 triphones; /* position, base, left, right -> index in mdef.phones */
  wf__map64 labels;    /* senone << 32 | bits of the self-loop's cost -> label */
  wf__map64 types;     /* tmat << 32 | sequence -> type */
};

static void free_sphinx(void *model) {
  struct sphinx *sphinx = model;
  wf__mdef_free(&sphinx->mdef);
  wf__tmats_free(&sphinx->tmats);
  free(sphinx->base_of);
  free(sphinx->position);
  wf__map64_free(&sphinx->triphones);
  wf__map64_free(&sphinx->labels);
  wf__map64_free(&sphinx->types);
  free(sphinx);
}

/* --- labels ------------------------------------------------------------------------------ */

static const double *row_of(const struct sphinx *sphinx, int32_t tmat, int32_t state) {
  return sphinx->tmats.p + ((uint64_t)tmat * (uint64_t)sphinx->tmats.num_states + (uint64_t)state) *
                               (uint64_t)(sphinx->tmats.num_states + 1);
}

static float cost_of(double p) { return p < 1 ? (float)-log(p) : 0; } /* 0, not -0 */

static uint64_t label_key(const struct sphinx *sphinx, int32_t senone, int32_t tmat,
                          int32_t state) {
  float cost = cost_of(row_of(sphinx, tmat, state)[state]); /* infinity without a self-loop */
  uint32_t bits;
  memcpy(&bits, &cost, sizeof bits);
  return (uint64_t)senone << 32 | bits;
}

static wf_status add_label(wf_hmm *hmm, struct sphinx *sphinx, int32_t senone, int32_t tmat,
                           int32_t state, wf_error *err) {
  uint64_t key = label_key(sphinx, senone, tmat, state);
  if (wf__map64_find(&sphinx->labels, key) != WF__MAP64_NONE) return WF_OK;
  int32_t label = senone + 1;
  uint32_t stands;
  if (hmm->labels.data[label].column >= 0) { /* has another self-loop already */
    label = (int32_t)hmm->labels.size;
    if (label > INT32_MAX / 4)
      return wf__fail(err, WF_ERR_LIMIT, "%s: more than 2^29 labels", hmm->name);
    WF__TRY(wf__vec_push(&hmm->labels, (wf__hmm_label){0}, "labels", err));
  }
  double loop = row_of(sphinx, tmat, state)[state];
  hmm->labels.data[label] = (wf__hmm_label){
      senone, loop > 0 ? label : 0, loop > 0 ? cost_of(loop) : 0, loop > 0 ? cost_of(1 - loop) : 0};
  return wf__map64_insert(&sphinx->labels, key, (uint32_t)label, &stands, NULL, "labels", err);
}

static wf_status make_labels(wf_hmm *hmm, struct sphinx *sphinx, wf_error *err) {
  const wf__mdef *mdef = &sphinx->mdef;
  hmm->num_columns = mdef->num_senones;
  for (int32_t s = 0; s < mdef->num_senones; s++)
    WF__TRY(wf__vec_push(&hmm->labels, ((wf__hmm_label){.column = -1}), "labels", err));
  for (uint64_t i = 0; i < mdef->phones.size; i++) {
    const wf__mdef_phone *phone = &mdef->phones.data[i];
    const int32_t *senones = wf__mdef_senones(mdef, phone->sequence);
    for (int32_t s = 0; s < mdef->num_states; s++)
      WF__TRY(add_label(hmm, sphinx, senones[s], phone->tmat, s, err));
  }
  for (uint64_t l = 1; l < hmm->labels.size; l++)
    if (hmm->labels.data[l].column < 0)
      hmm->labels.data[l].column = (int32_t)l - 1; /* a senone that no phone uses */
  return WF_OK;
}

/* Finds the phone and state of each senone. If phones share senones, these are not known and
 * hmm->places stays empty. */
static wf_status make_places(wf_hmm *hmm, const struct sphinx *sphinx, wf_error *err) {
  const wf__mdef *mdef = &sphinx->mdef;
  /* [num_senones] */
  wf__hmm_place *places = wf__calloc((uint64_t)mdef->num_senones, sizeof *places);
  if (places == NULL)
    return wf__fail_memory(err, (uint64_t)mdef->num_senones * sizeof *places, "places of labels");
  bool shared = false;
  for (uint64_t i = 0; i < mdef->phones.size; i++) {
    const wf__mdef_phone *phone = &mdef->phones.data[i];
    const int32_t *senones = wf__mdef_senones(mdef, phone->sequence);
    int32_t base = i < (uint64_t)mdef->num_ci ? (int32_t)i : phone->base;
    for (int32_t s = 0; s < mdef->num_states; s++) {
      wf__hmm_place place = {
          .phone = hmm->position_of != NULL ? hmm->position_of[base + 1][0] : base + 1,
          .first = s == 0,
          .last = s + 1 == mdef->num_states};
      wf__hmm_place *taken = &places[senones[s]];
      shared = shared ||
               (taken->phone != 0 && (taken->phone != place.phone || taken->first != place.first ||
                                      taken->last != place.last));
      *taken = place;
    }
  }
  wf_status status =
      shared ? WF_OK : wf__vec_grow(&hmm->places, hmm->labels.size, "places of labels", err);
  if (status == WF_OK && !shared) {
    hmm->places.size = hmm->labels.size;
    hmm->places.data[0] = (wf__hmm_place){0};
    for (uint64_t l = 1; l < hmm->labels.size; l++)
      hmm->places.data[l] = places[hmm->labels.data[l].column];
    hmm->loops_repeat = true;
  }
  free(places);
  return status;
}

/* --- phones ------------------------------------------------------------------------------ */

static const char g_letters[] = "ibes"; /* by WF__MDEF_ position */

static wf_status make_lexicon_phones(wf_hmm *hmm, const struct sphinx *sphinx, wf_error *err) {
  WF__TRY(wf_symbols_create(hmm->name, &hmm->lexicon_phones, err));
  WF__TRY(wf_symbols_add(hmm->lexicon_phones, "<eps>", 0, NULL, err));
  for (int32_t i = 0; i < sphinx->mdef.num_ci; i++) {
    int64_t key;
    WF__TRY(wf_symbols_add(hmm->lexicon_phones, sphinx->mdef.names.data[i], -1, &key, err));
    if (key != i + 1)
      return wf__fail(err, WF_ERR_FORMAT, "%s: '%s' cannot be a phone", hmm->name,
                      sphinx->mdef.names.data[i]);
  }
  return WF_OK;
}

static wf_status add_phone(struct sphinx *sphinx, wf_symbols *phones, int32_t base,
                           int32_t position, int32_t *out, wf_error *err) {
  char text[256];
  int64_t key, expected = wf_symbols_next_key(phones);
  const char *name = sphinx->mdef.names.data[base];
  if (position == WF__MDEF_CI)
    snprintf(text, sizeof text, "%s", name);
  else
    snprintf(text, sizeof text, "%s_%c", name, g_letters[position]);
  if (strlen(name) + 3 > sizeof text)
    return wf__fail(err, WF_ERR_LIMIT, "phone '%.80s...' has a name of %zu bytes", name,
                    strlen(name));
  WF__TRY(wf_symbols_add(phones, text, -1, &key, err));
  if (key != expected)
    return wf__fail(err, WF_ERR_FORMAT,
                    "phone '%s' with its position is '%s', which is also a phone", name, text);
  sphinx->base_of[key] = base;
  sphinx->position[key] = position;
  *out = (int32_t)key;
  return WF_OK;
}

/* Adds the phones of windows: one for each position of a context-independent phone, or one for a
 * filler. */
static wf_status fill_phones(wf_hmm *hmm, struct sphinx *sphinx, wf_symbols *phones,
                             wf_error *err) {
  static const int position_for[WF__NUM_POSITIONS] = {[WF__BEGIN] = WF__MDEF_BEGIN,
                                                      [WF__INTERNAL] = WF__MDEF_INTERNAL,
                                                      [WF__END] = WF__MDEF_END,
                                                      [WF__SINGLE] = WF__MDEF_SINGLE};
  WF__TRY(wf_symbols_add(phones, "<eps>", 0, NULL, err));
  for (int32_t i = 0; i < sphinx->mdef.num_ci; i++) {
    int32_t *row = hmm->position_of[i + 1];
    bool filler = sphinx->mdef.phones.data[i].filler || i == sphinx->silence;
    for (int at = 0; at < WF__NUM_POSITIONS; at++) {
      if (filler && at > 0)
        row[at] = row[0];
      else
        WF__TRY(
            add_phone(sphinx, phones, i, filler ? WF__MDEF_CI : position_for[at], &row[at], err));
    }
  }
  return WF_OK;
}

static wf_status make_phones(wf_hmm *hmm, struct sphinx *sphinx, wf_error *err) {
  uint64_t num_ci = (uint64_t)sphinx->mdef.num_ci, most = num_ci * WF__NUM_POSITIONS + 1;
  WF__TRY(make_lexicon_phones(hmm, sphinx, err));
  hmm->position_of = wf__calloc(num_ci + 1, sizeof *hmm->position_of);
  sphinx->base_of = wf__calloc(most, sizeof *sphinx->base_of);
  sphinx->position = wf__calloc(most, sizeof *sphinx->position);
  if (hmm->position_of == NULL || sphinx->base_of == NULL || sphinx->position == NULL)
    return wf__fail_memory(err, most * 8, "phones");
  wf_symbols *phones;
  WF__TRY(wf_symbols_create(hmm->name, &phones, err));
  wf_status status = fill_phones(hmm, sphinx, phones, err);
  if (status == WF_OK)
    status = wf__hmm_set_phones(hmm, phones, (int32_t)wf_symbols_next_key(phones) - 1, err);
  wf_symbols_free(phones);
  WF__TRY(status);
  for (int32_t p = 1; p <= hmm->num_phones; p++) {
    hmm->context_free[p] = sphinx->position[p] == WF__MDEF_CI;
    hmm->context_of[p] =
        hmm->position_of[(hmm->context_free[p] && sphinx->silence >= 0 ? sphinx->silence
                                                                       : sphinx->base_of[p]) +
                         1][0];
  }
  return WF_OK;
}

/* For models without triphones: phones have no positions. */
static wf_status make_plain_phones(wf_hmm *hmm, struct sphinx *sphinx, wf_error *err) {
  uint64_t count = (uint64_t)sphinx->mdef.num_ci + 1;
  WF__TRY(make_lexicon_phones(hmm, sphinx, err));
  sphinx->base_of = wf__calloc(count, sizeof *sphinx->base_of);
  sphinx->position = wf__calloc(count, sizeof *sphinx->position);
  if (sphinx->base_of == NULL || sphinx->position == NULL)
    return wf__fail_memory(err, count * 8, "phones");
  for (uint64_t p = 1; p < count; p++) {
    sphinx->base_of[p] = (int32_t)p - 1;
    sphinx->position[p] = WF__MDEF_CI;
  }
  return wf__hmm_set_phones(hmm, hmm->lexicon_phones, sphinx->mdef.num_ci, err);
}

/* --- types ------------------------------------------------------------------------------- */

static uint64_t triphone_key(int32_t position, int32_t base, int32_t left, int32_t right) {
  return (uint64_t)position << 48 | (uint64_t)base << 32 | (uint64_t)left << 16 | (uint64_t)right;
}

static wf_status index_triphones(struct sphinx *sphinx, const char *name, wf_error *err) {
  const wf__mdef *mdef = &sphinx->mdef;
  for (uint64_t i = (uint64_t)mdef->num_ci; i < mdef->phones.size; i++) {
    const wf__mdef_phone *phone = &mdef->phones.data[i];
    uint32_t stands;
    bool fresh;
    WF__TRY(wf__map64_insert(&sphinx->triphones,
                             triphone_key(phone->position, phone->base, phone->left, phone->right),
                             (uint32_t)i, &stands, &fresh, "triphones", err));
    if (!fresh)
      return wf__fail(err, WF_ERR_FORMAT, "%s: the triphone '%s %s %s %c' is given twice", name,
                      mdef->names.data[phone->base], mdef->names.data[phone->left],
                      mdef->names.data[phone->right], g_letters[phone->position]);
  }
  return WF_OK;
}

/* Finds a triphone in the given position or, failing that, in any other. WF__MAP64_NONE if there is
 * none. */
static uint32_t in_any_position(const struct sphinx *sphinx, int32_t position, int32_t base,
                                int32_t left, int32_t right) {
  uint32_t found = wf__map64_find(&sphinx->triphones, triphone_key(position, base, left, right));
  for (int32_t other = 0; other < WF__MDEF_NUM_POSITIONS && found == WF__MAP64_NONE; other++)
    found = wf__map64_find(&sphinx->triphones, triphone_key(other, base, left, right));
  return found;
}

/* Chooses a triphone by PocketSphinx's rule. It tries in turn: the triphone itself; the triphone in
 * another position (in the order i, b, e, s); the same two with silence for the neighbours outside
 * the word; the context-independent phone. *out_own is true if the triphone itself exists. */
static int32_t nearest(const struct sphinx *sphinx, int32_t position, int32_t base, int32_t left,
                       int32_t right, bool *out_own) {
  uint32_t found = wf__map64_find(&sphinx->triphones, triphone_key(position, base, left, right));
  *out_own = found != WF__MAP64_NONE;
  if (!*out_own) found = in_any_position(sphinx, position, base, left, right);
  if (found == WF__MAP64_NONE && sphinx->silence >= 0) {
    if (position == WF__MDEF_BEGIN || position == WF__MDEF_SINGLE) left = sphinx->silence;
    if (position == WF__MDEF_END || position == WF__MDEF_SINGLE) right = sphinx->silence;
    found = in_any_position(sphinx, position, base, left, right);
  }
  return found != WF__MAP64_NONE ? (int32_t)found : base;
}

/* Makes start --s0--> 1 --s1--> 2 ..., with the skips and exits of the transition matrix. */
static wf_status fill_type(const struct sphinx *sphinx, const wf__mdef_phone *phone, wf__csr *type,
                           wf_error *err) {
  const int32_t *senones = wf__mdef_senones(&sphinx->mdef, phone->sequence);
  int32_t num_states = sphinx->mdef.num_states;
  WF__TRY(wf__csr_add_state(type, INFINITY, err));
  for (int32_t from = -1; from < num_states; from++) {
    const double *row = from >= 0 ? row_of(sphinx, phone->tmat, from) : NULL;
    double leaves = from >= 0 ? 1 - row[from] : 1;
    if (from >= 0)
      WF__TRY(wf__csr_add_state(
          type, row[num_states] > 0 ? cost_of(row[num_states] / leaves) : INFINITY, err));
    for (int32_t to = from + 1; to < num_states; to++) {
      double p = from >= 0 ? row[to] / leaves : to == 0;
      if (!(p > 0)) continue;
      uint32_t label =
          wf__map64_find(&sphinx->labels, label_key(sphinx, senones[to], phone->tmat, to));
      WF__TRY(wf__csr_push(type, (wf_arc){(uint32_t)to + 1, cost_of(p), (int32_t)label, 0}, err));
    }
  }
  return WF_OK;
}

static wf_status type_of(wf_hmm *hmm, struct sphinx *sphinx, const wf__mdef_phone *phone,
                         int32_t *out_type, wf_error *err) {
  uint64_t key = (uint64_t)phone->tmat << 32 | (uint32_t)phone->sequence;
  uint32_t type = wf__map64_find(&sphinx->types, key);
  *out_type = (int32_t)type;
  if (type != WF__MAP64_NONE) return WF_OK;
  wf__csr states = {0};
  wf_status status = fill_type(sphinx, phone, &states, err);
  if (status == WF_OK) status = wf__hmm_add_type(hmm, &states, out_type, err);
  wf__csr_free(&states);
  if (status == WF_OK)
    status =
        wf__map64_insert(&sphinx->types, key, (uint32_t)*out_type, &type, NULL, "HMM types", err);
  return status;
}

/* The context-independent phone that a neighbour counts as. Fillers and the edge of the utterance
 * count as silence. */
static int32_t neighbour(const struct sphinx *sphinx, int32_t phone) {
  bool silent = phone == 0 || sphinx->position[phone] == WF__MDEF_CI;
  return silent && sphinx->silence >= 0 ? sphinx->silence
         : phone == 0                   ? -1
                                        : sphinx->base_of[phone];
}

static wf_status find_type(wf_hmm *hmm, const int32_t *window, int32_t *out_type, wf_error *err) {
  struct sphinx *sphinx = hmm->model;
  int32_t phone = window[hmm->central], base = sphinx->base_of[phone], index = base;
  if (sphinx->position[phone] != WF__MDEF_CI) {
    int32_t left = neighbour(sphinx, window[0]), right = neighbour(sphinx, window[2]);
    bool own = false;
    if (left >= 0 && right >= 0)
      index = nearest(sphinx, sphinx->position[phone], base, left, right, &own);
    char text[256];
    if (!own) {
      wf__hmm_window_text(hmm, window, text, sizeof text);
      WF__TRY(wf__tally_add(&hmm->substituted, text, err));
    }
  }
  return type_of(hmm, sphinx, &sphinx->mdef.phones.data[index], out_type, err);
}

/* --- reading ----------------------------------------------------------------------------- */

static const wf__hmm_class g_sphinx_class = {find_type, free_sphinx};

static wf_status take_noises(wf_hmm *hmm, struct sphinx *sphinx, const wf__input *noisedict,
                             wf_error *err) {
  wf__noisedict noises = {.silence = -1};
  if (noisedict != NULL) WF__TRY(wf__noisedict_read(noisedict, &sphinx->mdef, &noises, err));
  sphinx->silence =
      noises.silence >= 0 ? noises.silence : wf__mdef_find(&sphinx->mdef, (wf__span){"SIL", 3});
  hmm->silence = sphinx->silence + 1;
  wf_status status = WF_OK;
  for (uint64_t i = 0; i < noises.fillers.size && status == WF_OK; i++)
    status = wf__vec_push(&hmm->fillers, noises.fillers.data[i] + 1, "noises", err);
  wf__vec_free(&noises.fillers);
  return status;
}

static wf_status fill_model(wf_hmm *hmm, struct sphinx *sphinx, const wf__input *mdef,
                            const wf__input *tmats, const wf__input *noisedict, wf_error *err) {
  WF__TRY(wf__mdef_read(mdef, &sphinx->mdef, err));
  WF__TRY(wf__tmats_read(tmats, &sphinx->tmats, err));
  if (sphinx->tmats.num_states != sphinx->mdef.num_states ||
      sphinx->tmats.num_tmats < sphinx->mdef.num_tmats)
    return wf__fail(err, WF_ERR_FORMAT, "%s: %d matrices of %d states; %s needs %d of %d",
                    tmats->path, (int)sphinx->tmats.num_tmats, (int)sphinx->tmats.num_states,
                    mdef->path, (int)sphinx->mdef.num_tmats, (int)sphinx->mdef.num_states);
  WF__TRY(take_noises(hmm, sphinx, noisedict, err));
  bool triphones = sphinx->mdef.phones.size > (uint64_t)sphinx->mdef.num_ci;
  hmm->width = triphones ? 3 : 1;
  hmm->central = triphones ? 1 : 0;
  hmm->lm_weight = 6.5f;
  hmm->word_prob = 0.65f;
  hmm->silence_prob = 0.005f;
  hmm->self_loop_scale = 1;
  hmm->edge_silence = hmm->silence != 0;
  WF__TRY(triphones ? make_phones(hmm, sphinx, err) : make_plain_phones(hmm, sphinx, err));
  WF__TRY(index_triphones(sphinx, hmm->name, err));
  WF__TRY(make_labels(hmm, sphinx, err));
  WF__TRY(make_places(hmm, sphinx, err));
  return wf__hmm_close(hmm, err);
}

wf_status wf__hmm_read_sphinx_inputs(const char *name, const wf__input *mdef,
                                     const wf__input *tmats, const wf__input *noisedict,
                                     wf_hmm **out, wf_error *err) {
  *out = NULL;
  wf_hmm *hmm;
  struct sphinx *sphinx = wf__calloc(1, sizeof *sphinx);
  if (sphinx == NULL) return wf__fail_memory(err, sizeof *sphinx, "an acoustic model");
  wf_status status = wf__hmm_create(name, &g_sphinx_class, sphinx, &hmm, err);
  if (status != WF_OK) {
    free(sphinx);
    return status;
  }
  status = fill_model(hmm, sphinx, mdef, tmats, noisedict, err);
  if (status != WF_OK) {
    wf_hmm_free(hmm);
    return status;
  }
  *out = hmm;
  return WF_OK;
}

static wf_status open_in(const char *folder, const char *file, bool optional, wf__input *out,
                         bool *out_there, wf_error *err) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path)
    return wf__fail(err, WF_ERR_ARGUMENT, "the path '%.80s...' is too long", folder);
  *out_there = !optional || wf__path_kind(path) != WF__FILE_NONE;
  return *out_there ? wf__input_open(path, out, err) : WF_OK;
}

wf_status wf_hmm_read_sphinx(const char *folder, wf_hmm **out, wf_error *err) {
  static const char *const names[] = {"mdef", "transition_matrices", "noisedict"};
  wf__input files[3];
  bool there[3] = {false, false, false};
  wf_status status = WF_OK;
  *out = NULL;
  for (int i = 0; i < 3 && status == WF_OK; i++) {
    status = open_in(folder, names[i], i == 2, &files[i], &there[i], err);
    there[i] = there[i] && status == WF_OK;
  }
  if (status == WF_OK)
    status = wf__hmm_read_sphinx_inputs(folder, &files[0], &files[1], there[2] ? &files[2] : NULL,
                                        out, err);
  for (int i = 0; i < 3; i++)
    if (there[i]) wf__input_close(&files[i]);
  return status;
}
