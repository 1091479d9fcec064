/* cmd_score.c - `warpfst score`: word error rate of hypotheses against references. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"

struct job {
  wf_transcripts *reference, *hypothesis;
  wf_wer *wer;
  bool json, per_utt, align, skip_missing;
  size_t num_missing, num_extra;
};

/* --- printing ---------------------------------------------------------------------------- */

/* Width on a terminal, with one column for each code point. */
static int text_width(const char *text) {
  int width = 0;
  for (; *text != '\0'; text++) width += (*text & 0xC0) != 0x80;
  return width;
}

static void print_padded(const char *text, int width) {
  printf(" %s", text);
  for (int i = text_width(text); i < width; i++) putchar(' ');
}

static const char *stars(int count) {
  static const char text[] = "********************************";
  int most = (int)sizeof text - 1;
  return text + most - (count < most ? count : most);
}

static void print_alignment(const wf_wer *wer, const char *key, const wf_wer_counts *counts) {
  size_t size;
  const wf_wer_pair *pairs = wf_wer_alignment(wer, &size);
  printf("id: (%s)\nScores: (#C #S #D #I) %llu %llu %llu %llu\n", key,
         (unsigned long long)counts->num_correct, (unsigned long long)counts->num_substitutions,
         (unsigned long long)counts->num_deletions, (unsigned long long)counts->num_insertions);
  static const char *const heads[3] = {"REF: ", "HYP: ", "Eval:"};
  for (int line = 0; line < 3; line++) {
    printf("%s", heads[line]);
    for (size_t i = 0; i < size; i++) {
      int r = pairs[i].reference != NULL ? text_width(pairs[i].reference) : 0,
          h = pairs[i].hypothesis != NULL ? text_width(pairs[i].hypothesis) : 0;
      int width = r > h ? r : h;
      char step[2] = {pairs[i].step == '=' ? ' ' : pairs[i].step, '\0'};
      const char *text = line == 0 ? pairs[i].reference : line == 1 ? pairs[i].hypothesis : step;
      print_padded(text != NULL ? text : stars(width), width);
    }
    printf("\n");
  }
  printf("\n");
}

static void print_json_counts(const wf_wer_counts *counts) {
  printf("\"wer\": ");
  cli_json_number(stdout, "%.2f", wf_wer_percent(counts));
  printf(", \"words\": %llu, \"correct\": %llu, \"sub\": %llu, \"del\": %llu, \"ins\": %llu",
         (unsigned long long)counts->num_words, (unsigned long long)counts->num_correct,
         (unsigned long long)counts->num_substitutions, (unsigned long long)counts->num_deletions,
         (unsigned long long)counts->num_insertions);
}

static void print_utterance(const struct job *job, const char *key, const wf_wer_counts *counts,
                            bool first) {
  if (job->json && (job->per_utt || job->align)) {
    printf("%s{\"key\": ", first ? "" : ", ");
    cli_json_string(stdout, key);
    printf(", ");
    print_json_counts(counts);
    printf("}");
  } else if (job->align) {
    print_alignment(job->wer, key, counts);
  } else if (job->per_utt) {
    printf("%s\t%llu\t%llu\t%llu\t%llu\t%llu\t", key, (unsigned long long)counts->num_words,
           (unsigned long long)counts->num_correct, (unsigned long long)counts->num_substitutions,
           (unsigned long long)counts->num_deletions, (unsigned long long)counts->num_insertions);
    printf("%.2f\n", wf_wer_percent(counts));
  }
}

static void print_totals(const struct job *job, const char *unit) {
  wf_wer_counts t = wf_wer_totals(job->wer);
  uint64_t errors = t.num_substitutions + t.num_deletions + t.num_insertions;
  double sentences =
      t.num_utterances != 0 ? 100.0 * (double)t.num_wrong_utterances / (double)t.num_utterances : 0;
  if (job->json) {
    printf("%s", job->per_utt || job->align ? "], " : "{");
    print_json_counts(&t);
    printf(
        ", \"ser\": %.2f, \"utterances\": %llu, \"wrong_utterances\": %llu, \"missing\": %zu, "
        "\"extra\": %zu}\n",
        sentences, (unsigned long long)t.num_utterances, (unsigned long long)t.num_wrong_utterances,
        job->num_missing, job->num_extra);
    return;
  }
  printf("%%%s %.2f [ %llu / %llu, %llu ins, %llu del, %llu sub ]\n", unit, wf_wer_percent(&t),
         (unsigned long long)errors, (unsigned long long)t.num_words,
         (unsigned long long)t.num_insertions, (unsigned long long)t.num_deletions,
         (unsigned long long)t.num_substitutions);
  printf("%%SER %.2f [ %llu / %llu ]\n", sentences, (unsigned long long)t.num_wrong_utterances,
         (unsigned long long)t.num_utterances);
}

/* --- scoring ----------------------------------------------------------------------------- */

/* Prints the first 20 utterances of `from` that are not in `in` on stderr, and returns the number
 * of all of them. */
static size_t report_missing(const wf_transcripts *from, const wf_transcripts *in,
                             const char *what) {
  enum { MOST = 20 };
  size_t count = 0;
  for (size_t i = 0; i < wf_transcripts_count(from); i++) {
    wf_transcript t = wf_transcripts_at(from, i);
    if (wf_transcripts_find(in, t.key) >= 0) continue;
    if (count++ < MOST) cli_note("%s: %s", what, t.key);
  }
  if (count > MOST) cli_note("%s: %zu more", what, count - MOST);
  return count;
}

static int score_all(struct job *job) {
  wf_error err = {0};
  bool first = true;
  if (job->json && (job->per_utt || job->align))
    printf("{\"per_utterance\": [");
  else if (job->per_utt && !job->align)
    printf("key\twords\tcorrect\tsub\tdel\tins\terror_rate\n");
  for (size_t i = 0; i < wf_transcripts_count(job->reference); i++) {
    wf_transcript r = wf_transcripts_at(job->reference, i), h = {0};
    int64_t at = wf_transcripts_find(job->hypothesis, r.key);
    if (at < 0 && job->skip_missing) continue;
    if (at >= 0) h = wf_transcripts_at(job->hypothesis, (size_t)at);
    wf_wer_counts counts;
    if (wf_wer_add(job->wer, &r, at >= 0 ? &h : NULL, &counts, &err) != WF_OK)
      return cli_fail(&err);
    print_utterance(job, r.key, &counts, first);
    first = false;
  }
  return -1;
}

static int check_coverage(struct job *job) {
  /* CTM has no line for an utterance without words, so a missing key is not an error there. */
  bool ctm = wf_transcripts_format(job->hypothesis) == WF_TRANSCRIPT_CTM;
  const char *what =
      job->skip_missing ? "no hypothesis, left out" : "no hypothesis, counted as deletions";
  if (!ctm) job->num_missing = report_missing(job->reference, job->hypothesis, what);
  job->num_extra = report_missing(job->hypothesis, job->reference, "no reference, left out");
  size_t common = wf_transcripts_count(job->hypothesis) - job->num_extra;
  if (common == 0 &&
      wf_transcripts_count(job->reference) + wf_transcripts_count(job->hypothesis) > 0) {
    cli_note("no utterance is in both files");
    return CLI_INPUT;
  }
  return -1;
}

/* Ignores the words of a file: the first field of each line. */
static int read_filter(wf_wer *wer, const char *path) {
  wf_error err = {0};
  wf_transcripts *words;
  if (wf_transcripts_read(path, WF_TRANSCRIPT_TEXT, &words, &err) != WF_OK) return cli_fail(&err);
  for (size_t i = 0; i < wf_transcripts_count(words); i++) {
    if (wf_wer_ignore(wer, wf_transcripts_at(words, i).key, &err) != WF_OK) {
      wf_transcripts_free(words);
      return cli_fail(&err);
    }
  }
  wf_transcripts_free(words);
  return -1;
}

static int run(struct job *job, const char *unit, const cli_strs *ignored, const char *filter) {
  wf_error err = {0};
  int code = -1;
  for (size_t i = 0; i < ignored->size; i++)
    if (wf_wer_ignore(job->wer, ignored->items[i], &err) != WF_OK) return cli_fail(&err);
  if (filter != NULL) code = read_filter(job->wer, filter);
  if (code < 0) code = check_coverage(job);
  if (code < 0) code = score_all(job);
  if (code >= 0) return code;
  print_totals(job, unit);
  return (job->num_missing > 0 || job->num_extra > 0) && !job->skip_missing ? CLI_NO : CLI_OK;
}

static int format_of(const char *name) {
  static const char *const names[] = {"auto", "text", "trn", "ctm", "json"};
  for (int i = 0; i < 5; i++)
    if (strcmp(name, names[i]) == 0) return i;
  return -1;
}

int cmd_score(int argc, char **argv) {
  const char *ref_format = "auto", *hyp_format = "auto", *filter = NULL, *missing = "delete";
  cli_strs ignored = {0};
  struct job job = {0};
  wf_wer_options options;
  cli_parser parser = {
      .usage = "REF HYP",
      .about =
          "Computes the word error rate of hypotheses against references, aligned as by NIST's "
          "sclite (costs: insertion 3, deletion 3, substitution 4).\n"
          "REF and HYP: Kaldi text (`key word word`), sclite trn (`word word "
          "(key)`), CTM, or JSON lines with \"key\" and \"text\".\n"
          "The format is detected from the content. Letter case matters unless --ignore-case is "
          "given (sclite ignores case by default).\n"
          "Exit code 1: an utterance is in only one of the files (unless HYP is CTM, which has no "
          "lines for utterances without words).",
      .min_args = 2,
      .max_args = 2};
  cli_flag_bool(&parser, "json", 0, &job.json, "print one JSON object");
  cli_flag_bool(&parser, "per-utt", 0, &job.per_utt,
                "also print the counts of each utterance, separated by tabs");
  cli_flag_bool(&parser, "align", 0, &job.align,
                "also print reference and hypothesis of each utterance, aligned");
  cli_flag_strs(&parser, "ignore", 0, &ignored, "WORD",
                "remove this word from references and hypotheses");
  cli_flag_str(&parser, "filter", 0, &filter, "FILE",
               "remove the words of this file: the first field of each line");
  cli_flag_str(&parser, "missing", 0, &missing, "delete|skip",
               "utterances without a hypothesis: count all words as deletions, or skip the "
               "utterance (default: delete)");
  cli_flag_str(&parser, "ref-format", 0, &ref_format, "auto|text|trn|ctm|json",
               "format of REF (default: auto)");
  cli_flag_str(&parser, "hyp-format", 0, &hyp_format, "auto|text|trn|ctm|json",
               "format of HYP (default: auto)");
  cli_table(&parser, "wer", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (format_of(ref_format) < 0 || format_of(hyp_format) < 0)
    return cli_usage("unknown format '%s', expected auto, text, trn, ctm or json",
                     format_of(ref_format) < 0 ? ref_format : hyp_format);
  if (strcmp(missing, "delete") != 0 && strcmp(missing, "skip") != 0)
    return cli_usage("unknown value '%s' of --missing, expected delete or skip", missing);
  job.skip_missing = strcmp(missing, "skip") == 0;
  wf_error err = {0};
  bool good = wf_transcripts_read(parser.args[0], (wf_transcript_format)format_of(ref_format),
                                  &job.reference, &err) == WF_OK &&
              wf_transcripts_read(parser.args[1], (wf_transcript_format)format_of(hyp_format),
                                  &job.hypothesis, &err) == WF_OK &&
              wf_wer_create(&options, &job.wer, &err) == WF_OK;
  code = good ? run(&job, options.cer ? "CER" : "WER", &ignored, filter) : cli_fail(&err);
  wf_transcripts_free(job.reference);
  wf_transcripts_free(job.hypothesis);
  wf_wer_free(job.wer);
  free(ignored.items);
  return code;
}
