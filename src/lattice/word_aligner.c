/* word_aligner.c - units of an alignment, and the three ways to tell which of them are a word: phones that know their place in it, tokens that begin a
 * word, and a lexicon. */
#include "lattice/word_aligner.h"

#include <string.h>

#include "graph/hmm.h"
#include "graph/lexicon.h"

enum way { BY_POSITION, BY_MARK, BY_LEXICON };
enum { MAX_LOOK_AHEAD = 8 /* words */ };
enum { NO_WORD = -1 }; /* role of a unit; else WF__BEGIN ... WF__SINGLE. By mark: WF__BEGIN or WF__INTERNAL */

struct pronunciation {
  uint64_t first; /* in `spelled` */
  uint32_t count;
};

struct wf_word_aligner {
  enum way way;
  wf_symbols *names;      /* of units; by unit - name_shift */
  int32_t name_shift;
  int32_t blank;          /* unit, 0: none */
  bool runs;              /* a unit is a run of one label (tokens); else a phone */
  WF__VEC(wf__hmm_place) places; /* by label, of phones */
  WF__VEC(int8_t) roles;   /* by unit */
  /* by lexicon: pronunciations of word w: [word_off[w], word_off[w + 1]) */
  WF__VEC(uint64_t) word_off;
  WF__VEC(struct pronunciation) pronunciations;
  WF__VEC(int32_t) spelled;
};

void wf_word_aligner_free(wf_word_aligner *aligner) {
  if (aligner == NULL) return;
  wf_symbols_free(aligner->names);
  wf__vec_free(&aligner->places);
  wf__vec_free(&aligner->roles);
  wf__vec_free(&aligner->word_off);
  wf__vec_free(&aligner->pronunciations);
  wf__vec_free(&aligner->spelled);
  free(aligner);
}

const char *wf_word_aligner_unit_text(const wf_word_aligner *aligner, int32_t unit) { return wf_symbols_text(aligner->names, (int64_t)unit - aligner->name_shift); }

/* --- making one ----------------------------------------------------------------------------------------------------------- */

static wf_status create(enum way way, const wf_symbols *names, int32_t name_shift, wf_word_aligner **out, wf_error *err) {
  wf_word_aligner *aligner = wf__calloc(1, sizeof *aligner);
  *out = aligner;
  if (aligner == NULL) return wf__fail_memory(err, sizeof *aligner, "a word aligner");
  aligner->way = way;
  aligner->runs = way != BY_POSITION;
  aligner->names = wf_symbols_ref(names);
  aligner->name_shift = name_shift;
  return WF_OK;
}

wf_status wf_word_aligner_from_hmm(const wf_hmm *hmm, wf_word_aligner **out, wf_error *err) {
  *out = NULL;
  if (hmm->word_position == NULL || hmm->places.size == 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "%s: word times need phones that know their place in the word: a Kaldi model whose lang folder has phones/word_boundary.txt", hmm->name);
  wf_word_aligner *aligner;
  wf_status status = create(BY_POSITION, hmm->phones, 0, &aligner, err);
  if (status == WF_OK) status = wf__vec_grow(&aligner->places, hmm->places.size, "a word aligner", err);
  if (status == WF_OK) status = wf__vec_grow(&aligner->roles, (uint64_t)hmm->num_phones + 1, "a word aligner", err);
  if (status != WF_OK) {
    wf_word_aligner_free(aligner);
    return status;
  }
  memcpy(aligner->places.data, hmm->places.data, hmm->places.size * sizeof *hmm->places.data);
  memcpy(aligner->roles.data, hmm->word_position, (size_t)hmm->num_phones + 1);
  aligner->places.size = hmm->places.size;
  aligner->roles.size = (uint64_t)hmm->num_phones + 1;
  aligner->roles.data[0] = NO_WORD; /* of labels that the model does not have */
  *out = aligner;
  return WF_OK;
}

/* Tokens with U+2581 in front begin words. */
static wf_status fill_marks(wf_word_aligner *aligner, const wf__tokens *tokens, wf_error *err) {
  bool any = false;
  WF__TRY(wf__vec_grow(&aligner->roles, (uint64_t)tokens->num_tokens + 1, "a word aligner", err));
  for (int32_t label = 0; label <= tokens->num_tokens; label++) {
    const char *text = wf_word_aligner_unit_text(aligner, label);
    bool marked = text != NULL && strncmp(text, "\xE2\x96\x81", 3) == 0;
    aligner->roles.data[aligner->roles.size++] = label == 0 || label == aligner->blank ? NO_WORD : marked ? WF__BEGIN : WF__INTERNAL;
    any = any || marked;
  }
  if (any) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT, "%s: no token starts with U+2581, the mark of a word's start; word times need a lexicon", wf_symbols_name(tokens->table));
}

wf_status wf_word_aligner_from_tokens(const wf_symbols *table, const char *blank, wf_word_aligner **out, wf_error *err) {
  *out = NULL;
  wf__tokens tokens;
  wf_word_aligner *aligner = NULL;
  int32_t blank_label;
  WF__TRY(wf__tokens_take(table, &tokens, err));
  WF__TRY(wf__tokens_blank(&tokens, blank, &blank_label, err));
  wf_status status = create(BY_MARK, table, tokens.shift, &aligner, err);
  if (status == WF_OK) {
    aligner->blank = blank_label;
    status = fill_marks(aligner, &tokens, err);
  }
  if (status != WF_OK) {
    wf_word_aligner_free(aligner);
    return status;
  }
  *out = aligner;
  return WF_OK;
}

/* Pronunciations by word: counted, then put in place. */
static wf_status fill_lexicon(wf_word_aligner *aligner, const wf_lexicon *lexicon, const wf_symbols *words, wf_error *err) {
  int64_t num_words = wf_symbols_next_key(words);
  uint64_t count = lexicon->entries.size;
  int64_t *word_of = wf__alloc(count, sizeof *word_of);
  if (word_of == NULL) return wf__fail_memory(err, count * sizeof *word_of, "a word aligner");
  wf_status status = wf__vec_grow(&aligner->word_off, (uint64_t)num_words + 1, "a word aligner", err);
  if (status == WF_OK) status = wf__vec_grow(&aligner->pronunciations, count, "a word aligner", err);
  if (status == WF_OK) status = wf__vec_grow(&aligner->spelled, lexicon->labels.size, "a word aligner", err);
  if (status != WF_OK) {
    free(word_of);
    return status;
  }
  uint64_t *off = aligner->word_off.data;
  for (int64_t w = 0; w <= num_words; w++) off[w] = 0;
  for (uint64_t i = 0; i < count; i++) {
    word_of[i] = wf_symbols_find(words, lexicon->entries.data[i].word);
    if (word_of[i] >= 0) off[word_of[i] + 1]++;
  }
  for (int64_t w = 0; w < num_words; w++) off[w + 1] += off[w];
  aligner->pronunciations.size = off[num_words];
  for (uint64_t i = 0; i < count; i++)
    if (word_of[i] >= 0) aligner->pronunciations.data[off[word_of[i]]++] = (struct pronunciation){lexicon->entries.data[i].label_off, lexicon->entries.data[i].num_labels};
  for (int64_t w = num_words; w > 0; w--) off[w] = off[w - 1]; /* each had moved to its end */
  if (num_words > 0) off[0] = 0;
  aligner->word_off.size = (uint64_t)num_words + 1;
  memcpy(aligner->spelled.data, lexicon->labels.data, lexicon->labels.size * sizeof *lexicon->labels.data);
  aligner->spelled.size = lexicon->labels.size;
  free(word_of);
  return WF_OK;
}

wf_status wf_word_aligner_from_lexicon(const wf_lexicon *lexicon, const wf_symbols *words, wf_word_aligner **out, wf_error *err) {
  *out = NULL;
  wf_word_aligner *aligner;
  wf_status status = create(BY_LEXICON, lexicon->table, lexicon->tokens.shift, &aligner, err);
  if (status == WF_OK) {
    aligner->blank = lexicon->blank;
    status = fill_lexicon(aligner, lexicon, words, err);
  }
  if (status != WF_OK) {
    wf_word_aligner_free(aligner);
    return status;
  }
  *out = aligner;
  return WF_OK;
}

/* --- units ---------------------------------------------------------------------------------------------------------------- */

static wf__hmm_place place_of(const wf_word_aligner *aligner, int32_t label) {
  return (uint64_t)label < aligner->places.size ? aligner->places.data[label] : (wf__hmm_place){0};
}

/* A phone begins behind the last label of the one before and its loops, and where the phone is another. `ended`: the last label but loops was a phone's
 * last. */
static bool begins_unit(const wf_word_aligner *aligner, const int32_t *labels, uint64_t i, bool *ended, int32_t *unit) {
  if (aligner->runs) {
    *unit = labels[i];
    return i == 0 || labels[i] != labels[i - 1];
  }
  wf__hmm_place place = place_of(aligner, labels[i]);
  bool begins = i == 0 || (*ended && !place.loop) || place.phone != place_of(aligner, labels[i - 1]).phone;
  *unit = place.phone;
  *ended = place.loop ? *ended && !begins : place.last;
  return begins;
}

wf_status wf__aligner_units(const wf_word_aligner *aligner, const int32_t *labels, uint64_t count, wf__unit_list *units, wf_error *err) {
  bool ended = false;
  for (uint64_t i = 0; i < count; i++) {
    int32_t unit;
    if (begins_unit(aligner, labels, i, &ended, &unit)) WF__TRY(wf__vec_push(units, ((wf__unit){unit, (uint32_t)i, (uint32_t)i}), "an alignment", err));
    units->data[units->size - 1].end = (uint32_t)i + 1;
  }
  return WF_OK;
}

bool wf__aligner_is_blank(const wf_word_aligner *aligner, int32_t unit) { return unit == 0 || unit == aligner->blank; }

static int role_of(const wf_word_aligner *aligner, int32_t unit) {
  if (wf__aligner_is_blank(aligner, unit)) return NO_WORD;
  return unit > 0 && (uint64_t)unit < aligner->roles.size ? aligner->roles.data[unit] : aligner->way == BY_POSITION ? NO_WORD : WF__INTERNAL;
}

/* --- parts ---------------------------------------------------------------------------------------------------------------- */

static const wf__part wait_for_more = {WF__PART_WAIT, 0, false};

static wf__part part_up_to(const wf__unit *last, wf__part_kind kind, bool forced) { return (wf__part){kind, last->end, forced}; }

/* From a phone that begins a word to the one that ends it. */
static wf__part part_by_position(const wf_word_aligner *aligner, const wf__unit *units, uint64_t complete, bool ended) {
  int role = role_of(aligner, units[0].unit);
  if (role == WF__SINGLE) return part_up_to(&units[0], WF__PART_WORD, false);
  uint64_t k = 1;
  while (k < complete && role_of(aligner, units[k].unit) == WF__INTERNAL) k++;
  if (k == complete) return ended ? part_up_to(&units[k - 1], WF__PART_WORD, true) : wait_for_more;
  bool closed = role_of(aligner, units[k].unit) == WF__END;
  return part_up_to(&units[closed ? k : k - 1], WF__PART_WORD, !closed || role != WF__BEGIN);
}

/* Up to the next token that begins a word, less the blanks before that. */
static wf__part part_by_mark(const wf_word_aligner *aligner, const wf__unit *units, uint64_t num_units, bool ended) {
  uint64_t k = 1;
  while (k < num_units && role_of(aligner, units[k].unit) != WF__BEGIN) k++;
  if (k == num_units && !ended) return wait_for_more;
  while (role_of(aligner, units[k - 1].unit) == NO_WORD) k--;
  return part_up_to(&units[k - 1], WF__PART_WORD, false);
}

/* Units from a label on: the first of them may be what is left of a run. */
struct rest {
  const wf__unit *units;
  uint64_t num_units;
  uint32_t from;
};

/* Where a pronunciation ends: with its last unit, or, if that is a run of several frames, in the middle of it, when the token is said twice in a row and
 * the topology asks for no blank between. */
struct reach {
  uint64_t last;
  uint32_t end, split; /* split 0: one frame alone */
};

/* Where the run from `from` on is split in two; 0: nowhere. */
static uint32_t middle_of(const wf__unit *run, uint32_t from) { return run->end - from >= 2 ? from + (run->end - from) / 2 : 0; }

static bool units_are_over(const wf__unit *unit, uint32_t from) { return unit->end <= from; }

/* Does a run of the token, after blanks, follow unit k? */
static bool token_follows(const wf_word_aligner *aligner, struct rest rest, uint64_t k, int32_t token) {
  for (k++; k < rest.num_units && rest.units[k].unit == aligner->blank;) k++;
  return k < rest.num_units && rest.units[k].unit == token;
}

/* How much of the pronunciation stands at the front of the units, blanks left out: all of it ('='), what there is of them agrees ('<'), or they differ
 * ('x'). */
static char match(const wf_word_aligner *aligner, const struct pronunciation *pronunciation, struct rest rest, struct reach *out) {
  const int32_t *tokens = aligner->spelled.data + pronunciation->first;
  uint32_t from = rest.from;
  uint64_t k = 0;
  for (uint32_t got = 0; got < pronunciation->count; got++) {
    while (k < rest.num_units && (units_are_over(&rest.units[k], from) || rest.units[k].unit == aligner->blank)) k++;
    if (k == rest.num_units) return '<';
    const wf__unit *run = &rest.units[k];
    if (run->first > from) from = run->first;
    if (run->unit != tokens[got]) return 'x';
    bool again = got + 1 < pronunciation->count && tokens[got + 1] == tokens[got] && middle_of(run, from) != 0 && !token_follows(aligner, rest, k, tokens[got]);
    *out = (struct reach){k, again ? middle_of(run, from) : run->end, again ? 0 : middle_of(run, from)};
    from = out->end;
  }
  return '=';
}

/* Can the words stand at the front of the units, as far as both go? Looks at no more than `depth` words. `ended`: nothing comes behind either. */
static bool may_follow(const wf_word_aligner *aligner, const int32_t *words, uint64_t num_words, struct rest rest, bool ended, int depth) {
  struct reach reach = {0};
  if (depth == 0) return true;
  if (num_words == 0) {
    if (!ended) return true;
    for (uint64_t k = 0; k < rest.num_units; k++)
      if (rest.units[k].unit != aligner->blank && !units_are_over(&rest.units[k], rest.from)) return false;
    return true;
  }
  if ((uint64_t)words[0] + 1 >= aligner->word_off.size) return false;
  for (uint64_t p = aligner->word_off.data[words[0]]; p < aligner->word_off.data[words[0] + 1]; p++) {
    char matched = match(aligner, &aligner->pronunciations.data[p], rest, &reach);
    if (matched == '<' && !ended) return true;
    if (matched != '=') continue;
    struct rest behind = {rest.units + reach.last, rest.num_units - reach.last, reach.end};
    if (may_follow(aligner, words + 1, num_words - 1, behind, ended, depth - 1)) return true;
    behind.from = reach.split;
    if (reach.split != 0 && may_follow(aligner, words + 1, num_words - 1, behind, ended, depth - 1)) return true;
  }
  return false;
}

/* The longest pronunciation behind which the next words can stand; else the longest. Waits while a longer one may still come. */
static wf__part part_by_lexicon(const wf_word_aligner *aligner, const wf__unit *units, uint64_t complete, uint64_t num_units, const int32_t *words, uint64_t num_words, bool ended) {
  bool fits = false;
  uint32_t longest = 0;
  if (num_words == 0) return ended ? part_up_to(&units[num_units - 1], WF__PART_NO_WORD, true) : wait_for_more;
  uint64_t first = (uint64_t)words[0] + 1 < aligner->word_off.size ? aligner->word_off.data[words[0]] : 0;
  uint64_t end = (uint64_t)words[0] + 1 < aligner->word_off.size ? aligner->word_off.data[words[0] + 1] : 0;
  for (uint64_t p = first; p < end; p++) {
    struct reach reach = {0};
    char matched = match(aligner, &aligner->pronunciations.data[p], (struct rest){units, complete, units[0].first}, &reach);
    if (matched == '<' && !ended) return wait_for_more;
    if (matched != '=') continue;
    const uint32_t ends[2] = {reach.end, reach.split};
    for (int i = 0; i < 2 && ends[i] != 0; i++) {
      struct rest behind = {units + reach.last, num_units - reach.last, ends[i]};
      bool next_fits = may_follow(aligner, words + 1, num_words - 1, behind, ended, MAX_LOOK_AHEAD);
      if (longest != 0 && num_words == 1 && !ended) return wait_for_more; /* the next word decides */
      if (longest == 0 || (next_fits && !fits) || (next_fits == fits && ends[i] > longest)) longest = ends[i];
      fits = fits || next_fits;
    }
  }
  if (longest != 0) return (wf__part){WF__PART_WORD, longest, false};
  return part_up_to(&units[ended && num_words == 1 ? num_units - 1 : 0], WF__PART_WORD, true);
}

wf__part wf__aligner_part(const wf_word_aligner *aligner, const wf__unit *units, uint64_t num_units, const int32_t *words, uint64_t num_words, bool ended) {
  uint64_t complete = ended ? num_units : num_units - (num_units > 0);
  if (complete == 0) return wait_for_more;
  if (role_of(aligner, units[0].unit) == NO_WORD) return part_up_to(&units[0], WF__PART_NO_WORD, units[0].unit == 0);
  wf__part part = aligner->way == BY_POSITION ? part_by_position(aligner, units, complete, ended)
                  : aligner->way == BY_MARK   ? part_by_mark(aligner, units, num_units, ended)
                                              : part_by_lexicon(aligner, units, complete, num_units, words, num_words, ended);
  if (part.kind != WF__PART_WORD || num_words > 0) return part;
  return ended ? (wf__part){WF__PART_NO_WORD, part.count, true} : wait_for_more; /* the word comes later in the lattice, or never */
}
