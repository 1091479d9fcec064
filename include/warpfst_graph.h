/* warpfst_graph.h - lexicons, topologies, HMMs and decoding graphs. The rules at the top of
 * warpfst.h apply here too. */
#ifndef WARPFST_GRAPH_H
#define WARPFST_GRAPH_H

#include "warpfst_lm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * Lexicons, topologies, decoding graphs
 *
 * Labels. Label 0 is epsilon, so a token with id i (column i of the acoustic scores) has label i +
 * 1: on the input side of L, and on both sides of T. In a token table with "<eps>" at id 0 (as in
 * Kaldi and k2), ids are labels; its "#0", "#1", ... are ignored. Ids have no gaps. With N tokens,
 * labels N + 1, N + 2, ... are the disambiguation symbols #0, #1, ... The symbol #0 marks back-off
 * arcs of the grammar. #1, #2, ... end pronunciations that several words share, or that are a
 * prefix of another.
 * ========================================================================================= */

/* Number of occurrences of a problem, and the names of the first ones. Owned by the enclosing
 * structure. */
#define WF_TALLY_NAMES 10
typedef struct wf_tally {
  uint64_t count;
  char *names[WF_TALLY_NAMES]; /* the first ten; unused entries are NULL */
} wf_tally;

/* Makes the label table of the tokens: <eps> 0, the tokens, then #0 .. #(num_disambig - 1).
 * `*out_num_tokens` (may be NULL) receives N. Errors: ids with gaps. */
WF_API wf_status wf_token_labels(const wf_symbols *tokens, int32_t num_disambig, wf_symbols **out,
                                 int32_t *out_num_tokens, wf_error *err);
/* Finds the blank: the token `name`, or with NULL the first of <blk>, <blank>, <b>, <pad>, [PAD],
 * <ctc> in the table. `*out_column` receives its column number (from 0), for both types of table.
 * Errors: no such token. */
WF_API wf_status wf_token_blank(const wf_symbols *tokens, const char *name, int32_t *out_column,
                                wf_error *err);

/* A lexicon: words and their pronunciations as tokens. A word may have several pronunciations.
 * Immutable, reference counted. */
typedef struct wf_lexicon wf_lexicon;

enum { WF_LEXICON_AUTO, WF_LEXICON_PLAIN, WF_LEXICON_PROB, WF_LEXICON_SILPROB };
enum { WF_UNKNOWN_ERROR, WF_UNKNOWN_SKIP };
enum { WF_SPELLING_AUTO, WF_SPELLING_CHARS, WF_SPELLING_LONGEST, WF_SPELLING_BPE, WF_SPELLING_ALL };
#define WF_LEXICON_OPTIONS(X)                                                                      \
  X(ENUM, lexicon_format, 0, 0, 0, "auto|plain|prob|silprob",                                      \
    "lines are `word token ...`, or `word probability token ...`, or have three more numbers, "    \
    "which optional silence uses: P(silence after the word), and factors on the word's "           \
    "probability after silence and after none; auto checks the columns")                           \
  X(ENUM, unknown, 0, 0, 0, "error|skip",                                                          \
    "words with tokens that are not in the table: fail, or skip and count them")                   \
  X(STR, blank, 0, 0, 0, "TOKEN",                                                                  \
    "blank token, which CTC graphs need; words must not contain it; empty: none (default: <blk>, " \
    "<blank>, <b>, <pad>, [PAD] or <ctc>)")                                                        \
  X(ENUM, spelling, 0, 0, 0, "auto|chars|longest|bpe|all",                                         \
    "one token per character; longest token first; byte-pair merges; all ways to cut the word, "   \
    "with the fewest tokens first, at most 100. auto: bpe with merges, else longest")              \
  X(STR, word_start, 0, 0, 0, "TEXT",                                                              \
    "spelling: prefix of each word (default: U+2581 if a token begins with it, but not if that "   \
    "is "                                                                                          \
    "a lone one beside a space; else nothing)")                                                    \
  X(STR, merges, 0, 0, 0, "FILE", "spelling: byte-pair merges, best first, two pieces per line")   \
  X(BOOL, variants, 0, 0, 1, "",                                                                   \
    "word(2) is another pronunciation of word, and lines that begin with ;;; are comments, as in " \
    "CMU dictionaries (mkgraph hmm: on)")
WF_DECLARE_OPTIONS(lexicon, WF_LEXICON_OPTIONS)
/* Reads Kaldi's lexicon.txt, lexiconp.txt or lexiconp_silprob.txt, or a dictionary of the Montreal
 * Forced Aligner. Blanks or tabs separate columns. Empty lines are
 * ignored. Repeated lines count once, with the largest probability. Errors name path and line: no
 * tokens after the word, probability outside (0, 1], unknown token, blank, not UTF-8, a reserved
 * word (<eps>, <s>, </s>, #0, #1 ...). An empty lexicon is an error. */
WF_API wf_status wf_lexicon_read(const char *path, const wf_symbols *tokens,
                                 const wf_lexicon_options *options, wf_lexicon **out,
                                 wf_error *err);
/* As wf_lexicon_read, from text[size] in memory. Messages show `name` in place of the path. */
WF_API wf_status wf_lexicon_read_memory(const char *text, size_t size, const char *name,
                                        const wf_symbols *tokens, const wf_lexicon_options *options,
                                        wf_lexicon **out, wf_error *err);
/* Makes a lexicon without a file, for a character or subword model. Spells every word of a table
 * with tokens, except reserved words and words in angle brackets (<unk>). */
WF_API wf_status wf_lexicon_spell(const wf_symbols *words, const wf_symbols *tokens,
                                  const wf_lexicon_options *options, wf_lexicon **out,
                                  wf_error *err);

typedef struct wf_pronunciation {
  const char *word;
  float prob;            /* 1 if the lexicon has no probabilities */
  const int32_t *labels; /* one per token */
  size_t num_labels;
} wf_pronunciation;
WF_API size_t wf_lexicon_count(const wf_lexicon *lexicon);
/* The i-th pronunciation in file order, 0 <= i < count. Its pointers are valid for the lifetime of
 * the lexicon. */
WF_API wf_pronunciation wf_lexicon_at(const wf_lexicon *lexicon, size_t i);
/* Lines or words skipped for unknown tokens, as "word (unknown token)". wf_lexicon_spell lists words
 * only. */
WF_API const wf_tally *wf_lexicon_skipped(const wf_lexicon *lexicon);
/* Number of disambiguation symbols of its transducer: #0, one for silence, and #1 .. #k for the
 * words. */
WF_API int32_t wf_lexicon_num_disambig(const wf_lexicon *lexicon);
/* Makes Kaldi's words.txt: <eps> 0, the words in byte order, #0, <s>, </s>. */
WF_API wf_status wf_lexicon_words(const wf_lexicon *lexicon, wf_symbols **out, wf_error *err);
/* Writes lines `word [probability [three numbers about silence]] token ...`. Probabilities are
 * written only if one differs from 1, or with those numbers. */
WF_API wf_status wf_lexicon_write(const wf_lexicon *lexicon, const char *path, wf_error *err);
WF_API wf_lexicon *wf_lexicon_ref(const wf_lexicon *lexicon);
WF_API void wf_lexicon_free(wf_lexicon *lexicon);

/* L: accepts any sequence of words as tokens. A word's first arc has the word's label and the
 * weight -ln(probability). With `disambig`, a pronunciation that several words share, or that is a
 * prefix of another, ends in #1, #2, ...; the state between words has a loop #0:#0. L o G can then
 * be determinized. With `silence`, an optional silence token is at the start and after every word.
 * It costs -ln(silence_prob); leaving it out costs -ln(1 - silence_prob) (Mohri, Pereira, Riley
 * 2002; Kaldi's construction). If the lexicon has silence probabilities, they take the place of
 * silence_prob after each word (Chen et al. 2015); it remains that of silence at the start.
 * A word separator, which models of characters write between words, is a silence that is required:
 * one or more of them between two words, any number at both ends of an utterance, at no cost. It is
 * the token <space>, a space (also as <0x20>), U+2581 if no other token begins with it, or |, the
 * first of these that is there, in lexicons whose pronunciations do not begin or end with it;
 * inside one it is part of a name of several words. silence_prob gives another token this role, or
 * takes it away. */
#define WF_SILENCE_HELP                                                                         \
  "token between words; empty: none (default: a word separator, <space>, a space, | or a lone " \
  "U+2581, that no pronunciation begins or ends with)"
#define WF_SILENCE_PROB_HELP                                                              \
  "probability of the token between two words. 1: required, and free at both ends of an " \
  "utterance. "                                                                           \
  "0: 1 for a word separator, 0.5 for another token"
#define WF_LEXICON_FST_OPTIONS(X)                         \
  X(STR, silence, 0, 0, 0, "TOKEN", WF_SILENCE_HELP)      \
  X(F32, silence_prob, 0, 0, 1, "", WF_SILENCE_PROB_HELP) \
  X(BOOL, disambig, 1, 0, 1, "", "add disambiguation symbols")
WF_DECLARE_OPTIONS(lexicon_fst, WF_LEXICON_FST_OPTIONS)
/* `words` holds the output labels; NULL: wf_lexicon_words. Words that are not in the table are
 * skipped. `*out_missing` (may be NULL) receives the number of their pronunciations. Errors: no
 * word is in the table; with disambig, the table has no "#0". */
WF_API wf_status wf_lexicon_to_fst(const wf_lexicon *lexicon, const wf_symbols *words,
                                   const wf_lexicon_fst_options *options, wf_fst **out,
                                   size_t *out_missing, wf_error *err);

/* --- grammars ---
 *
 * Read a grammar as an acceptor of words, for the part `grammar` of a graph. `words` has the labels;
 * a word that it lacks is an error. With NULL a table is made: <eps> 0, then the words in byte order.
 * The result has the table on both sides. `words` may be freed after the call. Words are UTF-8;
 * <eps>, <s>, </s>, #0, #1, ... are errors. Messages name file and line, what was found and what was
 * expected. Any thread. Free *out with wf_fst_free. */

/* Reads a grammar in JSGF, which begins with #JSGF, or any file that wf_fst_read reads; `words` is
 * then ignored.
 *
 * JSGF is the JSpeech Grammar Format 1.0 (W3C note, 2000). The result accepts what a public rule
 * accepts, and has no epsilons. Its costs are those of weights: -ln(weight / sum of the weights of
 * the alternatives); a weight of 0 is never said. Quoted words are words in sequence; "<name>" in
 * quotes is the word <name>, such as a class. A rule may use itself as the last part of an
 * alternative. Tags are ignored. `import` is an error, as are texts in other character sets than
 * UTF-8 and ASCII. A rule is copied wherever it is used: WF_ERR_LIMIT above 10 million parts or
 * arcs, or 200 parentheses within each other. */
WF_API wf_status wf_grammar_read(const char *path, const wf_symbols *words, wf_fst **out,
                                 wf_error *err);
/* As wf_grammar_read, from data[size]: the contents of a file. Messages show `name` in place of the
 * path. */
WF_API wf_status wf_grammar_read_memory(const void *data, size_t size, const char *name,
                                        const wf_symbols *words, wf_fst **out, wf_error *err);
/* Makes a grammar of sentences, one in each line, with blanks or tabs between the words. It accepts
 * each of them, at no cost. Empty lines are ignored, and repeated ones count once. There are no
 * comments. No sentence is an error. The result is deterministic. */
WF_API wf_status wf_grammar_read_phrases(const char *path, const wf_symbols *words, wf_fst **out,
                                         wf_error *err);
/* As wf_grammar_read_phrases, from data[size]. Messages show `name` in place of the path. */
WF_API wf_status wf_grammar_read_phrases_memory(const void *data, size_t size, const char *name,
                                                const wf_symbols *words, wf_fst **out,
                                                wf_error *err);

/* CTC topologies T map frame labels (input) to token labels (output). docs/how-to/topologies.md
 * defines what each accepts:
 *   correct  a state per token: repeats collapse, the same token follows only after a blank;
 *            V states, V^2 arcs
 *   compact  an epsilon arc through the blank state joins tokens; a repeat may also be a new
 *            token; V states, 3V - 2 arcs
 *   minimal  one state: every frame is a blank or a new token; V arcs
 *   eesen    blanks before and after each token, entered and left by epsilon arcs
 *            (Miao, Gowayyed, Metze 2015)
 *   auto     in wf_ctc_topology: correct; compact, with a warning in the log, if correct has over 4
 *            million arcs. Graphs have their own rule: wf_graph_build
 * (Galvez & Kaldewey 2023, figures 2 and 3; Laptev et al. 2022). All weights are 0.
 * Disambiguation labels num_tokens + 1 .. num_tokens + num_disambig are loops eps:#k (#k:#k with
 * keep_disambig). */
#define WF_TOPOLOGY_OPTIONS(X)                                                               \
  X(ENUM, type, 5, 0, 0, "correct|compact|minimal|eesen|transducer|auto", "CTC topology")    \
  X(I32, num_disambig, 0, 0, 1000000, "labels", "disambiguation symbols that pass as loops") \
  X(BOOL, keep_disambig, 0, 0, 1, "", "keep disambiguation symbols on the input side too")
WF_DECLARE_OPTIONS(topology, WF_TOPOLOGY_OPTIONS)
/* `blank` is a column, 0 <= blank < num_tokens. Errors: num_tokens < 1; type correct with more than
 * 16,384 tokens (V^2 arcs). */
WF_API wf_status wf_ctc_topology(int32_t num_tokens, int32_t blank,
                                 const wf_topology_options *options, wf_fst **out, wf_error *err);

/* Sorts the arcs of each state so that those with epsilon input are last, as the decoder requires.
 * The sort is stable. */
WF_API wf_status wf_epsilons_last(const wf_fst *fst, wf_fst **out, wf_error *err);

/* The HMMs of an acoustic model, read from its files: the HMM of each phone in context, the score
 * column of each HMM state, and the transition probabilities. Reference counted. One thread at a
 * time may use it, because graph building adds HMM types to it. */
typedef struct wf_hmm wf_hmm;
/* CMU Sphinx: a folder with mdef (text or binary), transition_matrices and optionally noisedict.
 * Column = senone. */
WF_API wf_status wf_hmm_read_sphinx(const char *folder, wf_hmm **out, wf_error *err);
/* Kaldi. `model` is final.mdl of a GMM, nnet3 or chain model; only its TransitionModel is read.
 * `tree` is the decision tree. `lang` is the folder with phones.txt, phones/word_boundary.txt and
 * phones/optional_silence.txt (or .int); the last two are optional. Files are text or binary.
 * Column = pdf, label = transition-id.
 *
 * With tree NULL, only wf_hmm_columns and wf_hmm_get_info work. With lang NULL, phones are named by
 * their numbers. Lexicons use the phones of phones.txt, without position suffixes if it has them
 * (AH for AH_B, AH_I, AH_E, AH_S). The context is up to 8 phones wide, with the central phone at
 * any position. A phone in context that the tree does not map counts as missing. */
WF_API wf_status wf_hmm_read_kaldi(const char *model, const char *tree, const char *lang,
                                   wf_hmm **out, wf_error *err);
WF_API wf_hmm *wf_hmm_ref(const wf_hmm *hmm);
WF_API void wf_hmm_free(wf_hmm *hmm);
/* Returns the phones for lexicons: the table for wf_lexicon_read, with the option blank = ""
 * (none). */
WF_API const wf_symbols *wf_hmm_phones(const wf_hmm *hmm);
/* Initialize with wf_hmm_info_init. */
typedef struct wf_hmm_info {
  size_t struct_size;
  int32_t num_phones;     /* phones for lexicons */
  int32_t width, central; /* size of the context window, and index of its central phone, from 0;
                             width 0: Kaldi model without a tree */
  int32_t num_labels;     /* input labels of graphs are 1 .. num_labels */
  int32_t num_columns;    /* of the score matrix */
  int32_t num_types;      /* distinct HMMs so far */
  bool identity;          /* label = column + 1 for every label: the decoder needs no table */
} wf_hmm_info;
WF_DECLARE_INIT(hmm_info)
WF_API wf_status wf_hmm_get_info(const wf_hmm *hmm, wf_hmm_info *info, wf_error *err);
/* Makes the table `columns` for wf_graph_create. Entry l is the column of label l; entry 0 is -1.
 * Free `*out_columns` with wf_free. */
WF_API wf_status wf_hmm_columns(const wf_hmm *hmm, int32_t **out_columns, size_t *out_count,
                                wf_error *err);
/* Makes the table for wf_lattice_phones. Entry l is the phone that begins with label l, or 0 if
 * label l does not begin a phone. Free `*out_phones` with wf_free. Kaldi models only; others:
 * WF_ERR_UNSUPPORTED. */
WF_API wf_status wf_hmm_phone_starts(const wf_hmm *hmm, int32_t **out_phones, size_t *out_count,
                                     wf_error *err);

/* --- decoding graphs ---
 *
 * One call makes every kind of graph. It takes inputs through the steps of the kind, each of which
 * makes one fst:
 *
 *   kind    steps                                             input labels of the graph
 *   CTC     L o G, det, (push), min, (T o LG)                 column + 1
 *   HMM     the same, C o LG, det, min, H o CLG, det, min,    the model's: wf_hmm_columns
 *           self-loops, (epsilons removed)
 *   TOKENS  T                                                 column + 1
 *
 * Output labels are words; those of TOKENS are the tokens. Graphs are ready for the decoder.
 *
 * CTC. With topology correct or auto, the graph is the token graph LG = min(det(L o G)): its arcs
 * read tokens, and decoders know how CTC repeats them and where blanks may be. Native files store
 * which label is the blank. OpenFst's formats and text hold the graph that reads frames, as
 * wf_graph_to_fst makes it; they cannot hold one with classes (WF_ERR_UNSUPPORTED). With
 * keep_disambig, and with the other topologies, the graph is T o LG. A decoder's graph has at most
 * 2^31 - 1 pairs of a state and the token that led there, which may be any token after a class, and
 * 2^32 - 2 arcs of these pairs (WF_ERR_LIMIT from wf_graph_create).
 *
 * HMM. Disambiguation symbols become epsilons, and self-loops are added last. Costs are -ln P for
 * the LM, and 1 / lm_weight times -ln P for words, silences, transitions and pronunciations. Decode
 * with acoustic_scale = 1 / lm_weight. 0 (-1 for self_loop_scale) stands for the toolkit's default.
 * Sphinx (as in PocketSphinx): lm_weight 6.5, word_prob 0.65, silence_prob 0.005, self_loop_scale
 * 1, silence_style edges. Kaldi (as in its recipes): lm_weight 1, word_prob 1, silence_prob 0.5,
 * self_loop_scale 0.1, silence_style optional; use self_loop_scale 1 for chain models. Both:
 * filler_prob 1e-8.
 *
 * TOKENS. The tokens follow each other in any order. A language model over tokens can be added
 * while decoding (wf_scorer_from_lm with the graph's words). correct and auto make a token graph of
 * one state, with an arc for each token but the blank. Above 65,535 tokens auto makes a graph that
 * accepts the same, with at most 258 + V / 256 arcs for each of V tokens; wf_graph_create refuses
 * correct there. With compact there are 4 arcs for each token, and a held token is preferred to the
 * same token twice if their scores are equal.
 *
 * Words of the lexicon that the grammar never uses are removed before disambiguation. With push=log,
 * the arcs of each state of LG sum to the same constant (Kaldi's fstpushspecial). This works even
 * where distances in the log semiring do not exist. */
typedef enum wf_graph_kind { WF_GRAPH_CTC, WF_GRAPH_HMM, WF_GRAPH_TOKENS } wf_graph_kind;
/* Values of the option `topology`, and of `type` of wf_topology_options. */
typedef enum wf_graph_topology {
  WF_TOPOLOGY_CORRECT,
  WF_TOPOLOGY_COMPACT,
  WF_TOPOLOGY_MINIMAL,
  WF_TOPOLOGY_EESEN,
  WF_TOPOLOGY_TRANSDUCER,
  WF_TOPOLOGY_AUTO
} wf_graph_topology;
/* Values of the other options with names. */
enum { WF_PUSH_AUTO, WF_PUSH_NONE, WF_PUSH_TROPICAL, WF_PUSH_LOG };
enum { WF_MISSING_WORDS_SKIP, WF_MISSING_WORDS_ERROR };
enum { WF_CHECK_WORDS_WARN, WF_CHECK_WORDS_ERROR, WF_CHECK_WORDS_OFF };
enum { WF_SILENCE_TOOLKIT, WF_SILENCE_OPTIONAL, WF_SILENCE_EDGES }; /* silence_style */
enum { WF_MISSING_HMM_SUBSTITUTE, WF_MISSING_HMM_DROP, WF_MISSING_HMM_ERROR };
enum { WF_AMBIGUOUS_ERROR, WF_AMBIGUOUS_BEST };

/* The rows of the options, by the kinds that have them. */
#define WF__GRAPH_KIND_ROW(X) X(ENUM, kind, 0, 0, 0, "ctc|hmm|tokens", "kind of graph")
#define WF__GRAPH_TOPOLOGY_ROW(X)                                             \
  X(ENUM, topology, 5, 0, 0, "correct|compact|minimal|eesen|transducer|auto", \
    "CTC topology; auto: correct")
#define WF__GRAPH_DEVICE_ROW(X)     \
  X(STR, device, 0, 0, 0, "DEVICE", \
    "where to build: cpu, cuda, or cuda:N (default: cpu); the graph is the same")
#define WF__GRAPH_WORD_ROWS(X)                                                                    \
  X(STR, silence, 0, 0, 0, "TOKEN",                                                               \
    "token or phone between words; empty: none (default: that of the acoustic model; in CTC a "   \
    "word separator, <space>, a space, | or a lone U+2581, that no pronunciation begins or ends " \
    "with)")                                                                                      \
  X(F32, silence_prob, 0, 0, 1, "",                                                               \
    "probability of optional silence. 0: the default (Sphinx 0.005, Kaldi 0.5; in CTC 1 for a "   \
    "word separator, 0.5 for another token). 1, in CTC: required between two words, and free at " \
    "both ends of an utterance")                                                                  \
  X(ENUM, backoff, 0, 0, 0, "epsilon|failure",                                                    \
    "back-off of the LM: free epsilon arcs (small graph), or only for words without an arc "      \
    "(exact costs, large graph)")                                                                 \
  X(ENUM, push, 0, 0, 0, "auto|none|tropical|log",                                                \
    "weight pushing: none beyond determinization; by the best continuation; by the sum of all "   \
    "continuations of LG. auto: none in CTC, tropical for HMMs")                                  \
  X(ENUM, missing_words, 0, 0, 0, "skip|error",                                                   \
    "words of the LM or grammar that are not in the lexicon: leave them out, or fail")            \
  X(F32, garbage, -1, -1, 1e6, "nats",                                                            \
    "<unk> in the LM or grammar stands for any sequence of tokens or phones, at this cost for "   \
    "each of them; a sentence <unk> takes what the grammar lacks. -1: it does not")               \
  X(I64, max_states, 0, 0, 2147483647, "states", "fail when a step has more states; 0: 2^31 - 1") \
  X(ENUM, check_words, 0, 0, 0, "warn|error|off",                                                 \
    "if a tenth or more of the LM's words are in the lexicon only in another case (upper or "     \
    "lower): log a warning, fail, or do nothing")
#define WF__GRAPH_CTC_ROWS(X)                                                                   \
  X(BOOL, keep_disambig, 0, 0, 1, "",                                                           \
    "keep disambiguation symbols on the input side (for debugging)")                            \
  X(STR, classes, 0, 0, 0, "A,B,..",                                                            \
    "words of the grammar that stand for words added at run time, such as <contact>, $NAME or " \
    "<unk> "                                                                                    \
    "(topology correct, compact or transducer): see decode --add-words")
#define WF__GRAPH_HMM_ROWS(X)                                                                      \
  X(F32, lm_weight, 0, 0, 1e6, "",                                                                 \
    "divides every cost except the LM's; decode with acoustic_scale = 1 / this. 0: the toolkit's " \
    "(Sphinx 6.5, Kaldi 1)")                                                                       \
  X(F32, word_prob, 0, 0, 1e6, "",                                                                 \
    "factor on each word's probability (Sphinx's wip). 0: the toolkit's (Sphinx 0.65, Kaldi 1)")   \
  X(ENUM, silence_style, 0, 0, 0, "toolkit|optional|edges",                                        \
    "optional: at most once at the start and after each word. edges: always at both ends, any "    \
    "number of times between words")                                                               \
  X(BOOL, fillers, 0, 0, 1, "", "allow the model's noises between words (silence_style=edges)")    \
  X(F32, filler_prob, 0, 0, 1, "", "probability of each filler. 0: the toolkit's (1e-8)")          \
  X(F32, transition_scale, 1, 0, 1e6, "", "factor on costs of transitions other than self-loops")  \
  X(F32, self_loop_scale, -1, -1, 1e6, "",                                                         \
    "factor on costs of self-loops and of leaving them. -1: the toolkit's (Sphinx 1, Kaldi 0.1)")  \
  X(ENUM, missing_hmm, 0, 0, 0, "substitute|drop|error",                                           \
    "phones in a context without an HMM: use the toolkit's rule, drop their paths, or fail")       \
  X(ENUM, ambiguous, 0, 0, 0, "error|best",                                                        \
    "words with different phones but the same HMM states: fail, or keep the best of them")
#define WF__GRAPH_EPSILON_ROW(X)                                                                  \
  X(BOOL, epsilon, 0, 0, 1, "",                                                                   \
    "keep arcs without input; by default they are merged into the preceding arcs, which decodes " \
    "faster, unless that would more than double the arcs")
#define WF_GRAPH_OPTIONS(X) \
  WF__GRAPH_KIND_ROW(X)     \
  WF__GRAPH_TOPOLOGY_ROW(X) \
  WF__GRAPH_DEVICE_ROW(X)   \
  WF__GRAPH_WORD_ROWS(X)    \
  WF__GRAPH_CTC_ROWS(X)     \
  WF__GRAPH_HMM_ROWS(X)     \
  WF__GRAPH_EPSILON_ROW(X)
/* Options that a kind does not have are ignored. */
WF_DECLARE_OPTIONS(graph, WF_GRAPH_OPTIONS)
/* The options of one kind, as tables for programs that list them: "ctc_graph", "hmm_graph" and
 * "tokens_graph". They fill the same structure. */
#define WF_CTC_GRAPH_OPTIONS(X) \
  WF__GRAPH_TOPOLOGY_ROW(X)     \
  WF__GRAPH_WORD_ROWS(X)        \
  WF__GRAPH_CTC_ROWS(X)         \
  WF__GRAPH_EPSILON_ROW(X)      \
  WF__GRAPH_DEVICE_ROW(X)
#define WF_HMM_GRAPH_OPTIONS(X) \
  WF__GRAPH_WORD_ROWS(X)        \
  WF__GRAPH_HMM_ROWS(X)         \
  WF__GRAPH_EPSILON_ROW(X)      \
  WF__GRAPH_DEVICE_ROW(X)
#define WF_TOKENS_GRAPH_OPTIONS(X) \
  WF__GRAPH_TOPOLOGY_ROW(X)        \
  WF__GRAPH_DEVICE_ROW(X)
WF_DECLARE_SHARED_OPTIONS(ctc_graph, WF_CTC_GRAPH_OPTIONS, graph)
WF_DECLARE_SHARED_OPTIONS(hmm_graph, WF_HMM_GRAPH_OPTIONS, graph)
WF_DECLARE_SHARED_OPTIONS(tokens_graph, WF_TOKENS_GRAPH_OPTIONS, graph)

/* A finished step of graph building. */
typedef struct wf_graph_step {
  const char *name; /* "L", "G", "L o G", "det", "push", "min", "T", "T o LG", "tokens", "rmeps",
                       "graph"; for HMMs also "C o LG", "H", "H o CLG", "loops" */
  const char *file; /* short name for files: "L", "G", "LG", "LG.det", "LG.push", "LG.min", "T",
                       "TLG", "CLG", "CLG.det", ..., "graph" */
  uint64_t num_states, num_arcs;
  double seconds;      /* wall time of this step */
  uint64_t peak_bytes; /* peak memory of the process so far */
} wf_graph_step;
/* Called after each step with its result. `fst` is NULL if the result is only in a GPU's memory
 * (option device) and copy_steps is not set. Returns false to cancel. */
typedef bool (*wf_graph_step_fn)(void *user, const wf_graph_step *step, const wf_fst *fst);

/* What a graph is made of. All pointers are borrowed for the call. */
typedef struct wf_graph_inputs {
  size_t struct_size;
  const wf_symbols
      *tokens; /* TOKENS: required. CTC without `lexicon`: what words are spelled with */
  wf_hmm *hmm; /* HMM: required */
  const wf_lexicon *lexicon; /* HMM: read with wf_hmm_phones. CTC: it defines the tokens and the
                                blank; NULL: the words of `words`, `lm` or `grammar`, in this order,
                                are spelled with `tokens` */
  const wf_lexicon_options *lexicon_options; /* without `lexicon`: `blank`, and how words are
                                                spelled; NULL: the defaults */
  const wf_fst *lexicon_fst; /* HMM, instead of `lexicon`: Kaldi's L_disambig.fst, from phones
                                (numbers of phones.txt) to words (numbers of the word table). Its
                                costs are kept; options for words, silence and fillers are ignored */
  const wf_lm *lm;         /* an n-gram LM; NULL: `grammar` is given, or neither: every sequence of
                                `words`, each at the same cost (not with `lexicon_fst`) */
  const wf_fst *grammar;   /* a grammar over word labels (wf_grammar_read); back-off arcs have input
                                #0, as in wf_lm_to_fst */
  const wf_symbols *words; /* table of the grammar's labels; NULL: its output symbols, or without a
                                grammar the lexicon's words and the classes. Ignored with an LM */
  wf_graph_step_fn step_fn; /* may be NULL */
  void *step_user;
  wf_progress progress;
  bool copy_steps; /* with a GPU: copy each step's result to host memory for step_fn */
  /* With a GPU: the graph stays in its memory, and a decoder on that GPU takes it from there. The
   * host can read it, too (unified memory): then pages move to host memory. If the CPU made the
   * last step or the system lacks unified memory, it is in host memory, with a warning in the log.
   */
  bool keep_on_device;
} wf_graph_inputs;
WF_DECLARE_INIT(graph_inputs)

/* Owned by the caller: wf_graph_result_clear. */
typedef struct wf_graph_result {
  wf_fst *graph;                  /* symbols: token labels (HMM: none), words */
  wf_symbols *words;              /* the table of the LM or grammar, with #0 added if missing */
  wf_graph_topology topology;     /* CTC: never auto. TOKENS: auto if it is neither of the others */
  wf_tally words_not_spelled;     /* without `lexicon`: words with a character that no token has */
  wf_tally lm_words_missing;      /* words of the LM or grammar that are not in the lexicon */
  wf_tally lexicon_words_missing; /* words of the lexicon that the LM or grammar never uses */
  wf_tally hmm_substituted;       /* phones in context that use the HMM of another context */
  wf_tally hmm_dropped;           /* phones in context that were dropped */
} wf_graph_result;
/* Makes a graph. `options` NULL: the defaults, for kind CTC. Errors: a required input is missing;
 * those of the steps; lexicon and grammar without a common word; a class that is not in the
 * grammar; an empty result. The message names the step. After an error, *out is empty.
 *
 * Results of decoding never have a class as a word; they have the words added with
 * wf_graph_add_phrases. Lexicon entries of classes are removed. If the model's unknown word is a
 * class, its unigram cost becomes the mean of the words' (its n-grams are shifted by as much),
 * because models differ in how many words <unk> stands for.
 *
 * Any thread; no other call may use `hmm` meanwhile. */
WF_API wf_status wf_graph_build(const wf_graph_inputs *inputs, const wf_graph_options *options,
                                wf_graph_result *out, wf_error *err);
WF_API void wf_graph_result_clear(wf_graph_result *result); /* NULL is allowed */

/* Makes the complete fst that is searched. Results use its state and arc numbers. Without added
 * words it equals wf_graph_fst. With added words, wf_graph_fst is only the base graph. Of a token
 * graph (wf_graph_build) it is the fst that reads frames: results use its state numbers, and
 * arc numbers count the held token's arcs, too, which it lacks (docs/reference/semantics.md). Of a
 * token graph with added words it is a token graph again, that of the graph with the words in it: its
 * results have the same words and costs, but for rounding and the order of paths of equal cost. */
WF_API wf_status wf_graph_to_fst(const wf_graph *graph, wf_fst **out, wf_error *err);

/* Makes a graph in which a class, such as <unk>, stands for every word that the tokens can spell,
 * at the cost lm_scale * -ln P(tokens of the word) + word_cost. `lm` is a model over the graph's
 * tokens whose sentences are words: P(a|<s>) P(b|a) ... P(</s>|...). A token may begin a word if
 * its text begins with U+2581, or if no token's does and it does not begin with ##; the others go
 * on. A lone U+2581 is no word. Tokens that the model lacks, the blank and names in brackets spell
 * nothing. Results have the tokens as words: U+2581 is at the beginning of a word's first token, ##
 * at that of the others. These names are added to `words`, the table of the graph's words, which no
 * other thread may use meanwhile.
 * Otherwise like wf_graph_add_phrases. Errors also: the model has no token that begins a word. */
WF_API wf_status wf_graph_add_spelling(const wf_graph *graph, const char *word_class,
                                       const wf_lm *lm, float lm_scale, float word_cost,
                                       wf_symbols *words, wf_graph **out, wf_error *err);

/* Joins the tokens of results to words, for graphs whose words are tokens, by the names of the
 * tokens. In this order:
 *   - the token `separator` stands between words
 *   - a name in brackets, such as <unk> and [UNK], is left out
 *   - U+2581... begins a word; but beside a separator U+2581 is a character like others, unless it
 *     begins a token with more text
 *   - if the table has tokens ##..., these continue a word, and all others begin one; a lone ## is
 *     text
 *   - every other token continues the word before it.
 * U+2581 and those ## are no part of the text. A word without text is left out.
 *
 * Tokens may be bytes of UTF-8 text. A name such as <0xE7>, alone or after U+2581 or ##, is a byte.
 * If all names of the table are strings of bytes in the alphabet of GPT-2 (Ġthe, cafÃ©) or of
 * icefall (bbpe), they are read as such. White space in bytes ends words. Bytes that are no UTF-8
 * become U+FFFD: one for each <0xE7>, in alphabets one for each beginning of a character. A token
 * is in one word; space within it stays. Immutable, any thread. */
typedef struct wf_token_joiner wf_token_joiner;
typedef struct wf_joined_word {
  const char *text;   /* ends with NUL */
  size_t first, last; /* its first and last token, counted from 0 */
} wf_joined_word;
/* Makes a joiner. `tokens`, the table of the graph's words, and `separator` are borrowed for the
 * call. `separator` NULL: <space>, a space (also as <0x20>) or |, if the table has it and no other
 * way to mark words, such as a lone U+2581 beside |. Errors: WF_ERR_ARGUMENT if `tokens` is NULL or
 * lacks the separator; WF_ERR_MEMORY. Free *out with wf_token_joiner_free. */
WF_API wf_status wf_token_joiner_create(const wf_symbols *tokens, const char *separator,
                                        wf_token_joiner **out, wf_error *err);
WF_API void wf_token_joiner_free(wf_token_joiner *joiner); /* NULL is allowed */
/* Joins the tokens names[count] and returns the number of words. The caller owns `words`, which has
 * room for `count`, and `text`, which has room for the names with a NUL each; the texts of the
 * words lie in it. Names that the table lacks are allowed. */
WF_API size_t wf_token_joiner_join(const wf_token_joiner *joiner, const char *const *names,
                                   size_t count, wf_joined_word *words, char *text);
/* Writes a text as names of the table would, if they are strings of bytes; else as it is. Returns
 * the number of bytes, at most three times those of the text. There is no NUL at the end. */
WF_API size_t wf_token_joiner_encode(const wf_token_joiner *joiner, const char *text, char *out);

/* Phrases to boost, as texts. All pointers are borrowed for the call. */
typedef struct wf_phrase_list {
  size_t struct_size;
  const char *name;           /* for messages: a path, or "boost" */
  const char *const *phrases; /* [count] words with blanks or tabs between them */
  const float *boosts;        /* [count] in nats; NaN: wf_boost_by_length(phrase, NAN) */
  size_t count;
  const wf_symbols *words;  /* required: the table of the graph's words */
  const wf_symbols *tokens; /* the graph's input symbols, by which graphs whose words are tokens are
                               known; NULL: only `joiner` says so */
  const wf_token_joiner *joiner; /* the joiner of the results; NULL: they are not joined */
} wf_phrase_list;
WF_DECLARE_INIT(phrase_list)
/* Makes a scorer of phrases that are given as texts, as wf_scorer_boost_phrases does of labels. If
 * the graph's words are tokens, a phrase is spelled with them: in every way, those with the fewest
 * tokens first, at most 100, with the separator between words. A phrase may also be a sequence of
 * names of tokens; if the results are joined and tokens begin with U+2581, its first name must,
 * too. Phrases with words that the graph lacks are left out, and one warning in the log names them.
 * They may be all. Errors: WF_ERR_ARGUMENT for no table of words, or those of
 * wf_scorer_boost_phrases. */
WF_API wf_status wf_scorer_boost_texts(const wf_phrase_list *list, wf_scorer **out, wf_error *err);

/* =========================================================================================
 * Forced alignment
 * ========================================================================================= */

/* Aligns given tokens to CTC log-posteriors: the exact best path, without a graph and without a
 * beam. A path gives each frame the blank or a token. Each token has one or more frames in a row,
 * any number of blanks may be between tokens, and two equal tokens need at least one. The
 * log-probability of a path is the sum of its scores, in float32 and in the order of the frames.
 * Ties are resolved from the end of the utterance: the last token before the blank; then, in each
 * frame, the state of the frame before that is the same, else the state before it, else the token
 * before that. Time grows with frames * tokens. Memory besides the scores is some 1 MB, 20 bytes
 * per frame, and 8 bytes per token for each 1,024 frames.
 *
 * Texts with gaps, by option:
 * - garbage: frames before the first word, between words, and after the last may be garbage (speech
 *   that the text lacks). Such a frame scores the best of all columns minus `garbage`.
 * - skip_words: a word of the text may be left out for a cost of `skip_words`. It leaves at least
 *   one frame of blank or garbage in its place.
 * With gaps, ties may be resolved in another way, and memory is 1,024 bytes more per token. */
#define WF_ALIGN_OPTIONS(X)                                                                     \
  X(I32, blank, 0, 0, 2147483647, "column", "column of the CTC blank")                          \
  X(F32, garbage, -1, -1, 1e6, "nats",                                                          \
    "allow garbage between words; cost per frame, relative to the best column. -1: no garbage") \
  X(F32, skip_words, -1, -1, 1e6, "nats", "allow to leave out words; cost per word. -1: no")    \
  X(I32, num_threads, 0, 0, 4096, "threads",                                                    \
    "utterances aligned in parallel; 0: as many as pay, at most one per "                       \
    "processor")
WF_DECLARE_OPTIONS(align, WF_ALIGN_OPTIONS)

/* One utterance. Everything is borrowed for the call. */
typedef struct wf_align_input {
  const char *key;  /* for messages; NULL: its place in the batch */
  wf_scores scores; /* in host memory, or of a GPU, and copied. Without garbage, only the columns of
                       the tokens and the blank are read */
  const int32_t *tokens; /* [num_tokens] columns of the scores, without blanks */
  size_t num_tokens;
  const size_t *word_ends; /* [num_words] word w ends before this token; for gaps */
  size_t num_words;        /* 0: each token is a word */
  uint64_t reserved[4];
} wf_align_input;

typedef struct wf_aligned_token {
  int32_t column;
  int32_t start_frame, end_frame; /* half-open; start == end: left out. Other frames are blanks */
  float log_prob;                 /* sum of the token's scores in these frames, nats */
} wf_aligned_token;

/* Owned by the caller: wf_alignment_free. */
typedef struct wf_alignment {
  wf_status
      status; /* WF_OK, or the error of this utterance. After an error only `message` is valid */
  char message[256]; /* of the error. With WF_OK a warning, or empty: the text has no place for
                      * much of the speech, so its words may be far from where they were said */
  wf_aligned_token *tokens; /* [num_tokens] */
  size_t num_tokens;
  wf_aligned_token *garbage; /* [num_garbage] column -1; NULL: none */
  size_t num_garbage;
  int64_t num_frames;
  float log_prob; /* of the whole path, minus the costs of gaps, nats */
  uint64_t reserved[4];
} wf_alignment;
WF_API void wf_alignment_free(wf_alignment *alignment);
/* Aligns `count` utterances. results[i], an array of the caller, receives the result of utterance
 * i, also if that utterance failed: fewer frames than tokens and blanks between equal tokens need,
 * a token that is the blank or not a column, words without tokens, NaN or +infinity, no path with a
 * probability above 0. If the call itself fails (bad options, out of memory,
 * cancelled), all results are NULL. */
WF_API wf_status wf_align(const wf_align_input *inputs, size_t count,
                          const wf_align_options *options, wf_alignment **results, wf_error *err);

/* Forced alignment with a hybrid model: the best path through the HMMs of a transcript's words,
 * with any of their pronunciations, and silence between them if the model has it. It is found by a
 * beam search, whose beam is doubled until the path is complete. Probabilities are the model's,
 * without a factor. */
#define WF_HMM_ALIGN_OPTIONS(X)                                                                   \
  X(F32, beam, 200, 1, 1e6, "nats",                                                               \
    "keep paths within this cost of the frame's best. While no path is complete it is doubled, "  \
    "up "                                                                                         \
    "to 64 times as much")                                                                        \
  X(F32, self_loop_scale, -1, -1, 1e6, "",                                                        \
    "factor on costs of self-loops and of leaving them. -1: the toolkit's (Sphinx 1, Kaldi 0.1)") \
  X(F32, silence_prob, 0, 0, 1, "",                                                               \
    "probability of optional silence. 0: the toolkit's (Sphinx 0.005, Kaldi 0.5)")                \
  X(I32, num_threads, 0, 0, 4096, "threads", "utterances aligned in parallel; 0: one per processor")
WF_DECLARE_OPTIONS(hmm_align, WF_HMM_ALIGN_OPTIONS)

/* One utterance. Everything is borrowed for the call. */
typedef struct wf_hmm_align_input {
  const char *key;          /* for messages; NULL: its place in the batch */
  wf_scores scores;         /* log-likelihoods, natural logarithm; columns of the model */
  const char *const *words; /* [num_words] the transcript, words of the lexicon */
  size_t num_words;
  uint64_t reserved[4];
} wf_hmm_align_input;

/* A word or phone in the frames [start, end). */
typedef struct wf_aligned_unit {
  const char *text; /* owned by the alignment */
  int32_t start_frame, end_frame;
} wf_aligned_unit;

/* Owned by the caller: wf_hmm_alignment_free. */
typedef struct wf_hmm_alignment {
  wf_status
      status; /* WF_OK, or the error of this utterance. After an error only `message` is valid */
  char message[256];
  wf_aligned_unit *words; /* [num_words] those of the transcript */
  size_t num_words;
  wf_aligned_unit *phones; /* [num_phones] of all frames, silence included */
  size_t num_phones;
  int64_t num_frames;
  double acoustic_cost; /* minus the sum of the path's scores */
  double graph_cost;    /* -ln P of transitions, silences and pronunciations */
  void *memory;         /* of the texts */
  uint64_t reserved[4];
} wf_hmm_alignment;
WF_API void wf_hmm_alignment_free(wf_hmm_alignment *alignment);
/* Aligns `count` utterances. `lexicon` was read with wf_hmm_phones. results[i], an array of the
 * caller, receives the result of utterance i, also if that utterance failed: a word that the
 * lexicon lacks, too few columns or frames, no complete path in the widest beam, NaN, scores in GPU
 * memory. If the call itself fails (bad options, out of memory, cancelled), all results are NULL.
 * No other call may use `hmm` meanwhile. */
WF_API wf_status wf_align_hmm(wf_hmm *hmm, const wf_lexicon *lexicon,
                              const wf_hmm_align_input *inputs, size_t count,
                              const wf_hmm_align_options *options, wf_hmm_alignment **results,
                              wf_error *err);

/* =========================================================================================
 * Old names, which go in 0.4 (docs/migrating/0.3.md)
 * ========================================================================================= */

static inline WF__OLD(wf_lexicon_skipped) size_t wf_lexicon_num_skipped(const wf_lexicon *lexicon) {
  return (size_t)wf_lexicon_skipped(lexicon)->count;
}

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_GRAPH_H */
