/* kaldi_hmm.c - Kaldi acoustic models as wf_hmm.
 *
 * Labels are transition-ids. The tree gives a phone in context one pdf for each pdf class. The HMM
 * of the phone with these pdfs is a type. Its arcs carry the transition-ids of the forward
 * transitions, so an arc tells which state was left. Self-loops are added behind these arcs
 * (Kaldi's --reorder=true).
 *
 * The cost of a forward transition is -ln(P / (1 - P of the self-loop)); forward_cost has the other
 * factor. (Kaldi's documentation, "Decoding graph construction".) */
#include "graph/kaldi_hmm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/map64.h"
#include "graph/kaldi_files.h"

struct kaldi {
  wf__kaldi_transitions transitions;
  wf__kaldi_tree tree;
  wf__map64 sequences; /* trie over the sequences phone, pdf, pdf, ...: (prefix << 32 | item) ->
                          longer prefix; 0 is the empty prefix */
  wf__ints types;      /* by prefix: the type of the sequence; 0: none yet */
};

static void free_kaldi(void *model) {
  struct kaldi *kaldi = model;
  wf__kaldi_transitions_free(&kaldi->transitions);
  wf__kaldi_tree_free(&kaldi->tree);
  wf__map64_free(&kaldi->sequences);
  wf__vec_free(&kaldi->types);
  free(kaldi);
}

/* --- labels ------------------------------------------------------------------------------ */

/* ln(1 - P of the self-loop), in float32 like Kaldi. If P is 1, 1e-10 replaces the 0. */
static float log_leaving(const wf__kaldi_transitions *transitions,
                         const wf__transition_state *state) {
  if (state->loop_id == 0) return 0;
  float leaves = 1 - expf(transitions->log_probs.data[state->loop_id]);
  return logf(leaves > 0 ? leaves : 1e-10f);
}

static float positive_zero(float x) { return x != 0 ? x : 0; }

static wf__hmm_place place_of(const wf__kaldi_transitions *transitions,
                              const wf__transition_state *state, int32_t id) {
  const wf__topology_entry *entry = wf__topology_of(&transitions->topology, state->phone);
  const wf__topology_state *from =
      wf__topology_state_at(&transitions->topology, entry, state->state);
  int32_t to = transitions->topology.transitions
                   .data[from->first_transition + (uint32_t)(id - state->first_id)]
                   .to;
  const bool loop = id == state->loop_id;
  return (wf__hmm_place){.phone = state->phone,
                         .loop = loop,
                         .first = state->state == 0 && !loop,
                         .last = (uint32_t)to + 1 == entry->num_states};
}

static wf_status make_labels(wf_hmm *hmm, const struct kaldi *kaldi, wf_error *err) {
  const wf__kaldi_transitions *transitions = &kaldi->transitions;
  hmm->num_columns = transitions->num_pdfs;
  WF__TRY(wf__vec_push(&hmm->places, ((wf__hmm_place){0}), "labels", err));
  for (uint64_t i = 0; i < transitions->states.size; i++) {
    const wf__transition_state *state = &transitions->states.data[i];
    int32_t end = i + 1 < transitions->states.size ? state[1].first_id : transitions->num_ids + 1;
    wf__hmm_label label = {.loop = state->loop_id};
    if (state->loop_id != 0) {
      label.loop_cost = positive_zero(-transitions->log_probs.data[state->loop_id]);
      label.forward_cost = positive_zero(-log_leaving(transitions, state));
    }
    for (int32_t id = state->first_id; id < end; id++) {
      label.column = id == state->loop_id ? state->loop_pdf : state->forward_pdf;
      WF__TRY(wf__vec_push(&hmm->labels, label, "labels", err));
      WF__TRY(wf__vec_push(&hmm->places, place_of(transitions, state, id), "labels", err));
    }
  }
  return WF_OK;
}

/* --- types ------------------------------------------------------------------------------- */

static const wf__transition_state *state_with(const struct kaldi *kaldi, int32_t phone,
                                              const wf__topology_state *shape, int32_t state,
                                              const int32_t *pdfs) {
  return wf__kaldi_find_state(&kaldi->transitions, phone, state, pdfs[shape->forward_class],
                              pdfs[shape->loop_class]);
}

/* Adds the arcs of an HMM state except its self-loop. Arcs of non-emitting states are epsilons. */
static wf_status push_transitions(const wf_hmm *hmm, const wf__topology_state *shape,
                                  const wf__transition_state *state, int32_t index, wf__csr *csr,
                                  wf_error *err) {
  const struct kaldi *kaldi = hmm->model;
  for (uint32_t i = 0; i < shape->num_transitions; i++) {
    const wf__topology_transition *transition =
        &kaldi->transitions.topology.transitions.data[shape->first_transition + i];
    if (transition->to == index) continue;
    int32_t id = state != NULL ? state->first_id + (int32_t)i : 0;
    float log_prob = state != NULL ? kaldi->transitions.log_probs.data[id] -
                                         log_leaving(&kaldi->transitions, state)
                                   : logf(transition->prob);
    WF__TRY(wf__csr_push(csr, (wf_arc){(uint32_t)transition->to, positive_zero(-log_prob), id, id},
                         err));
  }
  return WF_OK;
}

static wf_status fill_hmm(const wf_hmm *hmm, int32_t phone, const wf__topology_entry *entry,
                          const int32_t *pdfs, wf__csr *csr, wf_error *err) {
  const struct kaldi *kaldi = hmm->model;
  for (uint32_t s = 0; s < entry->num_states; s++) {
    const wf__topology_state *shape =
        wf__topology_state_at(&kaldi->transitions.topology, entry, (int32_t)s);
    const wf__transition_state *state = NULL;
    bool last = s + 1 == entry->num_states;
    if (shape->forward_class != WF__KALDI_NO_PDF && !last) {
      state = state_with(kaldi, phone, shape, (int32_t)s, pdfs);
      if (state == NULL)
        return wf__fail(err, WF_ERR_FORMAT,
                        "%s: the model and tree do not belong together: the tree gives state %u of "
                        "phone '%.80s' the pdfs %d and %d, but the model has no such "
                        "transition-state",
                        hmm->name, s, wf_symbols_text(hmm->phones, phone),
                        (int)pdfs[shape->forward_class], (int)pdfs[shape->loop_class]);
    }
    WF__TRY(wf__csr_add_state(csr, last ? 0 : INFINITY, err));
    WF__TRY(push_transitions(hmm, shape, state, (int32_t)s, csr, err));
  }
  return WF_OK;
}

/* Removes non-emitting states, multiplying their probabilities into the arcs, and states on no
 * path. */
static wf_status tidy(wf__csr *csr, wf__csr *out, wf_error *err) {
  wf_fst *raw, *tidied;
  wf_rmepsilon_options options;
  wf_rmepsilon_options_init(&options);
  WF__TRY(wf__fst_from_csr(csr, 0, WF_LOG, NULL, NULL, &raw, err));
  wf_status status = wf_rmepsilon(raw, &options, &tidied, err);
  wf_fst_free(raw);
  if (status != WF_OK) return status;
  wf_fst_view view = wf_fst_get_view(tidied);
  if (view.start > 0) status = wf__fail(err, WF_ERR_FORMAT, "an HMM's first state is on no path");
  for (uint64_t s = 0; s < view.num_states && status == WF_OK; s++) {
    status = wf__csr_add_state(out, view.final_cost[s], err);
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1] && status == WF_OK; i++)
      status = wf__csr_push(out, view.arcs[i], err);
  }
  wf_fst_free(tidied);
  return status;
}

static wf_status make_type(wf_hmm *hmm, int32_t phone, const wf__topology_entry *entry,
                           const int32_t *pdfs, int32_t *out_type, wf_error *err) {
  wf__csr raw = {0}, tidied = {0};
  wf_status status = fill_hmm(hmm, phone, entry, pdfs, &raw, err);
  if (status == WF_OK) status = tidy(&raw, &tidied, err);
  if (status == WF_OK) status = wf__hmm_add_type(hmm, &tidied, out_type, err);
  wf__csr_free(&raw);
  wf__csr_free(&tidied);
  return status;
}

/* Finds the sequence phone, pdf, pdf, ... in the trie, or adds it. *out is its index in
 * kaldi->types. */
static wf_status find_sequence(struct kaldi *kaldi, int32_t phone, const int32_t *pdfs,
                               int32_t num_pdfs, uint32_t *out, wf_error *err) {
  *out = 0;
  for (int32_t i = -1; i < num_pdfs; i++) {
    uint64_t key = (uint64_t)*out << 32 | (uint32_t)(i < 0 ? phone : pdfs[i]);
    bool fresh;
    WF__TRY(wf__vec_grow(&kaldi->types, 1, "HMM types", err));
    WF__TRY(wf__map64_insert(&kaldi->sequences, key, (uint32_t)kaldi->types.size, out, &fresh,
                             "HMM types", err));
    if (fresh) WF__TRY(wf__vec_push(&kaldi->types, 0, "HMM types", err));
  }
  return WF_OK;
}

static wf_status find_type(wf_hmm *hmm, const int32_t *window, int32_t *out_type, wf_error *err) {
  struct kaldi *kaldi = hmm->model;
  int32_t phone = window[hmm->central], pdfs[2 * WF__KALDI_MAX_STATES];
  uint32_t sequence;
  *out_type = 0;
  const wf__topology_entry *entry = wf__topology_of(&kaldi->transitions.topology, phone);
  if (entry == NULL) return WF_OK;
  for (int32_t c = 0; c < entry->num_classes; c++) {
    pdfs[c] = wf__kaldi_tree_pdf(&kaldi->tree, window, c);
    if (pdfs[c] < 0) return WF_OK;
  }
  WF__TRY(find_sequence(kaldi, phone, pdfs, entry->num_classes, &sequence, err));
  *out_type = kaldi->types.data[sequence];
  if (*out_type != 0) return WF_OK;
  WF__TRY(make_type(hmm, phone, entry, pdfs, out_type, err));
  kaldi->types.data[sequence] = *out_type;
  return WF_OK;
}

/* --- reading ----------------------------------------------------------------------------- */

static const wf__hmm_class g_kaldi_class = {find_type, free_kaldi};

static wf_status fill_model(wf_hmm *hmm, struct kaldi *kaldi, const wf__input *model,
                            const wf__input *tree, const wf__lang_inputs *lang, wf_error *err) {
  WF__TRY(wf__kaldi_transitions_read(model, &kaldi->transitions, err));
  WF__TRY(wf__vec_push(&kaldi->types, 0, "HMM types", err)); /* for the empty sequence */
  if (tree != NULL) WF__TRY(wf__kaldi_tree_read(tree, &kaldi->tree, err));
  hmm->width = kaldi->tree.width; /* 0 without a tree: then only the label tables can be used */
  hmm->central = kaldi->tree.central;
  if (kaldi->transitions.topology.split) hmm->self_loop_scale = 1; /* a chain model */
  WF__TRY(wf__kaldi_take_phones(hmm, (int32_t)kaldi->transitions.topology.entry_of.size - 1, lang,
                                err));
  WF__TRY(make_labels(hmm, kaldi, err));
  return wf__hmm_close(hmm, err);
}

wf_status wf__hmm_read_kaldi_inputs(const char *name, const wf__input *model, const wf__input *tree,
                                    const wf__lang_inputs *lang, wf_hmm **out, wf_error *err) {
  *out = NULL;
  wf_hmm *hmm;
  struct kaldi *kaldi = wf__calloc(1, sizeof *kaldi);
  if (kaldi == NULL) return wf__fail_memory(err, sizeof *kaldi, "an acoustic model");
  wf_status status = wf__hmm_create(name, &g_kaldi_class, kaldi, &hmm, err);
  if (status != WF_OK) {
    free(kaldi);
    return status;
  }
  status = fill_model(hmm, kaldi, model, tree, lang, err);
  if (status != WF_OK) {
    wf_hmm_free(hmm);
    return status;
  }
  *out = hmm;
  return WF_OK;
}

/* Input files. All but the model are optional. */
enum { MODEL, TREE, PHONES, BOUNDARY, SILENCE, NUM_FILES };
struct files {
  wf__input inputs[NUM_FILES];
  bool open[NUM_FILES];
};

static wf_status open_file(struct files *files, int which, const char *path, wf_error *err) {
  wf_status status = wf__input_open(path, &files->inputs[which], err);
  files->open[which] = status == WF_OK;
  return status;
}

/* Opens folder/file. If `other` is given, both are optional, and `other` is tried after `file`. */
static wf_status open_in(struct files *files, int which, const char *folder, const char *file,
                         const char *other, wf_error *err) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path - 32)
    return wf__fail(err, WF_ERR_ARGUMENT, "the path '%.80s...' is too long", folder);
  if (other == NULL) return open_file(files, which, path, err);
  if (open_file(files, which, path, NULL) == WF_OK) return WF_OK;
  snprintf(path, sizeof path, "%s/%s", folder, other);
  (void)open_file(files, which, path, NULL);
  return WF_OK;
}

static wf_status open_all(struct files *files, const char *model, const char *tree,
                          const char *lang, wf_error *err) {
  WF__TRY(open_file(files, MODEL, model, err));
  if (tree != NULL) WF__TRY(open_file(files, TREE, tree, err));
  if (lang == NULL) return WF_OK;
  WF__TRY(open_in(files, PHONES, lang, "phones.txt", NULL, err));
  WF__TRY(
      open_in(files, BOUNDARY, lang, "phones/word_boundary.txt", "phones/word_boundary.int", err));
  return open_in(files, SILENCE, lang, "phones/optional_silence.txt", "phones/optional_silence.int",
                 err);
}

static const wf__input *opened(const struct files *files, int which) {
  return files->open[which] ? &files->inputs[which] : NULL;
}

wf_status wf_hmm_read_kaldi(const char *model, const char *tree, const char *lang, wf_hmm **out,
                            wf_error *err) {
  *out = NULL;
  struct files files = {0};
  wf_status status = open_all(&files, model, tree, lang, err);
  if (status == WF_OK) {
    wf__lang_inputs phones = {opened(&files, PHONES), opened(&files, BOUNDARY),
                              opened(&files, SILENCE)};
    status = wf__hmm_read_kaldi_inputs(model, opened(&files, MODEL), opened(&files, TREE), &phones,
                                       out, err);
  }
  for (int i = 0; i < NUM_FILES; i++)
    if (files.open[i]) wf__input_close(&files.inputs[i]);
  return status;
}
