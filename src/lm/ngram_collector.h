/* ngram_collector.h - collects words and n-grams from a reader, with the same rules for irregular
 * files in every format.
 *
 *   arpa.c, sphinx_lm.c, kenlm.c --words, n-grams--> ngram_collector.c --sorted levels-->
 *     ngram_levels.c, lm_build.c
 *
 * A reader adds all unigrams (wf__collector_add_word, then wf__collector_add_ngram), ends that
 * level, adds the bigrams, and so on. Contexts that the file lacks (`a b c` without `a b`) cannot
 * be inserted into a sorted level. They are recorded with all their prefixes in missing[], and the
 * reader, which has the file in memory, is run again with them added. This is rare. */
#ifndef WF_LM_NGRAM_COLLECTOR_H
#define WF_LM_NGRAM_COLLECTOR_H

#include "base/input.h"
#include "fst/word_case.h"
#include "lm/ngram_levels.h"

/* The option oov. */
enum { WF__OOV_UNK, WF__OOV_SKIP, WF__OOV_ERROR };

/* Label of words that the caller's table lacks. Labels of tables are smaller (MAX_LABEL). */
#define WF__LM_OUTSIDE INT32_MAX

/* Receives the n-grams instead of wf__ngram_levels. label[0 .. k) are labels of the table that the
 * collector makes, costs are in nats. */
typedef struct wf__ngram_collector wf__ngram_collector;
typedef struct wf__ngram_sink {
  wf_status (*put)(void *user, const wf__ngram_collector *collector, int k, const uint32_t *label,
                   float cost, float backoff, wf_error *err);
  void *user;
} wf__ngram_sink;

struct wf__ngram_collector {
  const char *path;        /* of the file, for messages */
  const wf_symbols *words; /* the caller's, or NULL */
  wf_symbols *vocab; /* words of the LM; if words is NULL, the model's table: keys are labels */
  WF__VEC(int32_t) label_of;   /* [key in vocab] label, or WF__LM_OUTSIDE */
  const char *bos, *eos, *unk; /* unk NULL: <unk> or <UNK> */
  int oov;
  bool words_have_unk;
  bool is_checked; /* the source is a model: costs below 0 are those of a difference, or of contexts
                      that were created */
  wf__word_case cases; /* case counts of words outside the table */
  wf__ngram_levels levels;
  WF__VEC(uint32_t)
  missing[WF_LM_MAX_ORDER + 1]; /* [k]: contexts of k words to create, k labels each */
  bool again;                   /* second run: missing[] is complete */
  struct {
    uint32_t label[WF_LM_MAX_ORDER], node[WF_LM_MAX_ORDER];
    int num_words; /* of its context */
    int num_nodes; /* number of prefixes of its context whose nodes are known */
    bool noted;    /* its context is missing and has been recorded */
  } last;          /* the previous n-gram: n-grams with the same first words share the search for
                      their context */
  wf_arpa_stats stats;
  const wf_progress *progress;
  const wf__ngram_sink *sink; /* NULL: n-grams are stored in `levels` */
};

/* Reads all levels of one file into the collector. Sets levels.order before it ends level 1. `user`
 * is the reader. */
typedef wf_status (*wf__ngram_read_fn)(void *user, wf__ngram_collector *collector, wf_error *err);
/* Runs the reader, once or twice, and builds the model. `path` must outlive the call. */
wf_status wf__collect_ngrams(const char *path, const wf_symbols *words,
                             const wf_arpa_options *options, wf__ngram_read_fn read, void *user,
                             wf__automaton **out, wf_arpa_stats *stats, const wf_progress *progress,
                             wf_error *err);

/* Runs the reader once and passes every accepted n-gram to the sink. Order, contexts and
 * duplicates are not checked. */
typedef struct wf__ngram_stream_info {
  wf_symbols *words; /* <eps> is 0, the words are numbered from 1 in the order of the unigrams. The
                        caller frees the table, also on failure */
  int order;
  uint32_t bos, eos, unk; /* eos, unk: WF__LM_NONE if the model has none */
} wf__ngram_stream_info;
wf_status wf__stream_ngrams(const char *path, const wf_arpa_options *options,
                            wf__ngram_read_fn read, void *user, const wf__ngram_sink *sink,
                            wf__ngram_stream_info *info, wf_arpa_stats *stats,
                            const wf_progress *progress, wf_error *err);
/* The same for an ARPA file or stream ("-"), gzipped or not. */
wf_status wf__lm_stream_arpa(const char *path, const wf_arpa_options *options,
                             const wf__ngram_sink *sink, wf__ngram_stream_info *info,
                             wf_arpa_stats *stats, const wf_progress *progress, wf_error *err);

/* Called by readers, which add the position in the file to errors. Adds a word; sets `*label`. */
wf_status wf__collector_add_word(wf__ngram_collector *collector, wf__span text, uint32_t *label,
                                 wf_error *err);
/* Adds the n-gram label[0 .. k), costs in nats. A probability slightly above 1 counts as 1; a
 * larger one is an error. */
wf_status wf__collector_add_ngram(wf__ngram_collector *collector, int k, const uint32_t *label,
                                  float cost, float backoff, wf_error *err);
wf_status wf__collector_end_level(wf__ngram_collector *collector, int k, wf_error *err);
/* False for invalid costs: NaN, or so far below 0 that sums would not stay finite. */
static inline bool wf__collector_is_cost(float cost) { return cost >= -1e30f; }

#endif
