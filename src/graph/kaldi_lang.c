/* kaldi_lang.c - names, word positions and silence of the phones of a Kaldi model.
 *
 * In a `lang` folder with word positions, phones.txt lists AH as AH_B, AH_I, AH_E, AH_S. Lexicons
 * may use either form. The phones of lexicons are first those of phones.txt, which are the same in
 * every position, then base names such as AH for which all four forms exist. If a base name is
 * itself in phones.txt (SIL, with SIL_B ... SIL_S), lexicons mean the base name; between words, the
 * phone of phones.txt is used. */
#include "graph/kaldi_lang.h"

#include <stdio.h>
#include <string.h>

#include "fst/symbols.h"
#include "graph/kaldi_files.h"
#include "graph/tokens.h"

struct lang {
  wf_hmm *hmm;
  const wf_symbols *table; /* phones.txt or NULL */
  wf_symbols *phones;      /* becomes hmm->phones */
  int8_t *position;        /* [num_phones + 1] WF__BEGIN ... WF__SINGLE; -1: none */
};

/* --- phones ------------------------------------------------------------------------------ */

static wf_status look_at_table(struct lang *lang, int32_t *num_phones, wf_error *err) {
  const char *text;
  int64_t key;
  for (size_t i = 0; lang->table != NULL && (text = wf_symbols_at(lang->table, i, &key)) != NULL;
       i++) {
    if (wf__is_disambig(text, strlen(text)))
      WF__TRY(
          wf__vec_push(&lang->hmm->ready_disambig, (int32_t)key, "disambiguation symbols", err));
    else if (text[0] == '#' || key == 0)
      continue;
    else if (key > WF__KALDI_MAX_PHONE)
      return wf__fail(
          err, WF_ERR_LIMIT, "%s: '%.80s' has the number %lld; at most %d are supported",
          wf__symbols_shown(lang->table), text, (long long)key, (int)WF__KALDI_MAX_PHONE);
    else if (key > *num_phones)
      *num_phones = (int32_t)key;
  }
  return WF_OK;
}

static wf_status name_phones(struct lang *lang, int32_t num_phones, wf_error *err) {
  char number[16];
  WF__TRY(wf_symbols_create(lang->hmm->name, &lang->phones, err));
  WF__TRY(wf_symbols_add(lang->phones, "<eps>", 0, NULL, err));
  for (int32_t p = 1; p <= num_phones; p++) {
    const char *text = lang->table != NULL ? wf_symbols_text(lang->table, p) : NULL;
    snprintf(number, sizeof number, "%d", (int)p);
    if (text == NULL || text[0] == '#') text = number;
    WF__TRY(wf_symbols_add(lang->phones, text, p, NULL, err));
  }
  return wf__hmm_set_phones(lang->hmm, lang->phones, num_phones, err);
}

/* Finds a phone by its name or number; 0 if there is none. */
static int32_t find_phone(const struct lang *lang, wf__span text) {
  int64_t key = wf__symbols_find_bytes(lang->phones, text.data, text.size);
  if (key < 0 && !(wf__parse_i64(text, &key) && key <= lang->hmm->num_phones)) return 0;
  return key > 0 ? (int32_t)key : 0;
}

/* --- positions --------------------------------------------------------------------------- */

static wf_status read_positions(struct lang *lang, const wf__input *input, wf_error *err) {
  static const char *const names[] = {[WF__BEGIN] = "begin",
                                      [WF__INTERNAL] = "internal",
                                      [WF__END] = "end",
                                      [WF__SINGLE] = "singleton"};
  wf__lines lines = wf__lines_of(input);
  for (wf__span line, phone, word; wf__next_line(&lines, &line);) {
    if (!wf__next_field(&line, &phone)) continue;
    int32_t key = find_phone(lang, phone);
    if (key == 0)
      return wf__lines_fail(&lines, err, WF_ERR_FORMAT, "no phone '%.*s'", WF__SPAN_ARG(phone));
    if (!wf__next_field(&line, &word))
      return wf__lines_fail(&lines, err, WF_ERR_FORMAT, "'%.*s' has no position",
                            WF__SPAN_ARG(phone));
    if (wf__kaldi_is(word, "nonword")) continue;
    for (int8_t p = 0; p < WF__NUM_POSITIONS; p++)
      if (wf__kaldi_is(word, names[p])) lang->position[key] = p;
    if (lang->position[key] < 0)
      return wf__lines_fail(&lines, err, WF_ERR_FORMAT,
                            "'%.*s' is '%.*s'; expected nonword, begin, internal, end or singleton",
                            WF__SPAN_ARG(phone), WF__SPAN_ARG(word));
  }
  return WF_OK;
}

/* Finds the four forms of a phone, given `single`, the form for words of one phone. False if one is
 * missing. */
static bool find_forms(const struct lang *lang, int32_t single, int32_t forms[WF__NUM_POSITIONS],
                       wf__span *out_base) {
  static const char *const endings[] = {
      [WF__BEGIN] = "_B", [WF__INTERNAL] = "_I", [WF__END] = "_E", [WF__SINGLE] = "_S"};
  char form[256];
  const char *text = wf_symbols_text(lang->phones, single);
  size_t size = strlen(text);
  if (size < 3 || size >= sizeof form || strcmp(text + size - 2, "_S") != 0) return false;
  *out_base = (wf__span){text, size - 2};
  for (int p = 0; p < WF__NUM_POSITIONS; p++) {
    snprintf(form, sizeof form, "%.*s%s", (int)(size - 2), text, endings[p]);
    int64_t key = wf_symbols_find(lang->phones, form);
    if (key <= 0 || lang->position[key] != p) return false;
    forms[p] = (int32_t)key;
  }
  return true;
}

/* Makes the phones of lexicons and their forms in each word position. */
static wf_status make_lexicon_phones(struct lang *lang, wf_error *err) {
  wf_hmm *hmm = lang->hmm;
  int32_t forms[WF__NUM_POSITIONS], num_phones = hmm->num_phones;
  char base[256];
  int64_t key;
  wf__span text;
  WF__TRY(wf_symbols_create(hmm->name, &hmm->lexicon_phones, err));
  for (int32_t p = 0; p <= num_phones; p++)
    WF__TRY(wf_symbols_add(hmm->lexicon_phones, wf_symbols_text(lang->phones, p), p, NULL, err));
  hmm->position_of = wf__calloc((uint64_t)num_phones * 2 + 1, sizeof *hmm->position_of);
  if (hmm->position_of == NULL)
    return wf__fail_memory(err, ((uint64_t)num_phones * 2 + 1) * sizeof *hmm->position_of,
                           "positions of phones");
  for (int32_t p = 1; p <= num_phones; p++)
    for (int i = 0; i < WF__NUM_POSITIONS; i++) hmm->position_of[p][i] = p;
  for (int32_t p = 1; p <= num_phones; p++) {
    if (lang->position[p] != WF__SINGLE || !find_forms(lang, p, forms, &text)) continue;
    snprintf(base, sizeof base, "%.*s", (int)text.size, text.data);
    key = wf_symbols_find(hmm->lexicon_phones, base);
    if (key < 0) WF__TRY(wf_symbols_add(hmm->lexicon_phones, base, -1, &key, err));
    memcpy(hmm->position_of[key], forms, sizeof forms);
  }
  return WF_OK;
}

static wf_status take_positions(struct lang *lang, const wf__input *word_boundary, wf_error *err) {
  wf_hmm *hmm = lang->hmm;
  if (word_boundary == NULL) {
    hmm->lexicon_phones = wf_symbols_ref(lang->phones);
    return WF_OK;
  }
  uint64_t count = (uint64_t)hmm->num_phones + 1;
  lang->position = wf__alloc(count, sizeof *lang->position);
  if (lang->position == NULL) return wf__fail_memory(err, count, "positions of phones");
  memset(lang->position, -1, count);
  WF__TRY(read_positions(lang, word_boundary, err));
  return make_lexicon_phones(lang, err);
}

/* --- silence ----------------------------------------------------------------------------- */

static wf_status take_silence(struct lang *lang, const wf__input *silence, wf_error *err) {
  static const char *const usual[] = {"SIL", "sil", "!SIL"};
  for (size_t i = 0; i < sizeof usual / sizeof *usual && silence == NULL && lang->hmm->silence == 0;
       i++) {
    int64_t key = wf_symbols_find(lang->phones, usual[i]);
    if (key > 0) lang->hmm->silence = (int32_t)key;
  }
  if (silence == NULL) return WF_OK;
  wf__lines lines = wf__lines_of(silence);
  wf__span line, phone;
  if (!wf__next_line(&lines, &line) || !wf__next_field(&line, &phone))
    return WF_OK; /* an empty file: no silence */
  lang->hmm->silence = find_phone(lang, phone);
  return lang->hmm->silence != 0
             ? WF_OK
             : wf__lines_fail(&lines, err, WF_ERR_FORMAT, "no phone '%.*s'", WF__SPAN_ARG(phone));
}

static wf_status take(struct lang *lang, int32_t num_phones, const wf__lang_inputs *inputs,
                      wf_error *err) {
  WF__TRY(look_at_table(lang, &num_phones, err));
  WF__TRY(name_phones(lang, num_phones, err));
  WF__TRY(take_positions(lang, inputs->word_boundary, err));
  return take_silence(lang, inputs->silence, err);
}

wf_status wf__kaldi_take_phones(wf_hmm *hmm, int32_t num_phones, const wf__lang_inputs *inputs,
                                wf_error *err) {
  wf_symbols *table = NULL;
  if (inputs->phones != NULL) WF__TRY(wf__symbols_read_input(inputs->phones, &table, err));
  struct lang lang = {.hmm = hmm, .table = table};
  wf_status status = take(&lang, num_phones, inputs, err);
  hmm->word_position = lang.position;
  wf_symbols_free(lang.phones);
  wf_symbols_free(table);
  return status;
}
