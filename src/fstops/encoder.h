/* encoder.h - the table of an encoder, which encoder_file.c reads and writes. */
#ifndef WF_FSTOPS_ENCODER_H
#define WF_FSTOPS_ENCODER_H

#include "base/input.h"
#include "fstops/pair_table.h"

typedef struct wf__code {
  int32_t ilabel, olabel; /* -1: a final cost. olabel 0 unless labels are encoded */
  float weight;           /* 0 unless weights are encoded */
} wf__code;

struct wf_encoder {
  wf_semiring semiring;
  bool labels, weights;
  WF__VEC(wf__code) codes; /* of labels 1, 2, ... */
  wf__pairs label_pairs;
  wf__map64 numbers;      /* number of the pair of labels << 32 | bits of the weight -> label */
  wf_symbols *symbols[2]; /* of the last fst; NULL: none */
  int32_t ctc_blank;      /* of the last fst; not in files, which are OpenFst's */
};

/* The label of a code, which is added if it is new. */
wf_status wf__encoder_label(wf_encoder *encoder, wf__code code, int32_t *out, wf_error *err);
/* wf_encoder_read from bytes in memory. */
wf_status wf__encoder_read_input(const wf__input *input, wf_encoder **out, wf_error *err);

#endif
