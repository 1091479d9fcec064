/* encoder.c - encodes (ilabel, olabel, weight) of arcs as one label, and decodes it.
 *
 * Label k stands for codes[k - 1]. A final cost is encoded, like OpenFst does it, as the code of an
 * arc with the labels -1:-1, so that it differs from a true epsilon arc of the same cost. */
#include "fstops/encoder.h"

#include <string.h>

#include "fst/symbols.h"
#include "fstops/connect.h"
#include "fstops/csr_copy.h"
#include "fstops/shortest_distance.h"

wf_status wf_encoder_create(wf_semiring semiring, bool labels, bool weights, wf_encoder **out,
                            wf_error *err) {
  *out = NULL;
  if (!labels && !weights) return wf__fail(err, WF_ERR_ARGUMENT, "encode labels, weights or both");
  wf_encoder *encoder = wf__calloc(1, sizeof *encoder);
  if (encoder == NULL) return wf__fail_memory(err, sizeof *encoder, "an encoder");
  encoder->semiring = semiring;
  encoder->labels = labels;
  encoder->weights = weights;
  *out = encoder;
  return WF_OK;
}

void wf_encoder_free(wf_encoder *encoder) {
  if (encoder == NULL) return;
  wf__vec_free(&encoder->codes);
  wf__pairs_free(&encoder->label_pairs);
  wf__map64_free(&encoder->numbers);
  for (int side = 0; side < 2; side++) wf_symbols_free(encoder->symbols[side]);
  free(encoder);
}

uint64_t wf_encoder_num_labels(const wf_encoder *encoder) { return encoder->codes.size; }

wf_status wf__encoder_label(wf_encoder *encoder, wf__code code, int32_t *out, wf_error *err) {
  uint32_t pair, number, bits, final_pair = UINT32_MAX - 1;
  bool fresh;
  code.weight += 0.0f; /* -0 and +0 are one cost */
  memcpy(&bits, &code.weight, sizeof bits);
  pair = final_pair;
  if (code.ilabel >= 0)
    WF__TRY(wf__pairs_find(&encoder->label_pairs, (uint32_t)code.ilabel, (uint32_t)code.olabel,
                           &pair, err));
  if (encoder->codes.size >= WF__MAX_LABEL)
    return wf__fail(err, WF_ERR_LIMIT, "more than 2^31 - 1 encoded labels");
  WF__TRY(wf__map64_insert(&encoder->numbers, (uint64_t)pair << 32 | bits,
                           (uint32_t)encoder->codes.size + 1, &number, &fresh, "labels", err));
  *out = (int32_t)number;
  return fresh ? wf__vec_push(&encoder->codes, code, "labels", err) : WF_OK;
}

static wf_status same_semiring(const wf_encoder *encoder, const wf_fst_view *view, wf_error *err) {
  return encoder->semiring == view->semiring
             ? WF_OK
             : wf__fail(err, WF_ERR_ARGUMENT, "the encoder is for the %s semiring",
                        encoder->semiring == WF_LOG ? "log" : "tropical");
}

static wf_status encode_arcs(wf_encoder *encoder, const wf_fst_view *view, wf__csr *csr,
                             wf_error *err) {
  WF__TRY(encoder->weights ? wf__add_superfinal(view, csr, err) : wf__csr_append(csr, view, err));
  for (uint64_t i = 0; i < csr->arcs.size; i++) {
    wf_arc *arc = &csr->arcs.data[i];
    bool final = arc->nextstate == view->num_states; /* an arc of wf__add_superfinal */
    wf__code code = {final ? -1 : arc->ilabel, encoder->labels ? arc->olabel : 0,
                     encoder->weights ? arc->weight : 0};
    if (final) code.olabel = -1;
    WF__TRY(wf__encoder_label(encoder, code, &arc->ilabel, err));
    if (encoder->labels) arc->olabel = arc->ilabel;
    if (encoder->weights) arc->weight = 0;
  }
  return WF_OK;
}

wf_status wf_encoder_encode(wf_encoder *encoder, const wf_fst *fst, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  WF__TRY(same_semiring(encoder, &view, err));
  wf__csr csr = {0};
  wf_status status = encode_arcs(encoder, &view, &csr, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, view.start, view.semiring, NULL, NULL, out, err);
  wf__csr_free(&csr);
  if (status != WF_OK) return status;
  encoder->ctc_blank = wf__fst_ctc_blank(fst);
  const wf_symbols *tables[] = {wf_fst_isymbols(fst), wf_fst_osymbols(fst)};
  for (int side = 0; side < 2; side++) {
    wf_symbols_free(encoder->symbols[side]);
    encoder->symbols[side] = tables[side] != NULL ? wf_symbols_ref(tables[side]) : NULL;
  }
  return WF_OK;
}

/* --- decoding ---------------------------------------------------------------------------- */

static wf_status decode_arc(const wf_encoder *encoder, wf_arc *arc, bool *final, wf_error *err) {
  *final = false;
  if (arc->ilabel == 0) return WF_OK;
  if (encoder->labels && arc->ilabel != arc->olabel)
    return wf__fail(err, WF_ERR_ARGUMENT, "an arc has the labels %d:%d, expected one encoded label",
                    arc->ilabel, arc->olabel);
  if ((uint64_t)arc->ilabel > encoder->codes.size)
    return wf__fail(err, WF_ERR_ARGUMENT, "label %d is not among the %llu labels of the encoder",
                    arc->ilabel, (unsigned long long)encoder->codes.size);
  if (encoder->weights && arc->weight != 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "an arc with the encoded label %d has the cost %g, expected 0", arc->ilabel,
                    (double)arc->weight);
  wf__code code = encoder->codes.data[arc->ilabel - 1];
  *final = code.ilabel < 0;
  arc->ilabel = *final ? 0 : code.ilabel;
  if (encoder->labels || *final) arc->olabel = *final ? 0 : code.olabel;
  if (encoder->weights) arc->weight = code.weight;
  return WF_OK;
}

/* Puts the cost of a final arc into the final cost of its source, if its target is a plain final
 * state. Otherwise the arc stays, with epsilons. */
static wf_status decode_state(const wf_encoder *encoder, const wf_fst_view *view, uint64_t s,
                              wf__csr *csr, wf_error *err) {
  WF__TRY(wf__csr_add_state(csr, view->final_cost[s], err));
  for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
    wf_arc arc = view->arcs[i];
    bool final;
    uint32_t to = arc.nextstate;
    WF__TRY(decode_arc(encoder, &arc, &final, err));
    if (!final || view->arc_off[to] != view->arc_off[to + 1]) {
      WF__TRY(wf__csr_push(csr, arc, err));
      continue;
    }
    float *cost = &csr->final_cost.data[s];
    *cost = wf__cost_to_float(wf__cost_plus(view->semiring, (double)*cost,
                                            (double)arc.weight + (double)view->final_cost[to]));
  }
  return WF_OK;
}

wf_status wf_encoder_decode(const wf_encoder *encoder, const wf_fst *fst, wf_fst **out,
                            wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  WF__TRY(same_semiring(encoder, &view, err));
  wf__csr csr = {0};
  int64_t start = view.start;
  wf_status status = WF_OK;
  for (uint64_t s = 0; s < view.num_states && status == WF_OK; s++)
    status = decode_state(encoder, &view, s, &csr, err);
  if (status == WF_OK && encoder->weights && start >= 0)
    status = wf__csr_connect(&csr, &start, false, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, start, view.semiring, encoder->symbols[0], encoder->symbols[1],
                              out, err);
  if (status == WF_OK) wf__fst_set_ctc_blank(*out, encoder->ctc_blank);
  wf__csr_free(&csr);
  return status;
}
