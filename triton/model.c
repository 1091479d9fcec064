/* model.c - models, their instances, sequences and boosts. Does not use the server's interface. */
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wf_status fail(wf_error *err, wf_status code, const char *what, const char *detail) {
  err->code = code;
  snprintf(err->message, sizeof err->message, "%.400s%.500s", what, detail);
  return code;
}

/* --- models ------------------------------------------------------------------------------ */

/* Returns "FOLDER/NAME", or NAME if it begins with '/'. Free it with free(). NULL: out of memory.
 */
static char *path_in(const char *folder, const char *name) {
  size_t size = strlen(folder) + strlen(name) + 2;
  char *path = malloc(size);
  if (path != NULL)
    snprintf(path, size, "%s%s%s", name[0] == '/' ? "" : folder, name[0] == '/' ? "" : "/", name);
  return path;
}

/* Sets the option of this name in the option table that has it. */
static wf_status set_option(tw_model *model, const char *name, const char *value, wf_error *err) {
  const struct {
    const char *table;
    void *config;
  } tables[] = {{"decoder", &model->decoder}, {"stream", &model->stream}};
  for (size_t t = 0; t < 2; t++) {
    const wf_option_table *table = wf_option_table_find(tables[t].table);
    for (size_t i = 0; i < table->num_rows; i++)
      if (strcmp(table->rows[i].name, name) == 0 ||
          (t == 1 && strcmp(name, "frame_seconds") == 0)) /* an old name, which warns */
        return wf_options_set(table, tables[t].config, name, value, err);
  }
  return fail(err, WF_ERR_ARGUMENT, "config.pbtxt: no such parameter: ", name);
}

static bool is_file(const char *name) {
  static const char *const names[] = {"graph", "words", "am", "transducer"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

static wf_status set_options(tw_model *model, wf_error *err) {
  wf_decoder_options_init(&model->decoder);
  wf_stream_options_init(&model->stream);
  model->max_sequences = 65536;
  for (size_t i = 0; i < model->settings.size; i++) {
    const char *name = model->settings.items[i].name, *value = model->settings.items[i].value;
    if (is_file(name)) continue;
    if (strcmp(name, "max_sequences") == 0) {
      char *stop;
      model->max_sequences = strtoll(value, &stop, 10);
      if (*stop != '\0' || model->max_sequences < 1)
        return fail(err, WF_ERR_ARGUMENT,
                    "config.pbtxt: max_sequences must be a number of at least 1, found ", value);
      continue;
    }
    wf_status status = set_option(model, name, value, err);
    if (status != WF_OK) return status;
  }
  return WF_OK;
}

static wf_status read_graph(tw_model *model, const char *folder, wf_error *err) {
  const char *name = settings_find(&model->settings, "graph"),
             *am = settings_find(&model->settings, "am");
  if (name == NULL)
    return fail(err, WF_ERR_ARGUMENT, "config.pbtxt: the parameter `graph` is missing: ",
                "the file of the decoding graph");
  char *path = path_in(folder, name), *am_path = am != NULL ? path_in(folder, am) : NULL;
  wf_fst *fst = NULL;
  wf_hmm *hmm = NULL;
  int32_t *columns = NULL;
  size_t num_columns = 0;
  wf_status status = path != NULL && (am == NULL || am_path != NULL)
                         ? wf_fst_read(path, &fst, err)
                         : fail(err, WF_ERR_MEMORY, "out of memory", "");
  if (status == WF_OK && am != NULL) status = wf_hmm_read_kaldi(am_path, NULL, NULL, &hmm, err);
  if (status == WF_OK && am != NULL) status = wf_hmm_columns(hmm, &columns, &num_columns, err);
  if (status == WF_OK) status = wf_graph_create(fst, columns, num_columns, &model->graph, err);
  if (status == WF_OK && wf_fst_osymbols(fst) != NULL)
    model->words = wf_symbols_ref(wf_fst_osymbols(fst));
  wf_free(columns);
  wf_hmm_free(hmm);
  wf_fst_free(fst);
  free(path);
  free(am_path);
  return status;
}

static wf_status read_words(tw_model *model, const char *folder, wf_error *err) {
  const char *name = settings_find(&model->settings, "words");
  if (name == NULL) return WF_OK;
  char *path = path_in(folder, name);
  wf_symbols_free(model->words);
  model->words = NULL;
  wf_status status = path != NULL ? wf_symbols_read(path, &model->words, err)
                                  : fail(err, WF_ERR_MEMORY, "out of memory", "");
  free(path);
  return status;
}

static wf_status read_transducer(tw_model *model, const char *folder, wf_error *err) {
  const char *name = settings_find(&model->settings, "transducer");
  if (name == NULL) return WF_OK;
  wf_transducer_options options;
  wf_transducer_options_init(&options);
  options.blank = model->decoder.blank;
  char *path = path_in(folder, name);
  wf_status status = path != NULL ? wf_transducer_open(path, &options, &model->transducer, err)
                                  : fail(err, WF_ERR_MEMORY, "out of memory", "");
  free(path);
  return status;
}

wf_status model_open(tw_settings *settings, const char *folder, tw_model **out, wf_error *err) {
  *out = calloc(1, sizeof **out);
  if (*out == NULL) {
    settings_free(settings);
    return fail(err, WF_ERR_MEMORY, "out of memory", "");
  }
  (*out)->settings = *settings;
  wf_status status = set_options(*out, err);
  if (status == WF_OK) status = read_graph(*out, folder, err);
  if (status == WF_OK) status = read_words(*out, folder, err);
  if (status == WF_OK) status = read_transducer(*out, folder, err);
  if (status == WF_OK) return WF_OK;
  model_close(*out);
  *out = NULL;
  return status;
}

void model_close(tw_model *model) {
  if (model == NULL) return;
  wf_graph_free(model->graph);
  wf_transducer_free(model->transducer);
  wf_symbols_free(model->words);
  metrics_free(model->metrics);
  settings_free(&model->settings);
  free(model);
}

/* --- instances and sequences ------------------------------------------------------------- */

wf_status instance_open(const tw_model *model, tw_instance **out, wf_error *err) {
  *out = calloc(1, sizeof **out);
  if (*out == NULL) return fail(err, WF_ERR_MEMORY, "out of memory", "");
  (*out)->model = model;
  wf_status status = model->transducer != NULL
                         ? wf_decoder_create_transducer(model->graph, model->transducer,
                                                        &model->decoder, &(*out)->decoder, err)
                         : wf_decoder_create(model->graph, &model->decoder, &(*out)->decoder, err);
  if (status == WF_OK) return WF_OK;
  free(*out);
  *out = NULL;
  return status;
}

static void free_sequence(tw_sequence *sequence) {
  wf_stream_free(sequence->stream);
  free(sequence->id);
  free(sequence);
}

/* FNV-1a. */
static tw_sequence **bucket_of(tw_instance *instance, const char *id) {
  uint32_t hash = 2166136261u;
  for (; *id != '\0'; id++) hash = (hash ^ (uint8_t)*id) * 16777619u;
  return &instance->buckets[(hash ^ hash >> 16) % NUM_BUCKETS];
}

/* Takes the sequence out of the order of use. */
static void unlink_use(tw_instance *instance, tw_sequence *sequence) {
  *(sequence->older != NULL ? &sequence->older->newer : &instance->oldest) = sequence->newer;
  *(sequence->newer != NULL ? &sequence->newer->older : &instance->newest) = sequence->older;
}

/* Makes the sequence the newest. */
static void link_use(tw_instance *instance, tw_sequence *sequence, uint64_t now_ns) {
  sequence->older = instance->newest;
  sequence->newer = NULL;
  *(sequence->older != NULL ? &sequence->older->newer : &instance->oldest) = sequence;
  instance->newest = sequence;
  sequence->last_used_ns = now_ns;
}

void instance_drop(tw_instance *instance, tw_sequence *dropped) {
  tw_sequence **link = bucket_of(instance, dropped->id);
  while (*link != dropped) link = &(*link)->next;
  *link = dropped->next;
  unlink_use(instance, dropped);
  instance->num_sequences--;
  metrics_add(instance->model->metrics, METRIC_SEQUENCES, -1);
  free_sequence(dropped);
}

void instance_close(tw_instance *instance) {
  if (instance == NULL) return;
  while (instance->oldest != NULL) instance_drop(instance, instance->oldest);
  wf_decoder_free(instance->decoder);
  free(instance);
}

static void abandon_oldest(tw_instance *instance) {
  metrics_add(instance->model->metrics, METRIC_ABANDONED, 1);
  instance_drop(instance, instance->oldest);
}

void instance_drop_idle(tw_instance *instance, uint64_t now_ns) {
  uint64_t limit_ns = 2000 * (uint64_t)instance->model->settings.max_idle_us;
  while (limit_ns > 0 && instance->oldest != NULL && !instance->oldest->in_batch &&
         now_ns - instance->oldest->last_used_ns > limit_ns)
    abandon_oldest(instance);
}

static wf_status start(tw_instance *instance, const char *id, uint64_t now_ns, tw_sequence **out,
                       wf_error *err) {
  if (instance->num_sequences >= (size_t)instance->model->max_sequences &&
      !instance->oldest->in_batch)
    abandon_oldest(instance);
  tw_sequence *made = calloc(1, sizeof *made), **bucket = bucket_of(instance, id);
  if (made != NULL) made->id = strdup(id);
  if (made == NULL || made->id == NULL)
    return free(made), fail(err, WF_ERR_MEMORY, "out of memory for sequences", "");
  wf_status status =
      wf_stream_create(instance->decoder, &instance->model->stream, &made->stream, err);
  if (status != WF_OK) return free_sequence(made), status;
  made->next = *bucket;
  *bucket = made;
  link_use(instance, made, now_ns);
  instance->num_sequences++;
  metrics_add(instance->model->metrics, METRIC_SEQUENCES, 1);
  *out = made;
  return WF_OK;
}

wf_status instance_find(tw_instance *instance, const char *id, bool starts, uint64_t now_ns,
                        tw_sequence **out, wf_error *err) {
  *out = *bucket_of(instance, id);
  while (*out != NULL && strcmp((*out)->id, id) != 0) *out = (*out)->next;
  if (*out == NULL)
    return starts ? start(instance, id, now_ns, out, err)
                  : fail(err, WF_ERR_STATE,
                         "this sequence was not started, or was dropped because it was idle; "
                         "correlation id ",
                         id);
  if ((*out)->in_batch)
    return fail(err, WF_ERR_STATE, "two requests of one sequence in a batch: ",
                "config.pbtxt needs sequence_batching");
  unlink_use(instance, *out);
  link_use(instance, *out, now_ns);
  if (!starts) return WF_OK;
  wf_status status = wf_stream_reset((*out)->stream, err);
  return status == WF_OK ? wf_stream_set_scorer((*out)->stream, NULL, err) : status;
}

/* --- boosts ------------------------------------------------------------------------------ */

struct phrases {
  const char **texts; /* in `scratch` */
  float *boosts;
  size_t count;
  char *scratch;
};

/* Adds a phrase `word word ... [boost]`. Cuts the boost off `text`. */
static wf_status add_phrase(struct phrases *phrases, char *text, wf_error *err) {
  char *last = strrchr(text, ' '), *stop = NULL;
  if (text[strspn(text, " ")] == '\0')
    return fail(err, WF_ERR_ARGUMENT, "BOOSTS: expected `word word ... [boost]`, found ", text);
  float boost = NAN; /* by length */
  if (last != NULL && last[strcspn(last, "0123456789")] != '\0') {
    float given = strtof(last + 1, &stop);
    if (stop > last + 1 && *stop == '\0') {
      boost = given;
      *last = '\0';
    }
  }
  phrases->texts[phrases->count] = text;
  phrases->boosts[phrases->count++] = boost;
  return WF_OK;
}

static wf_status read_lines(const char *data, uint64_t size, struct phrases *phrases,
                            wf_error *err) {
  memcpy(phrases->scratch, data, size);
  phrases->scratch[size] = '\0';
  for (char *rest = phrases->scratch, *line; (line = strtok_r(rest, "\n", &rest)) != NULL;) {
    wf_status status = add_phrase(phrases, line, err);
    if (status != WF_OK) return status;
  }
  return WF_OK;
}

static wf_status read_elements(const char *data, uint64_t size, struct phrases *phrases,
                               wf_error *err) {
  for (uint64_t at = 0; at < size;) {
    uint32_t length;
    if (size - at < sizeof length)
      return fail(err, WF_ERR_ARGUMENT, "BOOSTS: not a tensor of strings", "");
    memcpy(&length, data + at, sizeof length);
    char *text = phrases->scratch + at; /* the end of the text takes a byte of the length's four */
    at += sizeof length;
    if (size - at < length)
      return fail(err, WF_ERR_ARGUMENT, "BOOSTS: not a tensor of strings", "");
    memcpy(text, data + at, length);
    text[length] = '\0';
    at += length;
    wf_status status = add_phrase(phrases, text, err);
    if (status != WF_OK) return status;
  }
  return WF_OK;
}

static wf_status make_boosts(const tw_model *model, const struct phrases *phrases, wf_scorer **out,
                             wf_error *err) {
  wf_phrase_list list;
  wf_phrase_list_init(&list);
  list.name = "BOOSTS";
  list.phrases = phrases->texts;
  list.boosts = phrases->boosts;
  list.count = phrases->count;
  list.words = model->words;
  list.tokens = wf_fst_isymbols(wf_graph_fst(model->graph));
  return wf_scorer_boost_texts(&list, out, err);
}

wf_status model_read_boosts(const tw_model *model, const char *data, uint64_t size, bool are_lines,
                            wf_scorer **out, wf_error *err) {
  *out = NULL;
  if (model->words == NULL)
    return fail(err, WF_ERR_ARGUMENT, "BOOSTS need a word table: ", "set the parameter `words`");
  /* Every phrase takes at least one byte, so size + 1 entries suffice. */
  struct phrases phrases = {malloc((size + 1) * sizeof *phrases.texts),
                            malloc((size + 1) * sizeof *phrases.boosts), 0, malloc(size + 1)};
  bool room = phrases.texts != NULL && phrases.boosts != NULL && phrases.scratch != NULL;
  wf_status status = room ? (are_lines ? read_lines : read_elements)(data, size, &phrases, err)
                          : fail(err, WF_ERR_MEMORY, "out of memory for boosts", "");
  if (status == WF_OK) status = make_boosts(model, &phrases, out, err);
  free(phrases.texts);
  free(phrases.boosts);
  free(phrases.scratch);
  return status;
}
