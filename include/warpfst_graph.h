/* warpfst_graph.h - lexicons, topologies, HMMs, and the decoding graphs made of them. The rules at
 * the top of warpfst.h hold here, too. */
#ifndef WARPFST_GRAPH_H
#define WARPFST_GRAPH_H

#include "warpfst_lm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * Lexicons, topologies, decoding graphs
 *
 * Labels. A token with id i (column i of the acoustic scores) has label i + 1 on the input side of
 * L and on both sides of T, since label 0 is epsilon. A token table that has "<eps>" with id 0
 * (Kaldi's, k2's habit) holds labels already: id and label are the same there, and its "#0", "#1",
 * ... are passed over. With N tokens (ids without gaps), labels N + 1, N + 2, ... are the
 * disambiguation symbols #0, #1, ... : #0 marks back-off in the grammar, #1 and so on end
 * homophones and words that begin other words.
 * ========================================================================================= */

/* How often something odd was met, and the first names of it, in the order they were met. Owned by
 * the structure it stands in. */
#define WF_TALLY_NAMES 10
typedef struct wf_tally {
  uint64_t count;
  char *names[WF_TALLY_NAMES]; /* the first ten; NULL beyond them */
} wf_tally;

/* The label table of the tokens: <eps> 0, the tokens, then #0 .. #(num_disambig - 1).
 * `*out_num_tokens` (may be NULL) is N. Errors: ids with gaps. */
WF_API wf_status wf_token_labels(const wf_symbols *tokens, int32_t num_disambig, wf_symbols **out,
                                 int32_t *out_num_tokens, wf_error *err);
/* Id of the blank: of `name`, or, if NULL, of the first of <blk>, <blank>, <b>, <pad>, [PAD], <ctc>
 * that the table has. As column number (from 0), whichever habit the table follows. Errors: no such
 * token. */
WF_API wf_status wf_token_blank(const wf_symbols *tokens, const char *name, int32_t *out_column,
                                wf_error *err);

/* A lexicon: words and how they are made of tokens. Immutable. A word may have several
 * pronunciations. */
typedef struct wf_lexicon wf_lexicon; /* reference counted */

#define WF_LEXICON_OPTIONS(X)                                                                      \
  X(ENUM, lexicon_format, 0, 0, 0, "auto|plain|prob",                                              \
    "lines are `word token ...`, or `word probability token ...`; auto looks at the second "       \
    "column")                                                                                      \
  X(ENUM, unknown, 0, 0, 0, "error|skip",                                                          \
    "a word with tokens that are not in the table: an error, or left out and counted")             \
  X(STR, blank, 0, 0, 0, "TOKEN",                                                                  \
    "the blank, which no word may hold; empty: none (default: <blk>, <blank>, <b>, <pad>, [PAD] "  \
    "or <ctc>)")                                                                                   \
  X(ENUM, spelling, 0, 0, 0, "auto|chars|longest|bpe",                                             \
    "one character a token; longest token first; merges of pairs. auto: bpe if there are merges, " \
    "else longest")                                                                                \
  X(STR, word_start, 0, 0, 0, "TEXT",                                                              \
    "spelling: put before each word (default: U+2581 if a token begins with it, else nothing)")    \
  X(STR, merges, 0, 0, 0, "FILE", "spelling: byte-pair merges, best first, two pieces a line")     \
  X(BOOL, variants, 0, 0, 1, "",                                                                   \
    "word(2) is another pronunciation of word, and lines that begin with ;;; are comments, as in " \
    "CMU's dictionaries (mkgraph hmm: on)")
WF_DECLARE_OPTIONS(lexicon, WF_LEXICON_OPTIONS)
/* Reads Kaldi's lexicon.txt or lexiconp.txt. Blanks or tabs between columns; empty lines are passed
 * over. A line given twice counts once (with the larger probability). Errors, with path and line:
 * no tokens after the word, probability outside (0, 1], unknown token, blank, not UTF-8, a reserved
 * word (<eps>, <s>, </s>, #0, #1 ...). An empty lexicon is an error. */
WF_API wf_status wf_lexicon_read(const char *path, const wf_symbols *tokens,
                                 const wf_lexicon_options *options, wf_lexicon **out,
                                 wf_error *err);
/* A lexicon without a file: spells every word of a table, but for the reserved ones and those in
 * angle brackets (<unk>), with the tokens of a character or subword model. */
WF_API wf_status wf_lexicon_spell(const wf_symbols *words, const wf_symbols *tokens,
                                  const wf_lexicon_options *options, wf_lexicon **out,
                                  wf_error *err);

typedef struct wf_pronunciation {
  const char *word;
  float prob;            /* 1 if the lexicon has none */
  const int32_t *labels; /* label of each token */
  size_t num_labels;
} wf_pronunciation;
WF_API size_t wf_lexicon_count(const wf_lexicon *lexicon);
/* i-th pronunciation in the order of the file, 0 <= i < count. Its pointers live as long as the
 * lexicon. */
WF_API wf_pronunciation wf_lexicon_at(const wf_lexicon *lexicon, size_t i);
/* Lines or words left out for unknown tokens, and lines given more than once. */
WF_API size_t wf_lexicon_num_skipped(const wf_lexicon *lexicon);
WF_API size_t wf_lexicon_num_repeated(const wf_lexicon *lexicon);
/* The first of those left out: "word (unknown token)". Spelling names words alone. */
WF_API const wf_tally *wf_lexicon_skipped(const wf_lexicon *lexicon);
/* How many disambiguation symbols its transducer needs: #0, one for silence, and #1 .. #k as the
 * words demand. */
WF_API int32_t wf_lexicon_num_disambig(const wf_lexicon *lexicon);
/* Kaldi's words.txt: <eps> 0, the words in byte order, #0, <s>, </s>. */
WF_API wf_status wf_lexicon_words(const wf_lexicon *lexicon, wf_symbols **out, wf_error *err);
/* Writes `word [probability] token ...` lines; probabilities only if one differs from 1. */
WF_API wf_status wf_lexicon_write(const wf_lexicon *lexicon, const char *path, wf_error *err);
WF_API wf_lexicon *wf_lexicon_ref(const wf_lexicon *lexicon);
WF_API void wf_lexicon_free(wf_lexicon *lexicon);

/* L: any sequence of words from its tokens. Arc weights are -ln(probability), on a word's first arc
 * with the word's label. With `disambig`, a pronunciation shared by words or that begins another
 * one ends in #1, #2, ..., the state between words has a loop #0:#0, and L o G can be determinized.
 * With `silence`, an optional silence token at the start and after every word: -ln(silence_prob)
 * with, -ln(1 - silence_prob) without (Mohri, Pereira, Riley 2002; the construction is Kaldi's). */
#define WF_LEXICON_FST_OPTIONS(X)                                                              \
  X(STR, silence, 0, 0, 0, "TOKEN", "token of optional silence between words (default: none)") \
  X(F32, silence_prob, 0.5, 0.000001, 0.999999, "", "probability of optional silence")         \
  X(BOOL, disambig, 1, 0, 1, "", "add disambiguation symbols")
WF_DECLARE_OPTIONS(lexicon_fst, WF_LEXICON_FST_OPTIONS)
/* `words` gives the output labels; NULL: wf_lexicon_words. Words that the table does not have are
 * left out; `*out_missing` (may be NULL) counts their pronunciations. Errors: none of the words is
 * in the table; no "#0" in the table when disambig is on. */
WF_API wf_status wf_lexicon_to_fst(const wf_lexicon *lexicon, const wf_symbols *words,
                                   const wf_lexicon_fst_options *options, wf_fst **out,
                                   size_t *out_missing, wf_error *err);

/* CTC topologies T: labels per frame (input) to token labels (output). What each accepts is defined
 * in docs/how-to/topologies.md:
 *   correct  a state per token: repeats collapse, a token again only after a blank; V states, V^2
 *            arcs
 *   compact  token to token by an epsilon arc through the blank state; a repeat may also be the
 *            token again; V states, 3V - 2 arcs
 *   minimal  one state: every frame is blank or a token of its own; V arcs
 *   eesen    blanks before and after each token, entered and left by epsilon arcs (Miao, Gowayyed,
 *            Metze 2015)
 * (Galvez & Kaldewey 2023, figures 2 and 3; Laptev et al. 2022). All weights are 0.
 * Disambiguation labels num_tokens + 1 .. num_tokens + num_disambig pass as loops eps:#k (#k:#k if
 * keep_disambig). */
#define WF_TOPOLOGY_OPTIONS(X)                                                        \
  X(ENUM, type, 1, 0, 0, "correct|compact|minimal|eesen", "CTC topology")             \
  X(I32, num_disambig, 0, 0, 1000000, "labels", "disambiguation symbols to let pass") \
  X(BOOL, keep_disambig, 0, 0, 1, "", "leave disambiguation symbols on the input side, too")
WF_DECLARE_OPTIONS(topology, WF_TOPOLOGY_OPTIONS)
/* `blank` is a column, 0 <= blank < num_tokens. Errors: num_tokens < 1; correct with more than
 * 16,384 tokens (V^2 arcs). */
WF_API wf_status wf_ctc_topology(int32_t num_tokens, int32_t blank,
                                 const wf_topology_options *options, wf_fst **out, wf_error *err);

/* Arcs of each state in the order that the decoder wants: input labels first, epsilons last;
 * stable. */
WF_API wf_status wf_epsilons_last(const wf_fst *fst, wf_fst **out, wf_error *err);

/* Decoding graph for CTC: T o min(det(L o G)), ready for the decoder: input label = column + 1,
 * output label = word. Words of the lexicon that the grammar never uses are left out before
 * disambiguation. push=log makes the arcs of each state of LG sum to the same constant (Kaldi's
 * fstpushspecial), for which distances in the log semiring need not exist. */
#define WF_CTC_GRAPH_OPTIONS(X)                                                                    \
  X(ENUM, topology, 1, 0, 0, "correct|compact|minimal|eesen", "CTC topology")                      \
  X(STR, silence, 0, 0, 0, "TOKEN", "token of optional silence between words (default: none)")     \
  X(F32, silence_prob, 0.5, 0.000001, 0.999999, "", "probability of optional silence")             \
  X(ENUM, backoff, 0, 0, 0, "epsilon|failure",                                                     \
    "back-off of the LM: free epsilon arcs (small graph), or only for words without an arc "       \
    "(exact costs, large graph)")                                                                  \
  X(ENUM, push, 0, 0, 0, "none|tropical|log",                                                      \
    "weights of LG paid early: as determinization leaves them; best continuation; sum of all "     \
    "continuations")                                                                               \
  X(BOOL, keep_disambig, 0, 0, 1, "", "leave disambiguation symbols on the input side (to debug)") \
  X(I64, max_states, 0, 0, 2147483647, "states",                                                   \
    "fail if the result of a step has more states; 0: 2^31 - 1")                                   \
  X(STR, classes, 0, 0, 0, "<A>,<B>,..",                                                           \
    "words of the grammar that stand for words added at run time, such as <contact> or <unk>: "    \
    "decode --add-words (topology compact)")                                                       \
  X(ENUM, check_words, 0, 0, 0, "warn|error|off",                                                  \
    "a tenth of the LM's words or more are in the lexicon only in another case (upper or lower): " \
    "a warning to the log, an error, or nothing")
WF_DECLARE_OPTIONS(ctc_graph, WF_CTC_GRAPH_OPTIONS)

/* What a step made. */
typedef struct wf_graph_step {
  const char *name; /* "L", "G", "L o G", "det", "push", "min", "T", "T o LG", "graph"; for HMMs "C
                       o LG", "H", "H o CLG", "loops", "rmeps" */
  const char *file; /* short name for files: "L", "G", "LG", "LG.det", "LG.push", "LG.min", "T",
                       "TLG", "CLG", "CLG.det", ..., "graph" */
  uint64_t num_states, num_arcs;
  double seconds;      /* wall time of this step */
  uint64_t peak_bytes; /* largest memory of the process up to its end */
} wf_graph_step;
/* Called after each step with its result. Return false to cancel. */
typedef bool (*wf_graph_step_fn)(void *user, const wf_graph_step *step, const wf_fst *fst);

/* What a graph is made of. All pointers are borrowed for the call. */
typedef struct wf_ctc_graph_parts {
  size_t struct_size;
  const wf_lexicon *lexicon; /* required; its token table and blank are the graph's */
  const wf_lm *lm;           /* either an n-gram LM ... */
  const wf_fst *grammar;   /* ... or a grammar over word labels, back-off arcs (if any) marked #0 on
                              the input side as by wf_lm_to_fst */
  const wf_symbols *words; /* table of the grammar's labels; NULL: its output symbols. Not used with
                              an LM, which has its own */
  wf_graph_step_fn step_fn; /* may be NULL */
  void *step_user;
  wf_progress progress;
} wf_ctc_graph_parts;
WF_DECLARE_INIT(ctc_graph_parts)

typedef struct wf_ctc_graph_result {
  wf_fst *graph;             /* symbols: token labels, words */
  wf_symbols *words;         /* the LM's or the grammar's table, with #0 added if it was missing */
  uint64_t lm_words_missing; /* words of the LM or the grammar that the lexicon cannot pronounce */
  uint64_t lexicon_words_missing; /* words of the lexicon that the LM or grammar never uses */
} wf_ctc_graph_result;
/* Errors: besides those of the steps, no word in common between lexicon and grammar, a class that
 * is not in the grammar, an empty result; the message says in which step. Classes are no words of
 * the graph's output: what is said there is (wf_graph_add_phrases). Entries of the lexicon for them
 * are left out. */
WF_API wf_status wf_ctc_graph_build(const wf_ctc_graph_parts *parts,
                                    const wf_ctc_graph_options *options, wf_ctc_graph_result *out,
                                    wf_error *err);
WF_API void wf_ctc_graph_result_free(wf_ctc_graph_result *result);

/* An acoustic model's HMMs, read from its own files: which HMM a phone has among which neighbours,
 * what each HMM state's column of the scores is, and the transition probabilities. Reference
 * counted; graph building adds HMM types to it, so one thread at a time. */
typedef struct wf_hmm wf_hmm;
/* CMU Sphinx: a folder with mdef (text or binary), transition_matrices and, if there is one,
 * noisedict. Column = senone. */
WF_API wf_status wf_hmm_read_sphinx(const char *folder, wf_hmm **out, wf_error *err);
/* Kaldi: `model` is final.mdl of a GMM, nnet3 or chain model (its TransitionModel is read, what
 * follows is not), `tree` its tree, `lang` the folder with phones.txt, phones/word_boundary.txt and
 * phones/optional_silence.txt (or .int; the last two may be missing). Files are text or binary.
 * Column = pdf, label = transition-id. Without `tree` (NULL) only wf_hmm_columns and
 * wf_hmm_get_info are of use; without `lang` phones are called by their numbers. Lexicons are
 * written in the phones of phones.txt or, where it has positions (AH_B, AH_I, AH_E, AH_S), without
 * them (AH). Context of any width up to 8, the central phone anywhere. A phone in context for which
 * the tree has no answer counts as missing. */
WF_API wf_status wf_hmm_read_kaldi(const char *model, const char *tree, const char *lang,
                                   wf_hmm **out, wf_error *err);
WF_API wf_hmm *wf_hmm_ref(const wf_hmm *hmm);
WF_API void wf_hmm_free(wf_hmm *hmm);
/* What lexicons are written in: the table for wf_lexicon_read, with the option blank = "" (none).
 */
WF_API const wf_symbols *wf_hmm_phones(const wf_hmm *hmm);
/* Set up with wf_hmm_info_init. */
typedef struct wf_hmm_info {
  size_t struct_size;
  int32_t num_phones;     /* that lexicons are written in */
  int32_t width, central; /* of the window of phones that choose an HMM, and the place of the
                             central one from 0; width 0: Kaldi's, read without a tree */
  int32_t num_labels;     /* input labels of graphs: 1 .. num_labels */
  int32_t num_columns;    /* of the score matrix */
  int32_t num_types;      /* distinct HMMs known so far */
  bool identity;          /* label = column + 1 for every label: the decoder needs no table */
} wf_hmm_info;
WF_DECLARE_INIT(hmm_info)
WF_API wf_status wf_hmm_get_info(const wf_hmm *hmm, wf_hmm_info *info, wf_error *err);
/* The table `columns` for wf_graph_create: entry l is the column of label l, entry 0 is -1.
 * `*out_columns` is for wf_free. */
WF_API wf_status wf_hmm_columns(const wf_hmm *hmm, int32_t **out_columns, size_t *out_count,
                                wf_error *err);
/* For determinization (wf_lattice_phones): entry l is the phone that label l begins, 0 if it is
 * within one. `*out_phones` is for wf_free. Kaldi's models only; others: WF_ERR_UNSUPPORTED. */
WF_API wf_status wf_hmm_phone_starts(const wf_hmm *hmm, int32_t **out_phones, size_t *out_count,
                                     wf_error *err);

/* Decoding graph for hybrid HMM models: H o C o L o G, each composition followed by determinization
 * and minimization, disambiguation symbols replaced by epsilons, self-loops added last, ready for
 * the decoder. Input labels are the model's (columns: wf_hmm_columns), output labels words. Costs:
 * -ln P of the LM, and 1 / lm_weight times all others (words, silences, transitions,
 * pronunciations), to be decoded with acoustic_scale = 1 / lm_weight. What 0 (or -1) stands for in
 * the scales: lm_weight 6.5, word_prob 0.65, silence_prob 0.005, self_loop_scale 1, silence at
 * edges for Sphinx (PocketSphinx's defaults); 1, 1, 0.5, 0.1, optional for Kaldi (its recipes';
 * take self_loop_scale 1 for chain models). filler_prob: 1e-8. */
#define WF_HMM_GRAPH_OPTIONS(X)                                                                    \
  X(F32, lm_weight, 0, 0, 1e6, "",                                                                 \
    "divides every cost but the LM's; decode with acoustic_scale = 1 / this. 0: the toolkit's "    \
    "(Sphinx 6.5, Kaldi 1)")                                                                       \
  X(F32, word_prob, 0, 0, 1e6, "",                                                                 \
    "factor on each word (Sphinx's wip). 0: the toolkit's (Sphinx 0.65, Kaldi 1)")                 \
  X(STR, silence, 0, 0, 0, "PHONE",                                                                \
    "phone of silence between words; empty: none (default: the model's)")                          \
  X(ENUM, silence_style, 0, 0, 0, "toolkit|optional|edges",                                        \
    "optional: once at the start and after each word, or not. edges: always at both ends, any "    \
    "number of times between words")                                                               \
  X(F32, silence_prob, 0, 0, 1, "",                                                                \
    "probability of silence where it may be. 0: the toolkit's (Sphinx 0.005, Kaldi 0.5)")          \
  X(BOOL, fillers, 0, 0, 1, "",                                                                    \
    "let the model's noises stand between words (silence_style=edges)")                            \
  X(F32, filler_prob, 0, 0, 1, "", "probability of each. 0: the toolkit's (1e-8)")                 \
  X(F32, transition_scale, 1, 0, 1e6, "", "factor on costs of transitions other than self-loops")  \
  X(F32, self_loop_scale, -1, -1, 1e6, "",                                                         \
    "factor on costs of self-loops and of leaving them. -1: the toolkit's (Sphinx 1, Kaldi 0.1)")  \
  X(ENUM, backoff, 0, 0, 0, "epsilon|failure",                                                     \
    "back-off of the LM: free epsilon arcs (small graph), or only for words without an arc "       \
    "(exact costs, large graph)")                                                                  \
  X(ENUM, push, 1, 0, 0, "none|tropical|log",                                                      \
    "weights paid early: as determinization leaves them; best continuation; sum of all "           \
    "continuations of LG")                                                                         \
  X(ENUM, missing_words, 0, 0, 0, "skip|error",                                                    \
    "words of the LM or grammar that the lexicon lacks: never recognised, or an error")            \
  X(ENUM, missing_hmm, 0, 0, 0, "substitute|drop|error",                                           \
    "phones in a context for which the model has no HMM: the toolkit's rule, paths left out, or "  \
    "an error")                                                                                    \
  X(ENUM, ambiguous, 0, 0, 0, "error|best",                                                        \
    "words that the HMMs cannot tell apart though their phones differ (phones with the same "      \
    "states): an error, or the best of them")                                                      \
  X(BOOL, epsilon, 1, 0, 1, "",                                                                    \
    "arcs without input; --no-epsilon folds them into the arcs before them: nearly twice the "     \
    "arcs, for decoders that want a frame on every arc")                                           \
  X(I64, max_states, 0, 0, 2147483647, "states",                                                   \
    "fail if the result of a step has more states; 0: 2^31 - 1")                                   \
  X(ENUM, check_words, 0, 0, 0, "warn|error|off",                                                  \
    "a tenth of the LM's words or more are in the lexicon only in another case (upper or lower): " \
    "a warning to the log, an error, or nothing")
WF_DECLARE_OPTIONS(hmm_graph, WF_HMM_GRAPH_OPTIONS)

/* What a graph is made of. All pointers are borrowed for the call. */
typedef struct wf_hmm_graph_parts {
  size_t struct_size;
  wf_hmm *hmm;               /* required */
  const wf_lexicon *lexicon; /* either a lexicon, read with wf_hmm_phones, ... */
  const wf_fst *lexicon_fst; /* ... or Kaldi's L_disambig.fst, phones to words in the numbers of
                              * phones.txt and of the word table; its costs stand, and options about
                              * words, silence and fillers do not matter */
  const wf_lm *lm;           /* either an n-gram LM ... */
  const wf_fst *grammar;     /* ... or a grammar over word labels, as in wf_ctc_graph_parts */
  const wf_symbols *words; /* table of the grammar's labels; NULL: its output symbols. Not used with
                              an LM, which has its own */
  wf_graph_step_fn step_fn; /* may be NULL */
  void *step_user;
  wf_progress progress;
} wf_hmm_graph_parts;
WF_DECLARE_INIT(hmm_graph_parts)

typedef struct wf_hmm_graph_result {
  wf_fst *graph;             /* output symbols: words */
  wf_symbols *words;         /* the LM's or the grammar's table, with #0 added if it was missing */
  wf_tally lm_words_missing; /* words of the LM or the grammar that the lexicon cannot pronounce */
  wf_tally lexicon_words_missing; /* words of the lexicon that the LM or grammar never uses */
  wf_tally hmm_substituted;       /* phones in context with the HMM of another context */
  wf_tally hmm_dropped;           /* phones in context left out */
} wf_hmm_graph_result;
/* Errors: besides those of the steps, no word in common between lexicon and grammar, an empty
 * result; the message says in which step. */
WF_API wf_status wf_hmm_graph_build(const wf_hmm_graph_parts *parts,
                                    const wf_hmm_graph_options *options, wf_hmm_graph_result *out,
                                    wf_error *err);
WF_API void wf_hmm_graph_result_free(wf_hmm_graph_result *result);

/* What is searched, all written out; state and arc numbers are those of results. Without added
 * words it is wf_graph_fst, which is the base's otherwise. */
WF_API wf_status wf_graph_to_fst(const wf_graph *graph, wf_fst **out, wf_error *err);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_GRAPH_H */
