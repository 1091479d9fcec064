/* arpa.c - ARPA text to words and n-grams for the collector.
 *
 *   \data\            header: counts[k]
 *   ngram 1=3
 *   \1-grams:         section k: lines `log10p w1 .. wk [log10 back-off]`
 *   -1.2  the  -0.3
 *   \end\
 */
#include "fst/symbols.h"
#include "lm/arpa.h"

#include <stdio.h>
#include <string.h>

#include "base/callbacks.h"
#include "base/source.h"
#include "lm/ngram_collector.h"
#include "math/cost.h"

enum { MAX_FIELDS = WF_LM_MAX_ORDER + 3, MOST_LINE_BYTES = 1 << 25 };

typedef struct reader {
  const wf__input *input; /* the whole file; NULL: the file is read through a window */
  wf__source *source;     /* of the window; NULL: `input` is read */
  bool ended;             /* the window holds the end of the stream */
  wf__ngram_collector *collector;
  wf__lines lines;
  const char *begin;
  wf__span line; /* the current line */
  uint64_t counts[WF_LM_MAX_ORDER + 1];
  struct {
    wf__span text[WF_LM_MAX_ORDER];
    uint32_t label[WF_LM_MAX_ORDER];
    int num_words; /* number of words in `text` and `label` */
  } last;          /* words of the previous n-gram and their labels */
} reader;

static bool is_text(wf__span span, const char *text) {
  return strlen(text) == span.size && memcmp(span.data, text, span.size) == 0;
}

/* Prepends path and line to an error of the collector about the file. */
static wf_status at_line(const reader *r, wf_status status, wf_error *err) {
  if (status != WF_ERR_FORMAT && status != WF_ERR_LIMIT) return status;
  return wf__fail_prefix(err, status, "%s:%llu", r->lines.path,
                         (unsigned long long)r->lines.line_number);
}

/* --- lines ------------------------------------------------------------------------------- */

/* Reads more of the stream behind the unread bytes of the window. */
static wf_status refill(reader *r, wf_error *err) {
  const size_t left = (size_t)(r->lines.end - r->lines.at);
  wf__source *source = r->source;
  if (left > MOST_LINE_BYTES)
    return wf__lines_fail(&r->lines, err, WF_ERR_LIMIT, "the next line is longer than %d bytes",
                          MOST_LINE_BYTES);
  source->at = source->end - left;
  WF__TRY(wf__source_need(source, left + 1, err));
  r->ended = wf__source_left(source) == left;
  r->lines.at = (const char *)source->at;
  r->lines.end = (const char *)source->end;
  r->last.num_words = 0; /* r->last.text pointed into the old window */
  return WF_OK;
}

/* Reads the next line into r->line; sets *more to false at the end of the file. */
static wf_status next_line(reader *r, bool *more, wf_error *err) {
  while (r->input == NULL && !r->ended &&
         (r->lines.at == r->lines.end ||
          memchr(r->lines.at, '\n', (size_t)(r->lines.end - r->lines.at)) == NULL))
    WF__TRY(refill(r, err));
  *more = wf__next_line(&r->lines, &r->line);
  return WF_OK;
}

/* --- n-grams ----------------------------------------------------------------------------- */

static wf_status parse_cost(const reader *r, wf__span text, const char *what, float *out,
                            wf_error *err) {
  double log10p;
  if (!wf__parse_f64(text, &log10p))
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "expected a %s (log10), found '%.*s'",
                          what, WF__SPAN_ARG(text));
  if (isnan(log10p) || log10p == INFINITY)
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "%s '%.*s' is not a finite number or -inf",
                          what, WF__SPAN_ARG(text));
  *out = wf__cost_of_log10(log10p);
  if (!wf__collector_is_cost(*out))
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "%s '%.*s' is out of range", what,
                          WF__SPAN_ARG(text));
  return WF_OK;
}

/* Sets r->last.label to the labels of the words of an n-gram of order k >= 2. Skips the look-up of
 * the leading words that are those of the previous n-gram. */
static wf_status find_words(reader *r, int k, const wf__span *text, wf_error *err) {
  int same = 0;
  while (same < k && same < r->last.num_words && text[same].size == r->last.text[same].size &&
         memcmp(text[same].data, r->last.text[same].data, text[same].size) == 0)
    same++;
  r->last.num_words = same; /* stays consistent if a later word is not found */
  for (int i = same; i < k; i++) {
    int64_t key = wf__symbols_find_bytes(r->collector->vocab, text[i].data, text[i].size);
    if (key <= 0)
      return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "'%.*s' is not among the unigrams",
                            WF__SPAN_ARG(text[i]));
    r->last.label[i] = (uint32_t)r->collector->label_of.data[key];
    r->last.text[i] = text[i];
    r->last.num_words = i + 1;
  }
  return WF_OK;
}

static int split(wf__span line, wf__span *fields) {
  int num = 0;
  while (num < MAX_FIELDS && wf__next_field(&line, &fields[num])) num++;
  return num;
}

static wf_status add_ngram(reader *r, int k, wf__span line, wf_error *err) {
  wf__span fields[MAX_FIELDS];
  int num_fields = split(line, fields);
  if (num_fields != k + 1 && num_fields != k + 2)
    return wf__lines_fail(
        &r->lines, err, WF_ERR_FORMAT,
        "expected a probability, %d word%s and perhaps a back-off weight, found %s%d field%s", k,
        k > 1 ? "s" : "", num_fields == MAX_FIELDS ? "at least " : "", num_fields,
        num_fields > 1 ? "s" : "");
  float cost, backoff = 0;
  WF__TRY(parse_cost(r, fields[0], "probability", &cost, err));
  if (num_fields == k + 2) WF__TRY(parse_cost(r, fields[k + 1], "back-off weight", &backoff, err));
  if (k == r->collector->levels.order && backoff != 0)
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT,
                          "an n-gram of the highest order has the back-off weight '%.*s'",
                          WF__SPAN_ARG(fields[k + 1]));
  if (k == 1)
    WF__TRY(at_line(r, wf__collector_add_word(r->collector, fields[1], r->last.label, err), err));
  else
    WF__TRY(find_words(r, k, fields + 1, err));
  return at_line(r, wf__collector_add_ngram(r->collector, k, r->last.label, cost, backoff, err),
                 err);
}

/* --- sections ---------------------------------------------------------------------------- */

static bool is_blank(wf__span line) {
  wf__span field;
  return !wf__next_field(&line, &field);
}

/* Removes trailing blanks. */
static wf__span trim(wf__span line) {
  while (line.size > 0 && (line.data[line.size - 1] == ' ' || line.data[line.size - 1] == '\t'))
    line.size--;
  return line;
}

/* Reads the lines of section k up to the next line that starts with a backslash, which becomes the
 * current line. */
static wf_status read_section(reader *r, int k, wf_error *err) {
  uint64_t least_bytes = 2 * (uint64_t)k + 2,
           left = (uint64_t)(r->lines.end - r->lines.at) / least_bytes, num = 0;
  if (r->collector->sink == NULL)
    WF__TRY(wf__vec_grow(&r->collector->levels.level[k].ngrams,
                         r->counts[k] < left ? r->counts[k] : left, "n-grams", err));
  r->last.num_words = 0;
  for (bool more;;) {
    WF__TRY(next_line(r, &more, err));
    if (!more)
      return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT,
                            "the file ends within the %d-grams, without \\end\\", k);
    if (r->line.size > 0 && r->line.data[0] == '\\') break;
    if (is_blank(r->line)) continue;
    if (num++ == r->counts[k])
      return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT,
                            "more %d-grams than the %llu of the header", k,
                            (unsigned long long)r->counts[k]);
    WF__TRY(add_ngram(r, k, r->line, err));
    double fraction = r->input == NULL
                          ? -1
                          : (double)(r->lines.at - r->begin) / (double)(r->lines.end - r->begin);
    if (num % 65536 == 0)
      WF__TRY(wf__progress(r->collector->progress, "reading n-grams", fraction, err));
  }
  if (num != r->counts[k])
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT,
                          "the %d-grams end after %llu, the header says %llu", k,
                          (unsigned long long)num, (unsigned long long)r->counts[k]);
  return WF_OK;
}

/* `ngram K=COUNT`. */
static wf_status read_count(reader *r, wf_error *err) {
  wf__span rest = r->line, word;
  int64_t k = -1, count = -1;
  if (wf__next_field(&rest, &word) && is_text(word, "ngram")) {
    const char *equals = memchr(rest.data, '=', rest.size);
    if (equals != NULL) {
      wf__span left = {rest.data, (size_t)(equals - rest.data)},
               right = {equals + 1, (size_t)(rest.data + rest.size - equals - 1)}, order, number;
      if (!wf__next_field(&left, &order) || !wf__parse_i64(order, &k)) k = -1;
      if (!wf__next_field(&right, &number) || !wf__parse_i64(number, &count) || !is_blank(right))
        count = -1;
    }
  }
  if (k < 0 || count < 0)
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT,
                          "expected 'ngram ORDER=COUNT', found '%.*s'", WF__SPAN_ARG(r->line));
  if (k != r->collector->levels.order + 1)
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT,
                          "expected the count of %d-grams, found that of %lld-grams",
                          r->collector->levels.order + 1, (long long)k);
  if (k > WF_LM_MAX_ORDER)
    return wf__lines_fail(&r->lines, err, WF_ERR_LIMIT, "orders above %d are not supported",
                          WF_LM_MAX_ORDER);
  r->counts[k] = (uint64_t)count;
  r->collector->levels.order = (int)k;
  return WF_OK;
}

static wf_status read_header(reader *r, wf_error *err) {
  bool more;
  do {
    WF__TRY(next_line(r, &more, err));
    if (!more)
      return wf__fail(err, WF_ERR_FORMAT, "%s: not an ARPA file: no line \\data\\", r->lines.path);
    if (is_text(trim(r->line), "iARPA") || is_text(trim(r->line), "qARPA"))
      return wf__lines_fail(
          &r->lines, err, WF_ERR_FORMAT,
          "%.5s is a format of IRSTLM, not ARPA; IRSTLM's compile-lm converts it: "
          "compile-lm --text=yes FILE OUT.arpa",
          trim(r->line).data);
  } while (!is_text(trim(r->line), "\\data\\"));
  for (;;) {
    WF__TRY(next_line(r, &more, err));
    if (!more)
      return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "the file ends within the header");
    if (r->line.size > 0 && r->line.data[0] == '\\') break;
    if (!is_blank(r->line)) WF__TRY(read_count(r, err));
  }
  if (r->collector->levels.order == 0)
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "the header holds no 'ngram 1=COUNT'");
  return WF_OK;
}

static wf_status read_text(void *user, wf__ngram_collector *collector, wf_error *err) {
  reader *r = user;
  r->collector = collector;
  r->lines = r->input != NULL ? wf__lines_of(r->input) : (wf__lines){.path = collector->path};
  r->begin = r->lines.at;
  WF__TRY(read_header(r, err));
  for (int k = 1; k <= collector->levels.order; k++) {
    char head[32];
    snprintf(head, sizeof head, "\\%d-grams:", k);
    if (is_text(trim(r->line), head))
      WF__TRY(read_section(r, k, err));
    else if (r->counts[k] > 0)
      return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "expected '%s', found '%.*s'", head,
                            WF__SPAN_ARG(r->line));
    WF__TRY(at_line(r, wf__collector_end_level(collector, k, err), err));
  }
  if (!is_text(trim(r->line), "\\end\\"))
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "expected '\\end\\', found '%.*s'",
                          WF__SPAN_ARG(r->line));
  while (r->source != NULL && !r->ended) { /* checks the rest of a gzip stream */
    r->lines.at = r->lines.end;
    WF__TRY(refill(r, err));
  }
  return WF_OK;
}

/* --- calls ------------------------------------------------------------------------------- */

wf_status wf__lm_read_arpa_input(const wf__input *input, const wf_symbols *words,
                                 const wf_arpa_options *options, wf__automaton **out,
                                 wf_arpa_stats *stats, const wf_progress *progress, wf_error *err) {
  reader r = {.input = input};
  return wf__collect_ngrams(input->path, words, options, read_text, &r, out, stats, progress, err);
}

wf_status wf__lm_stream_arpa(const char *path, const wf_arpa_options *options,
                             const wf__ngram_sink *sink, wf__ngram_stream_info *info,
                             wf_arpa_stats *stats, const wf_progress *progress, wf_error *err) {
  wf__source source;
  WF__TRY(wf__source_open_stream(path, &source, err));
  reader r = {.source = &source};
  wf_status status =
      wf__stream_ngrams(path, options, read_text, &r, sink, info, stats, progress, err);
  wf__source_close(&source);
  return status;
}
