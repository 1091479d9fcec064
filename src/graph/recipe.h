/* recipe.h - how decoding graphs are made. A recipe is a table of steps, each of which makes one
 * fst. wf_graph_build (recipe.c) checks the inputs, prepares lexicon and grammar, runs the steps in
 * order, reports the size and time of each, and gives the result. The tables, and what only one
 * kind of graph needs, are in ctc_recipe.c, hmm_recipe.c and tokens_recipe.c.
 *
 * Between the steps, at most the inputs and the result of one step are in memory. */
#ifndef WF_GRAPH_RECIPE_H
#define WF_GRAPH_RECIPE_H

#include "graph/lexicon_fst.h"
#include "graph/lg.h"
#include "graph/slots.h"

typedef struct wf__recipe wf__recipe;

typedef struct wf__build {
  const wf__recipe *recipe;
  const wf_graph_inputs *inputs;
  wf_graph_options options; /* push is never auto */
  wf__step_runner runner;
  wf__lg lg;                    /* lexicon and grammar; of a graph of tokens only `words` */
  wf_lexicon *spelled;          /* the lexicon, if none is given */
  wf_topology_options topology; /* of T; `type` is in the result */
  int32_t num_tokens, blank;    /* TOKENS: `blank` is a label */
  float scale;                  /* HMM: 1 / lm_weight */
  int32_t *garbage;             /* the tokens or phones of the garbage word */
  int32_t *fillers;             /* HMM: their input labels in L */
  wf_tally dropped;             /* HMM: phones in context */
  wf__slot first;               /* L, later T or H, which is composed with `graph` */
  wf__slot g, graph;            /* graph: LG, and what is made of it */
} wf__build;

typedef struct wf__step {
  const char *name, *file; /* as in wf_graph_step */
  const char *stage;       /* for progress and messages */
  wf_status (*run)(wf__build *b, wf_error *err);
  bool (*wanted)(const wf__build *b); /* NULL: always */
} wf__step;

struct wf__recipe {
  int32_t push; /* what push=auto stands for */
  bool words;   /* it has a lexicon and a grammar */
  /* Checks the inputs that only this kind has, and completes `lg` and `topology`. */
  wf_status (*take)(wf__build *b, wf_error *err);
  wf_status (*make_l)(wf__build *b, wf_fst **out, wf_error *err);
  /* The table of the finished graph's input labels. NULL: they have no names. */
  wf_status (*labels)(const wf__build *b, wf_symbols **out, wf_error *err);
  /* What word times need; *out NULL: model and lexicon do not provide it. */
  wf_status (*aligner)(const wf__build *b, wf_word_aligner **out, wf_error *err);
  const wf__step *steps;
  size_t num_steps;
};
extern const wf__recipe wf__ctc_recipe, wf__hmm_recipe, wf__tokens_recipe;

/* Completes the shape of L for the option `garbage`: keeps the labels 1 .. count that `is_token`
 * allows. `scale`: factor on the cost. */
wf_status wf__take_garbage(wf__build *b, int32_t count,
                           bool (*is_token)(const wf__build *b, int32_t label,
                                            const wf__lexicon_shape *shape),
                           float scale, wf__lexicon_shape *shape, wf_error *err);

/* --- steps that several recipes have (shared_steps.c) --------------------------------------- */

wf_status wf__make_l(wf__build *b, wf_error *err);
wf_status wf__make_g(wf__build *b, wf_error *err);
wf_status wf__make_lg(wf__build *b, wf_error *err);
wf_status wf__make_det(wf__build *b, wf_error *err);
wf_status wf__make_push(wf__build *b, wf_error *err);
wf_status wf__make_min(wf__build *b, wf_error *err);
/* Merges epsilon arcs into the arcs before them, unless the graph would grow too much, or words
 * would be left without an arc. */
wf_status wf__make_emitting_only(wf__build *b, wf_error *err);
bool wf__wants_emitting_only(const wf__build *b);
/* Orders the arcs of the finished graph and gives it its tables. */
wf_status wf__make_graph(wf__build *b, wf_error *err);
bool wf__wants_push(const wf__build *b);

/*     L, G   --compose--> L o G --determinize--> det --(push)--> --minimize--> LG */
#define WF__LG_STEPS                                                   \
  {"L", "L", "lexicon to L", wf__make_l, NULL},                        \
      {"G", "G", "language model to G", wf__make_g, NULL},             \
      {"L o G", "LG", "compose L o G", wf__make_lg, NULL},             \
      {"det", "LG.det", "determinize LG", wf__make_det, NULL},         \
      {"push", "LG.push", "push LG", wf__make_push, wf__wants_push}, { \
    "min", "LG.min", "minimize LG", wf__make_min, NULL                 \
  }

#endif
