/* warpfst_io.h - outputs, files of acoustic scores and results, transcripts, word error rate. The
 * rules at the top of warpfst.h apply here too. */
#ifndef WARPFST_IO_H
#define WARPFST_IO_H

#include "warpfst.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * 1  Outputs
 * ========================================================================================= */

/* An output, as all writers of the library write it. A file gets its name when it is complete, and
 * replaces a file of that name; a symbolic link stays and its file is replaced. A name that ends in
 * ".gz" makes it gzip. A FIFO (which waits for its reader), a device, "-" and /dev/stdout get the
 * bytes as they come. Nothing calls fsync: a crash of the machine soon after close can lose the
 * file.
 */
typedef struct wf_output wf_output;
/* Errors: WF_ERR_IO; WF_ERR_ARGUMENT and WF_ERR_UNSUPPORTED for Kaldi's "ark:PATH" and "|COMMAND".
 */
WF_API wf_status wf_output_open(const char *path, wf_output **out, wf_error *err);
/* The first write error is kept; wf_output_close reports it. */
WF_API void wf_output_write(wf_output *output, const void *data, size_t size);
/* Completes the output and frees it, also on failure. After a failure the file is as before. */
WF_API wf_status wf_output_close(wf_output *output, wf_error *err);
/* Frees the output; the file is as before. NULL is allowed. */
WF_API void wf_output_abort(wf_output *output);
/* Removes the unfinished files of this process, for a signal handler that ends it. Needed only on
 * file systems without O_TMPFILE; elsewhere unfinished files have no name. */
WF_API void wf_remove_unfinished_outputs(void);

/* =========================================================================================
 * 2  Acoustic scores, results, word error rate
 * ========================================================================================= */

/* Scores of one utterance: log-likelihoods or log-posteriors. Frame t, column c is data[t *
 * num_columns + c]. num_frames may be 0; num_columns may then be 0 too. Owns key and data:
 * wf_matrix_clear. */
typedef struct wf_matrix {
  char *key; /* utterance id, NUL-terminated UTF-8 */
  float *data;
  int64_t num_frames;
  int32_t num_columns;
} wf_matrix;
/* Frees key and data and zeroes the structure. The caller owns the structure itself. */
WF_API void wf_matrix_clear(wf_matrix *matrix);
/* Checks the scores for NaN and +infinity. -infinity is valid (impossible). WF_ERR_FORMAT names the
 * first bad frame and column. */
WF_API wf_status wf_matrix_check(const wf_matrix *matrix, wf_error *err);

/* A stream of score matrices from one or more sources, in order. A source is
 *     scores.ark              Kaldi archive, text or binary: float (FM), double (DM),
 *                             compressed (CM, CM2, CM3); plain or gzipped
 *     scores.scp              Kaldi script file: lines `key path` or `key path:byte_offset`,
 *                             optionally followed by rows `[first:last]` or rows and columns
 *                             `[first:last,first:last]`, counted from 0, inclusive; `path` may be
 *                             a .npy or .sen file
 *     scores.npy              [frames, columns] or [1, frames, columns] of float16/32/64,
 *                             int8/16/32, uint8/16/32; the key is the file's name without folder
 *                             and .npy
 *     scores.sen              senone scores as written by pocketsphinx_batch -senlogdir (costs in
 *                             units of 1024 ln(logbase)), converted to log-likelihoods
 *     folder                  every .npy and .sen in it, sorted by name
 *     -                       archive from standard input, read as a stream
 * The type is detected from the content, or given by Kaldi's prefixes (`ark:`, `scp:`, `ark,t:`,
 * `scp,p:` and so on). Paths are relative to the current folder. Pipes ("cmd |") are an error; no
 * command is executed. A reader is used by one thread at a time. */
typedef struct wf_score_reader wf_score_reader;
#define WF_SCORE_READER_OPTIONS(X)  \
  X(F32, scale, 1, -1e30, 1e30, "", \
    "factor on every score; for integer .npy, the value of one unit (negative for costs)")
WF_DECLARE_OPTIONS(score_reader, WF_SCORE_READER_OPTIONS)

/* Errors: a source that does not exist, a folder without score files, a malformed script file, a
 * pipe. An archive is not opened before it is reached. */
WF_API wf_status wf_score_reader_open(const char *const *sources, size_t num_sources,
                                      const wf_score_reader_options *options, wf_score_reader **out,
                                      wf_error *err);
/* Reads the next utterance into `*out`, or sets `*done` at the end. The caller clears `*out`; its
 * previous content is not freed. An error concerns one utterance: the next call continues after it.
 * out->key then names the utterance, or is NULL if the key was not readable. If an archive cannot
 * be read beyond the error, its rest is skipped: wf_score_reader_lost_rest returns true until the
 * next call, which continues with the next source. */
WF_API wf_status wf_score_reader_next(wf_score_reader *reader, wf_matrix *out, bool *done,
                                      wf_error *err);
WF_API bool wf_score_reader_lost_rest(const wf_score_reader *reader);
/* Fraction of the input read so far, in [0, 1]. Negative if unknown (a pipe). */
WF_API double wf_score_reader_fraction(const wf_score_reader *reader);
WF_API void wf_score_reader_free(wf_score_reader *reader);

/* Writes matrices as a Kaldi archive or as a folder of KEY.npy (float32). The folder is created if
 * missing. */
enum { WF_MATRIX_ARK, WF_MATRIX_TEXT, WF_MATRIX_COMPRESSED, WF_MATRIX_NPY };
#define WF_MATRIX_WRITER_OPTIONS(X)                                                     \
  X(ENUM, format, 0, 0, 0, "ark|text|compressed|npy",                                   \
    "Kaldi binary float, Kaldi text, Kaldi compressed (8 bits, lossy), folder of .npy") \
  X(STR, scp, 0, 0, 0, "FILE", "also write a Kaldi script file that refers to the archive")
WF_DECLARE_OPTIONS(matrix_writer, WF_MATRIX_WRITER_OPTIONS)
typedef struct wf_matrix_writer wf_matrix_writer;
WF_API wf_status wf_matrix_writer_open(const char *path, const wf_matrix_writer_options *options,
                                       wf_matrix_writer **out, wf_error *err);
/* Errors: a key that the format cannot represent (blanks; '/' for .npy), infinity or NaN in
 * compressed format. On an error nothing is written. */
WF_API wf_status wf_matrix_writer_put(wf_matrix_writer *writer, const wf_matrix *matrix,
                                      wf_error *err);
/* Completes the output and frees the writer, even on failure. */
WF_API wf_status wf_matrix_writer_close(wf_matrix_writer *writer, wf_error *err);
/* Frees the writer (NULL is allowed) and removes its output. Complete .npy files stay. */
WF_API void wf_matrix_writer_abort(wf_matrix_writer *writer);

/* A recognised utterance for the result writer. All pointers are borrowed. */
typedef struct wf_timed_word {
  const char *text;
  int32_t start_frame, end_frame; /* half-open */
  float confidence;               /* in [0, 1]; NaN or negative: not available */
} wf_timed_word;
typedef struct wf_alternative {
  const wf_timed_word *words; /* [num_words]; start_frame -1: no times */
  size_t num_words;
  double cost, graph_cost, acoustic_cost; /* nats */
} wf_alternative;
typedef struct wf_hypothesis {
  const char *key;
  const wf_timed_word *words; /* [num_words] */
  size_t num_words;
  int64_t num_frames;
  double cost, graph_cost, acoustic_cost; /* nats */
  const char *const *flags;               /* [num_flags]; names such as "not_final" */
  size_t num_flags;
  const char *error;  /* message of a failed utterance; NULL: no error */
  double scorer_cost; /* part of cost; 0 without a scorer */
  const wf_alternative
      *alternatives; /* [num_alternatives], best first: "nbest" in JSON; other formats omit them */
  size_t num_alternatives;
  uint64_t reserved[4];
} wf_hypothesis;

/* Writes hypotheses. Formats:
 *     text   `key word word ...`, as Kaldi
 *     plain  `word word ...`
 *     ctm    `key channel start duration word [confidence]`, in seconds
 *     json   one object per line: key, text, words with times in seconds, costs, flags, nbest
 *     trn    `word word ... (key)`, as sclite
 *     srt, vtt  captions of at most two lines and 6 seconds. A file holds those of one utterance,
 *            and a second one is an error. If the path is a folder or ends with '/', each
 *            utterance gets a file KEY.srt or KEY.vtt in it
 * A failed utterance is an empty line in text, plain and trn. CTM and captions omit it. JSON has an
 * object with "error". JSON output is always valid: bytes that are not UTF-8 become U+FFFD.
 * Standard output is flushed after each utterance. */
enum {
  WF_RESULTS_TEXT,
  WF_RESULTS_PLAIN,
  WF_RESULTS_CTM,
  WF_RESULTS_JSON,
  WF_RESULTS_TRN,
  WF_RESULTS_SRT,
  WF_RESULTS_VTT
};
#define WF_RESULT_WRITER_OPTIONS(X)                                                            \
  X(ENUM, format, 0, 0, 0, "text|plain|ctm|json|trn|srt|vtt", "format of the results")         \
  X(F32, frame_shift, 0.01, 1e-6, 1e6, "seconds", "duration of a frame of the score matrices") \
  X(STR, channel, 0, 0, 0, "NAME", "channel in CTM (default: 1)")
WF_DECLARE_OPTIONS(result_writer, WF_RESULT_WRITER_OPTIONS)
typedef struct wf_result_writer wf_result_writer;
WF_API wf_status wf_result_writer_open(const char *path, const wf_result_writer_options *options,
                                       wf_result_writer **out, wf_error *err);
WF_API wf_status wf_result_writer_put(wf_result_writer *writer, const wf_hypothesis *hypothesis,
                                      wf_error *err);
/* Completes the output and frees the writer, even on failure. */
WF_API wf_status wf_result_writer_close(wf_result_writer *writer, wf_error *err);
WF_API void wf_result_writer_abort(wf_result_writer *writer);

/* A tier of a TextGrid file: words in the order of time, which do not overlap. */
typedef struct wf_textgrid_tier {
  const char *name;
  const wf_timed_word *words; /* [num_words] with times */
  size_t num_words;
} wf_textgrid_tier;
/* Writes the file of an utterance for Praat. Gaps between words become intervals without text.
 * `frame_shift` in seconds. */
WF_API wf_status wf_textgrid_write(const char *path, const wf_textgrid_tier *tiers,
                                   size_t num_tiers, int64_t num_frames, float frame_shift,
                                   wf_error *err);

/* Reference or hypothesis words by utterance. Formats: Kaldi text, sclite trn, CTM (words of a key
 * in line order), JSON lines ("key" and "text"; objects with "error" and no text are skipped). AUTO
 * chooses the format other than Kaldi text that every line fits, or Kaldi text if there is none.
 * Immutable. Errors: a repeated key (except in CTM), a line without a key, bytes that are not
 * UTF-8, alternatives `{ a / b }` in trn (not supported). */
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
/* The detected format, never AUTO. */
WF_API wf_transcript_format wf_transcripts_format(const wf_transcripts *transcripts);
WF_API size_t wf_transcripts_count(const wf_transcripts *transcripts);
/* The i-th utterance in file order. Its arrays are valid for the lifetime of the table. */
WF_API wf_transcript wf_transcripts_at(const wf_transcripts *transcripts, size_t i);
/* Index of a key, or -1. */
WF_API int64_t wf_transcripts_find(const wf_transcripts *transcripts, const char *key);
WF_API void wf_transcripts_free(wf_transcripts *transcripts);

/* Word error rate. Alignments minimize the Levenshtein distance with the costs of NIST's sclite:
 * insertion 3, deletion 3, substitution 4. Ties are resolved as in sclite: tracing back from the
 * end, a pair comes before an insertion, an insertion before a deletion. Counts and alignments
 * therefore equal sclite's. */
#define WF_WER_OPTIONS(X)                                               \
  X(BOOL, ignore_case, 0, 0, 1, "",                                     \
    "treat A-Z and a-z as the same (sclite's default; off: sclite -s)") \
  X(BOOL, cer, 0, 0, 1, "",                                             \
    "count characters (Unicode code points without blanks) instead of words, as sclite -c")
WF_DECLARE_OPTIONS(wer, WF_WER_OPTIONS)
typedef struct wf_wer wf_wer; /* totals and the last alignment; one thread at a time */
typedef struct wf_wer_counts {
  uint64_t num_words; /* reference words: correct + substitutions + deletions */
  uint64_t num_correct, num_substitutions, num_deletions, num_insertions;
  uint64_t num_utterances, num_wrong_utterances; /* wrong: has at least one error */
} wf_wer_counts;
/* A step of an alignment: '=' correct, 'S' substitution, 'D' deletion (hypothesis is NULL), 'I'
 * insertion (reference is NULL). */
typedef struct wf_wer_pair {
  char step;
  const char *reference, *hypothesis;
} wf_wer_pair;
WF_API wf_status wf_wer_create(const wf_wer_options *options, wf_wer **out, wf_error *err);
/* Removes words equal to `word` ("<unk>", "[noise]") from both sides before the alignment.
 * ignore_case applies. */
WF_API wf_status wf_wer_ignore(wf_wer *wer, const char *word, wf_error *err);
/* Aligns an utterance and adds it to the totals. `hypothesis` NULL: no words. `*out_counts` (may be
 * NULL) receives the counts of this utterance. Time is proportional to the product of the lengths;
 * memory is 2 bits times the product. Errors: a product above 2^33 (WF_ERR_LIMIT). */
WF_API wf_status wf_wer_add(wf_wer *wer, const wf_transcript *reference,
                            const wf_transcript *hypothesis, wf_wer_counts *out_counts,
                            wf_error *err);
/* Returns the alignment of the last utterance. Valid until the next call. */
WF_API const wf_wer_pair *wf_wer_alignment(const wf_wer *wer, size_t *num_pairs);
WF_API wf_wer_counts wf_wer_totals(const wf_wer *wer);
/* Returns 100 * (substitutions + deletions + insertions) / words. It is 0 if there are no words and
 * no errors, and +infinity if there are errors but no words. */
WF_API double wf_wer_percent(const wf_wer_counts *counts);
WF_API void wf_wer_free(wf_wer *wer);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_IO_H */
