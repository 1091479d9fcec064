/* warpfst_io.h - acoustic scores and results as files, transcripts, word error rate. The rules at
 * the top of warpfst.h hold here, too. */
#ifndef WARPFST_IO_H
#define WARPFST_IO_H

#include "warpfst.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * Acoustic scores, results, word error rate
 * ========================================================================================= */

/* Scores of one utterance: log-likelihoods or log-posteriors, frame t, column c at data[t *
 * num_columns + c]. 0 frames are possible (then num_columns may be 0 too). Owns key and data:
 * wf_matrix_clear. */
typedef struct wf_matrix {
  char *key; /* utterance id, NUL-ended UTF-8 */
  float *data;
  int64_t num_frames;
  int32_t num_columns;
} wf_matrix;
/* Frees what the matrix owns and zeroes it. The structure itself is the caller's. */
WF_API void wf_matrix_clear(wf_matrix *matrix);
/* Are all scores usable: no NaN, no +infinity (-infinity is: impossible)? WF_ERR_FORMAT names the
 * first bad frame and column. */
WF_API wf_status wf_matrix_check(const wf_matrix *matrix, wf_error *err);

/* A stream of score matrices from one or more sources, one after the other. A source is
 *     scores.ark              Kaldi archive, text or binary: float (FM), double (DM), compressed
 *                             (CM, CM2, CM3); plain or gzipped
 *     scores.scp              Kaldi script file: lines `key path`, `key path:byte_offset`, either
 *                             with rows `[first:last]` or rows and columns
 *                             `[first:last,first:last]` behind it, counted from 0 and inclusive;
 *                             `path` may be a .npy or .sen file
 *     scores.npy              [frames, columns] or [1, frames, columns] of float16/32/64,
 *                             int8/16/32, uint8/16/32; the key is the file's name without folder
 *                             and .npy
 *     scores.sen              senone scores as pocketsphinx_batch -senlogdir writes them (costs in
 *                             units of 1024 ln(logbase)), as log-likelihoods
 *     folder                  every .npy and .sen in it, sorted by name
 *     -                       archive from standard input, read as it arrives
 * recognised by content, or told by Kaldi's prefixes (`ark:`, `scp:`, `ark,t:`, `scp,p:` and so
 * on). Paths are relative to the current folder. Pipes ("cmd |") are refused: nothing is executed.
 * A reader is used by one thread at a time. */
typedef struct wf_score_reader wf_score_reader;
#define WF_SCORE_READER_OPTIONS(X)                                                                 \
  X(F32, scale, 1, -1e30, 1e30, "",                                                                \
    "factor on every score as read; for integer .npy, the size of one unit (negative if they are " \
    "costs)")
WF_DECLARE_OPTIONS(score_reader, WF_SCORE_READER_OPTIONS)

/* Errors at once: a source that does not exist, a folder without such files, a malformed script
 * file, a pipe. Archives are opened when their turn comes. */
WF_API wf_status wf_score_reader_open(const char *const *sources, size_t num_sources,
                                      const wf_score_reader_options *options, wf_score_reader **out,
                                      wf_error *err);
/* Next utterance into `*out` (the caller's, to be cleared; what it held before is not freed), or
 * `*done` at the end. An error concerns one utterance, and the next call goes on behind it;
 * out->key then names it if its key was readable, else it is NULL. Where an archive cannot be
 * followed beyond its bad place, the rest of that archive is lost (wf_score_reader_lost_rest tells
 * so until the next call) and the next call goes on with the next source. */
WF_API wf_status wf_score_reader_next(wf_score_reader *reader, wf_matrix *out, bool *done,
                                      wf_error *err);
WF_API bool wf_score_reader_lost_rest(const wf_score_reader *reader);
/* Share of the input read so far, [0, 1], for progress; negative if not known (a pipe). */
WF_API double wf_score_reader_fraction(const wf_score_reader *reader);
WF_API void wf_score_reader_free(wf_score_reader *reader);

/* Writes matrices as a Kaldi archive, or as a folder of KEY.npy (float32; made if it is not there).
 */
#define WF_MATRIX_WRITER_OPTIONS(X)                                                     \
  X(ENUM, format, 0, 0, 0, "ark|text|compressed|npy",                                   \
    "Kaldi binary float, Kaldi text, Kaldi compressed (8 bits, lossy), folder of .npy") \
  X(STR, scp, 0, 0, 0, "FILE", "also write a Kaldi script file that points into the archive")
WF_DECLARE_OPTIONS(matrix_writer, WF_MATRIX_WRITER_OPTIONS)
typedef struct wf_matrix_writer wf_matrix_writer;
WF_API wf_status wf_matrix_writer_open(const char *path, const wf_matrix_writer_options *options,
                                       wf_matrix_writer **out, wf_error *err);
/* Errors: a key that the format cannot hold (blanks; '/' for .npy), infinities or NaN in compressed
 * form. Nothing is written then. */
WF_API wf_status wf_matrix_writer_put(wf_matrix_writer *writer, const wf_matrix *matrix,
                                      wf_error *err);
/* Completes and frees, also when it fails. */
WF_API wf_status wf_matrix_writer_close(wf_matrix_writer *writer, wf_error *err);
/* Frees and drops what was written (NULL is fine); .npy files already complete stay. */
WF_API void wf_matrix_writer_abort(wf_matrix_writer *writer);

/* One recognised utterance, as the result writer takes it. Everything is borrowed. */
typedef struct wf_timed_word {
  const char *text;
  int32_t start_frame, end_frame; /* half-open */
  float confidence;               /* in [0, 1]; NaN or negative: none */
} wf_timed_word;
typedef struct wf_alternative {
  const wf_timed_word *words; /* [num_words] start_frame -1: without times */
  size_t num_words;
  double cost, graph_cost, acoustic_cost; /* nats */
} wf_alternative;
typedef struct wf_hypothesis {
  const char *key;
  const wf_timed_word *words; /* [num_words] */
  size_t num_words;
  int64_t num_frames;
  double cost, graph_cost, acoustic_cost; /* nats */
  const char *const *flags;               /* [num_flags] names such as "not_final" */
  size_t num_flags;
  const char *error;  /* NULL, or why there is no result */
  double scorer_cost; /* part of cost; 0: no scorer */
  const wf_alternative
      *alternatives; /* [num_alternatives] best first: "nbest" in JSON; no other format has them */
  size_t num_alternatives;
  uint64_t reserved[4];
} wf_hypothesis;

/* Writes hypotheses in one of
 *     text   `key word word ...`, as Kaldi                             plain  `word word ...`
 *     ctm    `key channel start duration word [confidence]`, seconds   json   one object a line:
 *            key, text, words with times in seconds, costs, flags, nbest
 *     trn    `word word ... (key)`, as sclite
 * A failed utterance is an empty line in text, plain and trn, nothing in CTM, and an object with
 * "error" in JSON. JSON is valid whatever the bytes of words are: what is not UTF-8 becomes U+FFFD.
 * On standard output each utterance appears at once. */
#define WF_RESULT_WRITER_OPTIONS(X)                                                            \
  X(ENUM, format, 0, 0, 0, "text|plain|ctm|json|trn", "form of the results")                   \
  X(F32, frame_shift, 0.01, 1e-6, 1e6, "seconds", "duration of a frame of the score matrices") \
  X(STR, channel, 0, 0, 0, "NAME", "channel in CTM; 1 if not given")
WF_DECLARE_OPTIONS(result_writer, WF_RESULT_WRITER_OPTIONS)
typedef struct wf_result_writer wf_result_writer;
WF_API wf_status wf_result_writer_open(const char *path, const wf_result_writer_options *options,
                                       wf_result_writer **out, wf_error *err);
WF_API wf_status wf_result_writer_put(wf_result_writer *writer, const wf_hypothesis *hypothesis,
                                      wf_error *err);
/* Completes and frees, also when it fails. */
WF_API wf_status wf_result_writer_close(wf_result_writer *writer, wf_error *err);
WF_API void wf_result_writer_abort(wf_result_writer *writer);

/* Word strings by utterance, read from any of the forms above: Kaldi text, sclite trn, CTM (words
 * of a key in the order of the lines), JSON lines ("key" and "text"; objects with "error" and no
 * text are left out). AUTO looks at the content: the special form that every line fits, else Kaldi
 * text. Immutable. Errors: key given twice (not in CTM), line without a key, not UTF-8,
 * alternatives `{ a / b }` in trn (not supported). */
typedef enum wf_transcript_format {
  WF_TRANSCRIPT_AUTO = 0,
  WF_TRANSCRIPT_TEXT = 1,
  WF_TRANSCRIPT_TRN = 2,
  WF_TRANSCRIPT_CTM = 3,
  WF_TRANSCRIPT_JSON = 4,
} wf_transcript_format;
typedef struct wf_transcript {
  const char *key;
  const char *const *words; /* [num_words] */
  size_t num_words;
} wf_transcript;
typedef struct wf_transcripts wf_transcripts;
WF_API wf_status wf_transcripts_read(const char *path, wf_transcript_format format,
                                     wf_transcripts **out, wf_error *err);
/* The form that was read, never AUTO. */
WF_API wf_transcript_format wf_transcripts_format(const wf_transcripts *transcripts);
WF_API size_t wf_transcripts_count(const wf_transcripts *transcripts);
/* i-th utterance in the order of the file; its arrays live as long as the table. */
WF_API wf_transcript wf_transcripts_at(const wf_transcripts *transcripts, size_t i);
/* Index of a key, or -1. */
WF_API int64_t wf_transcripts_find(const wf_transcripts *transcripts, const char *key);
WF_API void wf_transcripts_free(wf_transcripts *transcripts);

/* Word error rate. Alignment by Levenshtein distance with the costs of NIST's sclite (insertion 3,
 * deletion 3, substitution 4) and its choice among equals (traced back from the end: pair, then
 * insertion, then deletion), so that counts and alignments are sclite's. */
#define WF_WER_OPTIONS(X)                                                    \
  X(BOOL, ignore_case, 0, 0, 1, "",                                          \
    "A-Z and a-z are the same (sclite's default; without it, as sclite -s)") \
  X(BOOL, cer, 0, 0, 1, "",                                                  \
    "count characters (Unicode code points, blanks left out) instead of words, as sclite -c")
WF_DECLARE_OPTIONS(wer, WF_WER_OPTIONS)
typedef struct wf_wer wf_wer; /* totals and the last alignment; one thread at a time */
typedef struct wf_wer_counts {
  uint64_t num_words; /* of the reference: correct + substitutions + deletions */
  uint64_t num_correct, num_substitutions, num_deletions, num_insertions;
  uint64_t num_utterances, num_wrong_utterances; /* wrong: at least one error */
} wf_wer_counts;
/* One step of an alignment: '=' correct, 'S' substitution, 'D' deletion (hypothesis NULL), 'I'
 * insertion (reference NULL). */
typedef struct wf_wer_pair {
  char step;
  const char *reference, *hypothesis;
} wf_wer_pair;
WF_API wf_status wf_wer_create(const wf_wer_options *options, wf_wer **out, wf_error *err);
/* Words equal to `word` are dropped from both sides before the alignment ("<unk>", "[noise]");
 * compared as words are. */
WF_API wf_status wf_wer_ignore(wf_wer *wer, const char *word, wf_error *err);
/* Aligns one utterance and adds it to the totals. `hypothesis` NULL: no words. `*out_counts` (may
 * be NULL): of this utterance. Time and memory (2 bits) go with the product of the lengths; beyond
 * 2^33 WF_ERR_LIMIT. */
WF_API wf_status wf_wer_add(wf_wer *wer, const wf_transcript *reference,
                            const wf_transcript *hypothesis, wf_wer_counts *out_counts,
                            wf_error *err);
/* Alignment of the utterance added last; valid until the next call. */
WF_API const wf_wer_pair *wf_wer_alignment(const wf_wer *wer, size_t *num_pairs);
WF_API wf_wer_counts wf_wer_totals(const wf_wer *wer);
/* (substitutions + deletions + insertions) / words in percent; 0 if there are no words and no
 * errors, +infinity if there are errors only. */
WF_API double wf_wer_percent(const wf_wer_counts *counts);
WF_API void wf_wer_free(wf_wer *wer);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_IO_H */
