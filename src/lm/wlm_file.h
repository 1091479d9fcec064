/* wlm_file.h - the file of a large language model: its layout, its writer.
 *
 *   byte 0  header: struct wf__wlm_header, at most 1024 bytes, its crc32 last
 *   then    sections: words (a symbol table as OpenFst embeds it), unigrams, states, tags, buckets,
 *           small arcs, large arcs, codebook (see wlm.h). Each starts at a multiple of 4096 bytes
 *           and is followed by at least 8 bytes of zeros
 *
 * Little-endian. The header has the size of the file, so a truncated file is detected. Opening a
 * file larger than 256 MB checks only the header, the words and the unigrams, because look-ups do
 * not trust the file. wf__wlm_verify checks everything. */
#ifndef WF_LM_WLM_FILE_H
#define WF_LM_WLM_FILE_H

#include "base/error.h"
#include "lm/wlm.h"

enum {
  WF__WLM_WORDS,
  WF__WLM_UNIGRAMS,
  WF__WLM_STATES,
  WF__WLM_TAGS,
  WF__WLM_BUCKETS,
  WF__WLM_SMALL_ARCS,
  WF__WLM_LARGE_ARCS,
  WF__WLM_CODEBOOK,
  WF__WLM_SECTIONS,
  WF__WLM_VERSION = 1,
  WF__WLM_ALIGNMENT = 4096
};

typedef struct wf__wlm_section {
  uint64_t offset, size;
  uint32_t crc, zero;
} wf__wlm_section;

typedef struct wf__wlm_header {
  uint8_t magic[8];
  uint32_t version, order;
  uint64_t file_size;
  uint64_t num_states, num_small, num_buckets, num_large;
  uint32_t num_words, bos, eos, unk, start;
  uint8_t word_bits, next_bits, cost_bits,
      difference; /* difference: a small model was subtracted */
  float scale;    /* factor on the costs of the large model */
  uint32_t zero;
  uint64_t num_ngrams[WF_LM_MAX_ORDER];  /* by order, from 1; includes n-grams that end in </s> */
  uint64_t level_begin[WF_LM_MAX_ORDER]; /* [k]: first state with a history of k words */
  wf__wlm_section sections[WF__WLM_SECTIONS];
  uint32_t crc;
} wf__wlm_header;

extern const uint8_t wf__wlm_magic[8];
uint32_t wf__wlm_crc(uint32_t crc, const void *data, uint64_t size);

/* Writes a model whose states are added one by one, in order. */
typedef struct wf__wlm_writer wf__wlm_writer;
typedef struct wf__wlm_plan {
  int order;
  const wf_symbols *words; /* the keys are the words; borrowed until close */
  uint32_t num_words;      /* largest key + 1 */
  uint32_t bos, eos, unk, start;
  uint64_t num_states;
  uint64_t level_begin[WF_LM_MAX_ORDER];
  float scale;
  bool difference;
  int pack; /* 0: arcs of 12 bytes; 32: packed, exact; else: packed, with a codebook of 2^pack
               costs */
  uint64_t memory; /* limit in bytes; data beyond it goes to temporary files in `folder` */
  const char *folder;
} wf__wlm_plan;
/* Errors of the costs from packing. */
typedef struct wf__wlm_loss {
  double mean, worst; /* |packed cost - cost| over all arcs, in nats */
} wf__wlm_loss;

wf_status wf__wlm_writer_create(const wf__wlm_plan *plan, wf__wlm_writer **out, wf_error *err);
/* Sets the unigram of a word. Words without one are not in the model. */
void wf__wlm_writer_unigram(wf__wlm_writer *writer, uint32_t word, float cost, uint32_t next);
/* Adds the next state. The first is state 0, without arcs: its arcs are the unigrams. Sorts the
 * arcs. */
wf_status wf__wlm_writer_state(wf__wlm_writer *writer, uint32_t backoff, float backoff_cost,
                               wf__wlm_arc *arcs, uint64_t num, wf_error *err);
/* Writes the file. num_ngrams[WF_LM_MAX_ORDER] is by order, from 1. `loss` may be NULL. */
wf_status wf__wlm_writer_close(wf__wlm_writer *writer, const uint64_t *num_ngrams, const char *path,
                               wf__wlm_loss *loss, const wf_progress *progress, wf_error *err);
void wf__wlm_writer_free(wf__wlm_writer *writer);

#endif
