/* result_writer.c - hypotheses as Kaldi text, plain text, CTM, JSON lines, sclite trn or
 * captions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/kaldi_prefix.h"
#include "base/memory.h"
#include "base/option_tables.h"
#include "io/captions.h"
#include "io/key_files.h"

struct wf_result_writer {
  int32_t format;
  double frame_shift;
  char *channel;
  wf__output *output;    /* NULL: a file in `folder` for each utterance */
  wf__key_folder folder; /* of captions */
  int64_t num_captioned; /* utterances with captions */
};

static bool has_captions(const wf_result_writer *writer) {
  return writer->format == WF_RESULTS_SRT || writer->format == WF_RESULTS_VTT;
}

/* Opens the output. Its path may have Kaldi's prefix: results are text in every format. */
static wf_status open_table(const char *path, wf__output **out, wf_error *err) {
  wf__kaldi_table table;
  if (path == NULL) return wf__output_open(path, out, err);
  WF__TRY(wf__kaldi_table_parse(path, &table, err));
  wf_status status = table.script != NULL || table.binary
                         ? wf__fail(err, WF_ERR_UNSUPPORTED,
                                    "%s: results are text without a script file: give 'ark,t:%s'",
                                    path, table.archive)
                         : wf__output_open(table.archive, out, err);
  wf__kaldi_table_free(&table);
  return status;
}

wf_status wf_result_writer_open(const char *path, const wf_result_writer_options *options,
                                wf_result_writer **out, wf_error *err) {
  if (out == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "out is NULL");
  *out = NULL;
  wf_result_writer_options taken;
  WF__TRY(wf__options_take(wf__result_writer_table(), options, &taken, err));
  const char *channel = taken.channel != NULL ? taken.channel : "1";
  if (channel[0] == '\0' || strpbrk(channel, " \t\r\n") != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "channel '%.80s' is empty or contains blanks", channel);
  wf_result_writer *writer = wf__calloc(1, sizeof *writer);
  if (writer == NULL) return wf__fail_memory(err, sizeof *writer, "a result writer");
  writer->format = taken.format;
  writer->frame_shift = taken.frame_shift;
  writer->channel = wf__strndup(channel, strlen(channel));
  wf_status status =
      writer->channel != NULL ? WF_OK : wf__fail_memory(err, strlen(channel), "a name");
  if (status == WF_OK && path != NULL && has_captions(writer) && wf__names_folder(path))
    status = wf__key_folder_open(path, &writer->folder, err);
  else if (status == WF_OK)
    status = open_table(path, &writer->output, err);
  if (status != WF_OK) {
    wf_result_writer_abort(writer);
    return status;
  }
  *out = writer;
  return WF_OK;
}

static void put_words(wf__output *output, const wf_hypothesis *hypothesis) {
  for (size_t i = 0; i < hypothesis->num_words; i++) {
    if (i > 0) wf__write(output, " ", 1);
    wf__write_text(output, hypothesis->words[i].text);
  }
}

static bool has_confidence(const wf_timed_word *word) { return word->confidence >= 0; }

static void put_ctm(const wf_result_writer *writer, const wf_hypothesis *hypothesis) {
  for (size_t i = 0; i < hypothesis->num_words; i++) {
    const wf_timed_word *word = &hypothesis->words[i];
    wf__printf(writer->output, "%s %s %.3f %.3f %s", hypothesis->key, writer->channel,
               word->start_frame * writer->frame_shift,
               ((double)word->end_frame - word->start_frame) * writer->frame_shift, word->text);
    if (has_confidence(word)) wf__printf(writer->output, " %.4f", (double)word->confidence);
    wf__write(writer->output, "\n", 1);
  }
}

static void put_json_words(const wf_result_writer *writer, const wf_timed_word *words,
                           size_t num_words) {
  wf__output *output = writer->output;
  wf__write_text(output, ", \"words\": [");
  for (size_t i = 0; i < num_words; i++) {
    const wf_timed_word *word = &words[i];
    wf__write_text(output, i > 0 ? ", {\"word\": " : "{\"word\": ");
    wf__json_string(output, word->text);
    wf__printf(output, ", \"start\": %.3f, \"end\": %.3f", word->start_frame * writer->frame_shift,
               word->end_frame * writer->frame_shift);
    if (has_confidence(word))
      wf__printf(output, ", \"confidence\": %.4f", (double)word->confidence);
    wf__write(output, "}", 1);
  }
  wf__write(output, "]", 1);
}

static void put_json_numbers(wf__output *output, double cost, double graph_cost,
                             double acoustic_cost) {
  const struct {
    const char *name;
    double value;
  } numbers[] = {{"cost", cost}, {"graph_cost", graph_cost}, {"acoustic_cost", acoustic_cost}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    wf__printf(output, ", \"%s\": ", numbers[i].name);
    wf__json_number(output, numbers[i].value);
  }
}

/* Appends a word to words joined by blanks. The text ends with NUL. */
static wf_status join(wf__json_chars *text, const char *word, wf_error *err) {
  size_t size = strlen(word);
  WF__TRY(wf__vec_grow(text, size + 2, "a result", err));
  if (text->size > 0) text->data[text->size++] = ' ';
  memcpy(text->data + text->size, word, size + 1);
  text->size += size;
  return WF_OK;
}

static wf_status put_json_text(wf__output *output, const wf_timed_word *words, size_t num_words,
                               wf_error *err) {
  wf__json_chars text = {0};
  wf_status status = WF_OK;
  for (size_t i = 0; i < num_words && status == WF_OK; i++)
    status = join(&text, words[i].text, err);
  wf__write_text(output, "\"text\": ");
  wf__json_string(output, text.size > 0 ? text.data : "");
  wf__vec_free(&text);
  return status;
}

static wf_status put_json_alternatives(const wf_result_writer *writer,
                                       const wf_hypothesis *hypothesis, wf_error *err) {
  wf__output *output = writer->output;
  wf_status status = WF_OK;
  if (hypothesis->num_alternatives == 0) return WF_OK;
  wf__write_text(output, ", \"nbest\": [");
  for (size_t i = 0; i < hypothesis->num_alternatives && status == WF_OK; i++) {
    const wf_alternative *alternative = &hypothesis->alternatives[i];
    wf__write_text(output, i > 0 ? ", {" : "{");
    status = put_json_text(output, alternative->words, alternative->num_words, err);
    if (alternative->num_words > 0 && alternative->words[0].start_frame >= 0)
      put_json_words(writer, alternative->words, alternative->num_words);
    put_json_numbers(output, alternative->cost, alternative->graph_cost,
                     alternative->acoustic_cost);
    wf__write(output, "}", 1);
  }
  wf__write(output, "]", 1);
  return status;
}

static void put_json_costs(wf__output *output, const wf_hypothesis *hypothesis) {
  put_json_numbers(output, hypothesis->cost, hypothesis->graph_cost, hypothesis->acoustic_cost);
  if (hypothesis->scorer_cost != 0) {
    wf__write_text(output, ", \"scorer_cost\": ");
    wf__json_number(output, hypothesis->scorer_cost);
  }
  wf__printf(output, ", \"frames\": %lld, \"flags\": [", (long long)hypothesis->num_frames);
  for (size_t i = 0; i < hypothesis->num_flags; i++) {
    if (i > 0) wf__write_text(output, ", ");
    wf__json_string(output, hypothesis->flags[i]);
  }
  wf__write(output, "]", 1);
}

static wf_status put_json(const wf_result_writer *writer, const wf_hypothesis *hypothesis,
                          wf_error *err) {
  wf__output *output = writer->output;
  wf_status status = WF_OK;
  wf__write_text(output, "{\"key\": ");
  wf__json_string(output, hypothesis->key);
  if (hypothesis->error != NULL) {
    wf__write_text(output, ", \"error\": ");
    wf__json_string(output, hypothesis->error);
  } else {
    wf__write_text(output, ", ");
    status = put_json_text(output, hypothesis->words, hypothesis->num_words, err);
    put_json_words(writer, hypothesis->words, hypothesis->num_words);
    put_json_costs(output, hypothesis);
    if (status == WF_OK) status = put_json_alternatives(writer, hypothesis, err);
  }
  wf__write_text(output, "}\n");
  return status;
}

/* The captions of a recording begin at 0, so a file holds those of one. */
static wf_status put_captions(wf_result_writer *writer, const wf_hypothesis *hypothesis,
                              wf_error *err) {
  if (hypothesis->error != NULL) return WF_OK;
  const bool vtt = writer->format == WF_RESULTS_VTT;
  wf__output *output = writer->output;
  if (output != NULL && writer->num_captioned++ > 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "'%.80s' is a second utterance, but a file of captions holds one: write to a "
                    "folder, which gets a file for each utterance",
                    hypothesis->key);
  if (output == NULL)
    WF__TRY(
        wf__key_folder_file(&writer->folder, hypothesis->key, vtt ? ".vtt" : ".srt", &output, err));
  wf__captions_write(output, vtt ? WF__CAPTIONS_VTT : WF__CAPTIONS_SRT, writer->frame_shift,
                     hypothesis->words, hypothesis->num_words);
  return writer->output == NULL ? wf__output_close(output, err) : WF_OK;
}

wf_status wf_result_writer_put(wf_result_writer *writer, const wf_hypothesis *given,
                               wf_error *err) {
  wf_hypothesis hypothesis = *given;
  wf_status status = WF_OK;
  wf__output *output = writer->output;
  if (hypothesis.key == NULL) hypothesis.key = "";
  if (hypothesis.error != NULL) hypothesis.num_words = 0;
  switch (writer->format) {
    case WF_RESULTS_TEXT:
      wf__write_text(output, hypothesis.key);
      if (hypothesis.num_words > 0) wf__write(output, " ", 1);
      put_words(output, &hypothesis);
      wf__write(output, "\n", 1);
      break;
    case WF_RESULTS_PLAIN:
      put_words(output, &hypothesis);
      wf__write(output, "\n", 1);
      break;
    case WF_RESULTS_CTM: put_ctm(writer, &hypothesis); break;
    case WF_RESULTS_JSON: status = put_json(writer, &hypothesis, err); break;
    case WF_RESULTS_SRT:
    case WF_RESULTS_VTT: status = put_captions(writer, &hypothesis, err); break;
    default:
      put_words(output, &hypothesis);
      wf__printf(output, hypothesis.num_words > 0 ? " (%s)\n" : "(%s)\n", hypothesis.key);
      break;
  }
  if (output != NULL) wf__output_flush(output);
  return status;
}

wf_status wf_result_writer_close(wf_result_writer *writer, wf_error *err) {
  if (writer == NULL) return WF_OK;
  wf_status status = writer->output != NULL ? wf__output_close(writer->output, err) : WF_OK;
  writer->output = NULL;
  wf_result_writer_abort(writer);
  return status;
}

void wf_result_writer_abort(wf_result_writer *writer) {
  if (writer == NULL) return;
  wf__output_abort(writer->output);
  wf__key_folder_close(&writer->folder);
  free(writer->channel);
  free(writer);
}
