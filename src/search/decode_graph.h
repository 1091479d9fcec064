/* decode_graph.h - the graph in the search's layout.
 *
 *   index   [num_states + 1]  {first_arc, first_epsilon}: emitting arcs of s are [first_arc,
 *           first_epsilon),
 *                             epsilon arcs [first_epsilon, index[s + 1].first_arc)
 *   arcs    [num_arcs]        16 bytes each, in the fst
 *
 * If the fst is in a GPU's unified memory, so is the index.
 *
 * The token graph of a CTC graph (fst/ctc_states.h) stays as it is: the states and arcs of the
 * search are numbers, and the index has the arcs of each state by number.
 *
 * Words added at run time (wf_graph_add_phrases) make a graph that shares all this with its base.
 * Behind its states and arcs come, in numbers alone, one copy of a phrase tree (phrase_tree.h) for
 * each site of a class, an arc where its words may stand:
 *
 *   base: states [0, S), arcs [0, A)    class 0, site 0: tree's K states, J arcs    site 1: K, J
 *                                       ...    class 1, site 0 ...
 *
 *   s --class--> t   becomes   s --eps, the arc's weight--> copy's root,   and the tree's arcs to
 *                    its root lead to t
 *
 * so nothing is copied: state first_state + site * K + k is state k of the tree. Without added
 * words a site's arc has the weight +infinity.
 *
 * With a token graph the same holds for CTC states: each arc of a site, from a state that holds a
 * token, leads to the root that holds it, and out of the tree to the state of t that holds the
 * word's last token. So the states of every t are there for all tokens. */
#ifndef WF_SEARCH_DECODE_GRAPH_H
#define WF_SEARCH_DECODE_GRAPH_H

#include <math.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "fst/ctc_states.h"
#include "graph/word_aligner.h"
#include "search/phrase_tree.h"

typedef struct wf__state_index {
  uint32_t first_arc, first_epsilon;
} wf__state_index;

/* An arc where words of a class may stand. */
typedef struct wf__class_site {
  uint32_t source, arc, target; /* in the fst: the state, the number of the arc, and its original
                                   next state */
  float weight;
  int32_t word_class;
  uint32_t rank; /* among the sites of the class */
} wf__class_site;

typedef struct wf__classes {
  bool once; /* of a transducer: a token is one arc, which frames do not repeat */
  int32_t count;
  char **names;                  /* [count] "<contact>" */
  int32_t first_label;           /* input label of class 0 in the fst */
  WF__VEC(wf__class_site) sites; /* by arc */
  uint64_t num_arcs;             /* of the search that belong to sites */
  uint32_t *first_ranked;        /* [count + 1] */
  uint32_t *ranked;              /* sites of class c, in order, start at ranked[first_ranked[c]] */
  int32_t blank;     /* label of the loop at every state before a site; 0: not all have the same */
  int32_t separator; /* input label between words, also of a phrase; 0: none */
} wf__classes;

/* The words of one class. */
typedef struct wf__added {
  wf__phrase_tree *tree; /* NULL: none */
  uint32_t first_state, first_arc;
} wf__added;

/* A state of a token graph with many arcs, of which a frame needs few (frame/frame_columns.h). Labels
 * l of its arcs with the same l >> shift are a range; places[k] is that of the first arc of range k or
 * after, where range 0 has the first arc. */
typedef struct wf__wide_state {
  uint32_t owner;
  float least, most; /* weights of its arcs that are not +infinity */
  uint32_t shift;
  uint64_t places; /* where they are in wide_places; the last one is the number of arcs */
} wf__wide_state;

struct wf_graph {
  atomic_uint_fast32_t refs;
  wf_graph *base; /* of a graph with added words: the owner of the arrays; otherwise NULL */
  wf_fst *fst;
  wf_fst_view view;
  int device;           /* the GPU that has fst and index in its unified memory; -1: host memory */
  wf__ctc_states *ctc;  /* NULL: the fst has the states and arcs of the search */
  wf__wide_state *wide; /* [num_wide] with ctc, by owner */
  uint64_t num_wide;
  uint32_t *wide_places;
  /* Of those without epsilon arcs: arcs over tokens, once for each owner; the other arcs of their
   * states. */
  uint64_t num_wide_arcs, num_wide_others;
  wf__state_index *index;
  int32_t *columns;    /* [num_labels]; columns[0] unused */
  bool columns_follow; /* label l reads column l - 1 */
  int32_t num_labels;  /* one more than the largest input label */
  int32_t min_columns;
  int32_t blank_column; /* of a CTC graph; -1: not a CTC graph */
  bool blank_is_stored; /* the graph was made with it; else it was found by names and loops */
  int32_t num_tokens;   /* expected number of columns of the scores; 0: unknown */
  uint32_t
      *epsilon_components; /* [states of the fst] strongly connected components of the epsilon arcs;
                                   NULL if these make no cycle */
  bool has_epsilons, has_epsilon_cycles, has_negative_epsilons, has_epsilon_words;
  wf__classes *classes;     /* NULL: none */
  wf__added *added;         /* [classes->count], with a base */
  wf_word_aligner *aligner; /* NULL: word times are estimates */
  uint32_t start;
  uint64_t first_added_state, first_added_arc; /* numbers of states and arcs without added words */
  uint64_t num_states, num_arcs;               /* including added words */
};

/* With ctc: the rank of a token among those that a word may end with. A state that every token may
 * lead to comes that many after its state for the first of them. */
static inline uint32_t wf__token_rank(const wf_graph *graph, int32_t label) {
  return (uint32_t)label - (label > graph->ctc->blank ? 2 : 1);
}

/* The sites of a class. */
static inline uint32_t wf__num_sites(const wf_graph *graph, int32_t c) {
  return graph->classes->first_ranked[c + 1] - graph->classes->first_ranked[c];
}
static inline const wf__class_site *wf__site_at(const wf_graph *graph, int32_t c, uint32_t rank) {
  const wf__classes *classes = graph->classes;
  return &classes->sites.data[classes->ranked[classes->first_ranked[c] + rank]];
}

/* How much cheaper an epsilon path must be to replace a token. 0 unless the graph has an epsilon
 * cycle and negative epsilon weights (a scorer's boosts count as such): there rounding could
 * make a cycle of cost zero look like a gain each time. */
float wf__epsilon_slack(const wf_graph *graph, const wf_decoder_options *options, bool scored);

/* Classes of an fst: its input labels with names such as #<contact>. `*out_fst` is a copy in
 * which their arcs are epsilons of weight +infinity to a new last state, and `*out` has their
 * old targets; both NULL if there are none. */
wf_status wf__classes_find(const wf_fst *fst, wf__classes **out, wf_fst **out_fst, wf_error *err);
/* Label of the state's single loop without a word; 0: it has none, or several. */
int32_t wf__loop_label(const wf_fst_view *view, uint64_t state);
/* With ctc: the states whose arcs are those of a site, and the arc of one of them. */
static inline uint32_t wf__site_first(const wf__ctc_states *ctc, const wf__class_site *site) {
  return ctc->first_entered[site->source];
}
static inline uint32_t wf__site_end(const wf__ctc_states *ctc, const wf__class_site *site) {
  return ctc->end[site->source];
}
static inline uint32_t wf__site_arc(const wf__ctc_states *ctc, const wf__class_site *site,
                                    uint32_t state) {
  return wf__ctc_first_epsilon(ctc->states[state]) + site->arc - ctc->first_epsilon[site->source];
}
/* Finds the separator. */
void wf__classes_separate(wf__classes *classes, const wf_fst_view *view, const wf_symbols *tokens,
                          const wf_word_aligner *aligner);
/* Fills in the arc numbers of sites, once these are final, and the blank; 0: that of their loops. */
wf_status wf__classes_number(wf__classes *classes, const wf_fst_view *view, int32_t blank,
                             wf_error *err);
/* The site at this arc; NULL if there is none. */
const wf__class_site *wf__class_site_of(const wf__classes *classes, uint32_t arc);
void wf__classes_free(wf__classes *classes);

/* What trees for the classes are made for. */
wf__phrase_task wf__classes_phrase_task(const wf_graph *graph);
/* Number of a class that has sites and no words yet. NULL: the only class. */
wf_status wf__graph_find_class(const wf_graph *graph, const char *word_class, int32_t *out,
                               wf_error *err);
/* Makes the graph with a tree at the sites of class c. Takes over the tree, also after an error.
 * `phrases`: for the word aligner. */
wf_status wf__graph_add_tree(const wf_graph *graph, int32_t c, wf__phrase_tree *tree,
                             const wf_added_phrase *phrases, size_t count, wf_graph **out,
                             wf_error *err);

/* --- states and arcs by number ----------------------------------------------------------- */

/* Consecutive arcs of a state: arcs[i] has the number first + i and leads to targets[i] or, if these
 * are NULL, to its nextstate, plus shift. */
typedef struct wf__arc_run {
  const wf_arc *arcs;
  uint32_t first, end, shift;
  const uint32_t *targets;
  uint32_t owner; /* a state, or with ctc one of those with the same arcs; or that of the fst */
  int32_t held;   /* with ctc: arcs of this label are void; -1: without */
  uint32_t none, stay; /* with ctc: as in wf__ctc_state */
} wf__arc_run;

/* With ctc: the arcs of blank and held token, numbers from `end` on. */
static inline uint32_t wf__num_stays(const wf__arc_run *run) {
  return run->none == WF__CTC_NONE ? 0 : run->held != 0 ? 2 : 1;
}

/* For states and arcs after those of the base. */
wf__arc_run wf__added_run(const wf_graph *graph, uint32_t state, bool epsilons);
wf_arc wf__added_arc(const wf_graph *graph, uint32_t a);
/* With ctc: an arc of an added state, the state that has an arc, and the token that is held. */
wf_arc wf__added_ctc_arc(const wf_graph *graph, uint32_t state, uint32_t a);
uint32_t wf__added_source(const wf_graph *graph, uint32_t a);
int32_t wf__added_held(const wf_graph *graph, uint32_t state);
/* The root that an arc of a CTC state leads to, if the arc is a site's and the class has words, with
 * the site's weight; else the arc as it is. `a`: its number in the fst. */
wf_arc wf__opened_arc(const wf_graph *graph, int32_t held, uint32_t a, wf_arc arc);
/* An arc of a CTC state, or of the state that has it. */
wf_arc wf__ctc_arc(const wf_graph *graph, uint32_t state, uint32_t a);
uint32_t wf__ctc_source(const wf_graph *graph, uint32_t a);

static inline bool wf__is_added(const wf_graph *graph, uint32_t state) {
  return wf__unlikely(state >= graph->first_added_state);
}

static inline wf__arc_run wf__ctc_run(const wf_graph *graph, uint32_t state) {
  if (wf__is_added(graph, state)) return wf__added_run(graph, state, false);
  const wf__ctc_state *at = &graph->ctc->states[state];
  return (wf__arc_run){.arcs = graph->view.arcs + at->arcs,
                       .first = at->first_arc,
                       .end = at->first_arc + at->count,
                       .targets = graph->ctc->targets + at->arcs,
                       .owner = at->owner,
                       .held = at->held,
                       .none = at->none,
                       .stay = at->stay};
}

static inline wf__arc_run wf__plain_run(const wf_graph *graph, uint32_t state) {
  if (wf__is_added(graph, state)) return wf__added_run(graph, state, false);
  wf__state_index index = graph->index[state];
  return (wf__arc_run){.arcs = graph->view.arcs + index.first_arc,
                       .first = index.first_arc,
                       .end = index.first_epsilon,
                       .owner = state,
                       .held = -1};
}

/* Emitting arcs of a state; with ctc, without those of blank and held token. */
static inline wf__arc_run wf__emitting_run(const wf_graph *graph, uint32_t state) {
  return graph->ctc != NULL ? wf__ctc_run(graph, state) : wf__plain_run(graph, state);
}

/* Epsilon arcs of a state; only `first` and `end` are valid: use wf__graph_arc_from for the arcs. */
static inline wf__arc_run wf__epsilon_run(const wf_graph *graph, uint32_t state) {
  if (wf__is_added(graph, state)) return wf__added_run(graph, state, true);
  if (graph->ctc != NULL) {
    const wf__ctc_state *at = &graph->ctc->states[state];
    const uint32_t first = wf__ctc_first_epsilon(*at);
    return (wf__arc_run){
        .first = first, .end = first + at->num_epsilons, .owner = state, .held = -1};
  }
  return (wf__arc_run){.first = graph->index[state].first_epsilon,
                       .end = graph->index[state + 1].first_arc,
                       .owner = state,
                       .held = -1};
}

/* An arc of a known state, with the state that it leads to. */
static inline wf_arc wf__graph_arc_from(const wf_graph *graph, uint32_t state, uint32_t a) {
  if (graph->ctc != NULL)
    return wf__is_added(graph, state) ? wf__added_ctc_arc(graph, state, a)
                                      : wf__ctc_arc(graph, state, a);
  if (wf__likely(graph->added == NULL)) return graph->view.arcs[a];
  if (a < graph->first_added_arc && graph->view.arcs[a].weight != INFINITY)
    return graph->view.arcs[a];
  return wf__added_arc(graph, a);
}
static inline wf_arc wf__graph_arc(const wf_graph *graph, uint32_t a) {
  return wf__graph_arc_from(graph, graph->ctc != NULL ? wf__ctc_source(graph, a) : 0, a);
}

/* A state of at least WF__WIDE_ARCS arcs. */
static inline const wf__wide_state *wf__wide_state_of(const wf_graph *graph, uint32_t owner) {
  uint64_t low = 0, high = graph->num_wide;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    if (graph->wide[middle].owner <= owner)
      low = middle;
    else
      high = middle;
  }
  return &graph->wide[low];
}

/* The same for arcs of which many in a row leave one state. *source: that of the last one; 0 at the
 * beginning. */
static inline wf_arc wf__graph_arc_after(const wf_graph *graph, uint32_t *source, uint32_t a) {
  if (graph->ctc != NULL && (wf__is_added(graph, *source) || a < graph->index[*source].first_arc ||
                             a >= graph->index[*source + 1].first_arc))
    *source = wf__ctc_source(graph, a);
  return wf__graph_arc_from(graph, *source, a);
}

/* The same for the arcs of a path. *state: where the last one led to; 0 at the beginning. */
static inline wf_arc wf__graph_arc_along(const wf_graph *graph, uint32_t *state, uint32_t a) {
  const wf_arc arc = wf__graph_arc_after(graph, state, a);
  *state = arc.nextstate;
  return arc;
}

/* Label that an arc into `target` reads; 0: none. */
static inline int32_t wf__label_read(const wf_graph *graph, uint32_t a, uint32_t target,
                                     bool is_epsilon) {
  if (is_epsilon) return 0;
  if (graph->ctc == NULL) return wf__graph_arc(graph, a).ilabel;
  const int32_t held =
      wf__is_added(graph, target) ? wf__added_held(graph, target) : graph->ctc->states[target].held;
  return held != 0 ? held : graph->ctc->blank;
}

static inline float wf__graph_final(const wf_graph *graph, uint32_t state) {
  if (wf__is_added(graph, state)) return INFINITY;
  return graph->view.final_cost[graph->ctc != NULL ? graph->ctc->states[state].owner : state];
}

/* Which epsilon cycle a state is in; the graph must have some, and the state not be added. */
static inline uint32_t wf__epsilon_component(const wf_graph *graph, uint32_t state) {
  return graph->epsilon_components[graph->ctc != NULL ? graph->ctc->states[state].owner : state];
}

#endif
