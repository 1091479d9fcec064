/* word_parts.c - finds the units of an alignment, and which of them form a word. There are three
 * ways: phones with a position in the word, tokens that mark the start of a word, and a lexicon. */
#include <string.h>

#include "graph/word_aligner.h"

enum {
  MAX_WAIT = 5 /* units, for the end of a word in a lattice */,
  MAX_LOOK_AHEAD = 8 /* words */,
  MAX_TRIES = 10000 /* bounds the work for lexicons with many
                       ambiguous spellings */
};

/* --- units ------------------------------------------------------------------------------- */

static wf__hmm_place place_of(const wf_word_aligner *root, int32_t label) {
  return (uint64_t)label < root->places.size ? root->places.data[label] : (wf__hmm_place){0};
}

/* Does a unit begin at a label? `before`: the label before it; `first`: there is none. A phone
 * begins after the last label of the previous phone and its self-loops, and where the phone
 * changes. *ended: the last label that was not a self-loop was the last of its phone. */
static bool begins_unit(const wf_word_aligner *root, int32_t label, int32_t before, bool first,
                        bool *ended, int32_t *unit) {
  const bool again = !first && label == before;
  if (root->runs) {
    *unit = label;
    return !again;
  }
  wf__hmm_place place = place_of(root, label);
  bool loop = root->loops_repeat ? again : place.loop;
  bool begins = first || (*ended && !loop) || place.phone != place_of(root, before).phone ||
                (root->loops_repeat && place.first && !loop);
  *unit = place.phone;
  *ended = loop ? *ended && !begins : place.last;
  return begins;
}

/* Adds label i to the units of the labels before it. */
static wf_status add_label(const wf_word_aligner *root, int32_t label, int32_t before, uint64_t i,
                           wf__unit_list *units, bool *ended, wf_error *err) {
  int32_t unit;
  if (begins_unit(root, label, before, i == 0, ended, &unit)) {
    const wf__unit *last = units->data + units->size;
    bool goes_on = root->runs && units->size >= 2 && last[-1].unit == 0 &&
                   last[-2].unit == unit; /* skipped frames do not interrupt a run */
    if (goes_on)
      units->size--;
    else
      WF__TRY(
          wf__vec_push(units, ((wf__unit){unit, (uint32_t)i, (uint32_t)i}), "an alignment", err));
  }
  units->data[units->size - 1].end = (uint32_t)i + 1;
  return WF_OK;
}

wf_status wf__aligner_units(const wf_word_aligner *aligner, const int32_t *labels, uint64_t count,
                            wf__unit_list *units, wf_error *err) {
  bool ended = false;
  units->size = 0;
  for (uint64_t i = 0; i < count; i++)
    WF__TRY(add_label(aligner->root, labels[i], i > 0 ? labels[i - 1] : 0, i, units, &ended, err));
  return WF_OK;
}

wf_status wf__aligner_more_units(const wf_word_aligner *aligner, const wf__unit_list *runs,
                                 uint64_t first, wf__unit_list *units, bool *ended, wf_error *err) {
  uint64_t r = runs->size;
  while (r > 0 && runs->data[r - 1].end > first) r--;
  for (; r < runs->size; r++) {
    const wf__unit *run = &runs->data[r];
    for (uint64_t i = first > run->first ? first : run->first; i < run->end; i++)
      WF__TRY(add_label(aligner->root, run->unit,
                        i > run->first ? run->unit
                        : r > 0        ? run[-1].unit
                                       : 0,
                        i, units, ended, err));
  }
  return WF_OK;
}

bool wf__aligner_is_blank(const wf_word_aligner *aligner, int32_t unit) {
  return unit == 0 || unit == aligner->root->blank;
}

static int role_of(const wf_word_aligner *aligner, int32_t unit) {
  if (wf__aligner_is_blank(aligner, unit)) return WF__NO_WORD;
  return unit > 0 && (uint64_t)unit < aligner->roles.size ? aligner->roles.data[unit]
         : aligner->root->way == WF__BY_POSITION          ? WF__NO_WORD
                                                          : WF__INTERNAL;
}

/* May the unit stand between words? */
static bool is_between(const wf_word_aligner *aligner, int32_t unit) {
  return role_of(aligner, unit) < 0;
}

/* --- pronunciations ---------------------------------------------------------------------- */

struct spelling {
  const int32_t *units;
  uint32_t count;
};

/* Iterates over the pronunciations of a word, those of added words first. */
struct spelling_list {
  const wf_word_aligner *aligner; /* NULL at the end */
  int32_t word;
  uint32_t next, end;
};

static void find_word(struct spelling_list *list) {
  const wf__spellings *spellings = &list->aligner->spellings;
  const int32_t *const words = spellings->words.data;
  const uint64_t count = spellings->words.size;
  uint64_t first = 0, end = count;
  if (spellings->index.size > 0) {
    const uint64_t at = (uint64_t)((int64_t)list->word - words[0]);
    first = end = at < spellings->index.size ? spellings->index.data[at] : count;
  }
  while (first < end) {
    uint64_t middle = first + (end - first) / 2;
    if (words[middle] < list->word)
      first = middle + 1;
    else
      end = middle;
  }
  list->next = list->end = 0;
  if (first == count || words[first] != list->word) return;
  list->next = spellings->word_off.data[first];
  list->end = spellings->word_off.data[first + 1];
}

static void begin_spellings(struct spelling_list *list, const wf_word_aligner *aligner,
                            int32_t word) {
  list->aligner = aligner;
  list->word = word;
  find_word(list);
}

static bool next_spelling(struct spelling_list *list, struct spelling *out) {
  while (list->next == list->end) {
    list->aligner = list->aligner->base;
    if (list->aligner == NULL) return false;
    find_word(list);
  }
  const wf__spellings *spellings = &list->aligner->spellings;
  uint32_t p = list->next++, first = spellings->spell_off.data[p];
  *out =
      (struct spelling){spellings->spelled.data + first, spellings->spell_off.data[p + 1] - first};
  return true;
}

static bool may_begin_with(const wf_word_aligner *aligner, int32_t word, int32_t unit) {
  struct spelling_list list;
  struct spelling spelling;
  for (begin_spellings(&list, aligner, word); next_spelling(&list, &spelling);)
    if (spelling.units[0] == unit) return true;
  return false;
}

/* --- parts ------------------------------------------------------------------------------- */

static const wf__part wait_for_more = {WF__PART_WAIT, 0, false};

static wf__part part_up_to(const wf__unit *last, wf__part_kind kind, bool forced) {
  return (wf__part){kind, last->end, forced};
}

/* The part from a phone that begins a word to the one that ends it. */
static wf__part part_by_position(const wf_word_aligner *aligner, const wf__unit *units,
                                 uint64_t complete, bool ended) {
  int role = role_of(aligner, units[0].unit);
  if (role == WF__SINGLE) return part_up_to(&units[0], WF__PART_WORD, false);
  uint64_t k = 1;
  while (k < complete && role_of(aligner, units[k].unit) == WF__INTERNAL) k++;
  if (k == complete) return ended ? part_up_to(&units[k - 1], WF__PART_WORD, true) : wait_for_more;
  bool closed = role_of(aligner, units[k].unit) == WF__END;
  return part_up_to(&units[closed ? k : k - 1], WF__PART_WORD, !closed || role != WF__BEGIN);
}

/* The part up to the next token that begins a word, without the blanks before that token. */
static wf__part part_by_mark(const wf_word_aligner *aligner, const wf__unit *units,
                             uint64_t num_units, bool ended) {
  uint64_t k = 1;
  while (k < num_units && role_of(aligner, units[k].unit) != WF__BEGIN) k++;
  if (k == num_units && !ended) return wait_for_more;
  while (is_between(aligner, units[k - 1].unit)) k--;
  return part_up_to(&units[k - 1], WF__PART_WORD, false);
}

/* A position in the units. Labels before `from` are consumed; `from` may be inside the run of the
 * first unit. */
struct place {
  uint32_t unit, from;
};

/* The positions where a pronunciation may end. There are several only if a token occurs twice in a
 * row. Then a run of several frames may be both tokens, because not every topology requires a blank
 * between them. Each of these tokens except the last takes one frame of the run. */
enum { MAX_PLACES = 32 };
struct places {
  struct place list[MAX_PLACES];
  int count;
  bool open; /* units still to come may add some */
};

/* The complete units. `ended`: no others follow. */
struct units {
  const wf__unit *list;
  uint32_t count;
  bool ended;
  const wf__unit *begun; /* the unit behind them, which is not complete; NULL: none */
};

static void add_place(struct places *places, uint32_t unit, uint32_t from) {
  for (int i = 0; i < places->count; i++)
    if (places->list[i].unit == unit && places->list[i].from == from) return;
  if (places->count < MAX_PLACES) places->list[places->count++] = (struct place){unit, from};
}

/* The first unit that is neither consumed nor a blank; units->count if there is none. */
static uint32_t next_spoken(const wf_word_aligner *aligner, const struct units *units,
                            const struct place *at) {
  uint32_t k = at->unit;
  while (k < units->count &&
         (units->list[k].end <= at->from || wf__aligner_is_blank(aligner, units->list[k].unit)))
    k++;
  return k;
}

/* May the token follow the complete units? The unit that has begun tells, unless it may stand
 * between words. */
static bool may_come(const wf_word_aligner *aligner, const struct units *units, int32_t token) {
  if (units->begun == NULL) return !units->ended;
  return units->begun->unit == token || is_between(aligner, units->begun->unit);
}

/* Consumes one token at a position and adds the positions after it to *out. `again`: the same token
 * may follow in the same run. */
static void match_token(const wf_word_aligner *aligner, const struct units *units,
                        const struct place *at, int32_t token, bool again, struct places *out) {
  uint32_t k = next_spoken(aligner, units, at);
  if (k == units->count) {
    out->open = out->open || may_come(aligner, units, token);
    return;
  }
  const wf__unit *run = &units->list[k];
  uint32_t from = run->first > at->from ? run->first : at->from;
  if (run->unit != token) return;
  add_place(out, k, run->end);
  if (again && aligner->root->runs && run->end - from >= 2) add_place(out, k, from + 1);
}

/* Consumes the tokens of a pronunciation from *at up to one that may share its run with the next,
 * or up to the last one. There is one position after each of these. Returns the number of tokens
 * consumed; spelling.count + 1 if one does not match, or if the units end: then *open. */
static uint32_t match_plain(const wf_word_aligner *aligner, const struct units *units,
                            struct spelling spelling, struct place *at, bool *open) {
  struct place place = *at;
  uint32_t i = 0;
  for (; i + 1 < spelling.count && spelling.units[i] != spelling.units[i + 1]; i++) {
    const uint32_t k = next_spoken(aligner, units, &place);
    *open = k == units->count && may_come(aligner, units, spelling.units[i]);
    if (k == units->count || units->list[k].unit != spelling.units[i]) return spelling.count + 1;
    place = (struct place){k, units->list[k].end};
  }
  *at = place;
  return i;
}

/* Sets *out to the positions after a pronunciation that starts at `at`. Blanks are skipped.
 * `again`: the next word may begin with the last token of this one. */
static void places_behind(const wf_word_aligner *aligner, const struct units *units,
                          const struct place *at, struct spelling spelling, bool again,
                          struct places *out) {
  struct places other, *now = out, *next = &other;
  now->open = false;
  now->list[0] = *at;
  uint32_t i = match_plain(aligner, units, spelling, &now->list[0], &now->open);
  now->count = i <= spelling.count;
  for (; i < spelling.count && now->count > 0; i++) {
    bool last = i + 1 == spelling.count,
         twice = last ? again : spelling.units[i + 1] == spelling.units[i];
    next->count = 0;
    next->open = now->open;
    for (int k = 0; k < now->count; k++)
      match_token(aligner, units, &now->list[k], spelling.units[i], twice, next);
    struct places *swap = now;
    now = next;
    next = swap;
  }
  if (now == out) return;
  memcpy(out->list, now->list, (size_t)now->count * sizeof *now->list);
  out->count = now->count;
  out->open = now->open;
}

/* Moves *at past one unit of silence. Returns false if the next unit is not silence or there is
 * none. */
static bool skip_silence(const wf_word_aligner *aligner, const struct units *units,
                         struct place *at) {
  uint32_t k = next_spoken(aligner, units, at);
  if (k == units->count || !is_between(aligner, units->list[k].unit) ||
      units->list[k].first < at->from)
    return false;
  *at = (struct place){k + 1, units->list[k].end};
  return true;
}

/* Do the words match the units from a position on? */
enum fit { FITS_NOT, FITS, FITS_MAYBE /* units still to come decide */ };

/* Sets *ends to the positions where a word that begins at `at` may end, over all its
 * pronunciations. */
static void ends_of(const wf_word_aligner *aligner, int32_t word, const struct units *units,
                    const struct place *at, struct places *ends) {
  const uint32_t k = next_spoken(aligner, units, at);
  struct places behind;
  struct spelling_list list;
  struct spelling spelling;
  ends->count = 0;
  ends->open = false;
  for (begin_spellings(&list, aligner, word); next_spelling(&list, &spelling);) {
    if (k == units->count) {
      ends->open = ends->open || may_come(aligner, units, spelling.units[0]);
      continue;
    }
    if (units->list[k].unit != spelling.units[0]) continue;
    places_behind(aligner, units, at, spelling, true, &behind);
    ends->open = ends->open || behind.open;
    for (int i = 0; i < behind.count; i++)
      add_place(ends, behind.list[i].unit, behind.list[i].from);
  }
}

/* Do the words match from a position on? Looks at most `depth` words ahead and at most *tries
 * positions; beyond these limits it returns FITS. */
static enum fit may_follow(const wf_word_aligner *aligner, const int32_t *words, uint64_t num_words,
                           const struct units *units, const struct place *from, int depth,
                           int *tries) {
  struct place at = *from;
  enum fit fit = FITS_NOT;
  if (depth == 0 || --*tries < 0) return FITS;
  if (num_words == 0) {
    if (!units->ended) return FITS_MAYBE;
    while (skip_silence(aligner, units, &at)) continue;
    return next_spoken(aligner, units, &at) == units->count ? FITS : FITS_NOT;
  }
  do {
    struct places ends;
    ends_of(aligner, words[0], units, &at, &ends);
    if (ends.open) fit = FITS_MAYBE;
    for (int i = 0; i < ends.count; i++) {
      enum fit next =
          may_follow(aligner, words + 1, num_words - 1, units, &ends.list[i], depth - 1, tries);
      if (next == FITS) return FITS;
      if (next == FITS_MAYBE) fit = FITS_MAYBE;
    }
  } while (skip_silence(aligner, units, &at));
  return fit;
}

/* The possible ends of the next word. Preferred are ends after which the following words match.
 * Among several, the last is taken. */
struct choice {
  uint32_t end, fitting, open; /* the last of all ends; of those that fit; of those that may still
                                  turn out to fit. 0: none */
  bool several;
};

static void add_end(struct choice *choice, uint32_t end, enum fit fit) {
  choice->several = choice->several || (choice->end != 0 && choice->end != end);
  if (end > choice->end) choice->end = end;
  if (fit == FITS && end > choice->fitting) choice->fitting = end;
  if (fit == FITS_MAYBE && end > choice->open) choice->open = end;
}

/* Waits while later units could change the result, so that the result is the same whether all units
 * are present or arrive one by one. If `eager`, FITS_MAYBE counts as FITS where there is one end,
 * and beyond MAX_WAIT units, so there is less to wait for. */
static wf__part part_by_lexicon(const wf_word_aligner *aligner, const struct units *units,
                                const int32_t *words, uint64_t num_words, bool eager) {
  const struct place front = {0, units->list[0].first};
  const uint32_t k = next_spoken(aligner, units, &front);
  struct choice choice = {0};
  struct places behind;
  struct spelling_list list;
  struct spelling spelling;
  if (num_words == 0)
    return units->ended ? part_up_to(&units->list[units->count - 1], WF__PART_NO_WORD, true)
                        : wait_for_more;
  for (begin_spellings(&list, aligner, words[0]); next_spelling(&list, &spelling);) {
    if (k == units->count && may_come(aligner, units, spelling.units[0])) return wait_for_more;
    if (k == units->count || units->list[k].unit != spelling.units[0]) continue;
    bool again = num_words == 1
                     ? !units->ended
                     : may_begin_with(aligner, words[1], spelling.units[spelling.count - 1]);
    places_behind(aligner, units, &front, spelling, again, &behind);
    if (behind.open) return wait_for_more;
    for (int i = 0; i < behind.count; i++) {
      int tries = MAX_TRIES;
      enum fit fit = may_follow(aligner, words + 1, num_words - 1, units, &behind.list[i],
                                MAX_LOOK_AHEAD, &tries);
      add_end(&choice, behind.list[i].from,
              eager && units->count > MAX_WAIT && fit == FITS_MAYBE ? FITS : fit);
    }
  }
  bool silent =
      is_between(aligner, units->list[0].unit); /* a unit of silence that pronunciations also use;
                                                   it is a word only if the following words fit */
  if (eager && !choice.several && choice.open > choice.fitting) choice.fitting = choice.open;
  if ((choice.several || silent) && choice.open > choice.fitting) return wait_for_more;
  if (eager && choice.several && num_words == 1 && !units->ended)
    return wait_for_more; /* the next word decides */
  if (choice.fitting != 0)
    return (wf__part){WF__PART_WORD, choice.several ? choice.fitting : choice.end, false};
  if (silent) return part_up_to(&units->list[0], WF__PART_NO_WORD, false);
  if (choice.end != 0) return (wf__part){WF__PART_WORD, choice.end, false};
  if (num_words == 1 && !units->ended && !eager) return wait_for_more;
  return part_up_to(&units->list[units->ended && num_words == 1 ? units->count - 1 : 0],
                    WF__PART_WORD, true);
}

wf__part wf__aligner_part(const wf_word_aligner *aligner, const wf__unit *units, uint64_t num_units,
                          const int32_t *words, uint64_t num_words, bool ended, bool eager) {
  uint64_t complete = ended ? num_units : num_units - (num_units > 0);
  if (!ended && complete > 0 && aligner->root->runs && units[complete].unit == 0)
    complete--; /* the run before skipped frames may continue */
  if (complete == 0) return wait_for_more;
  if (role_of(aligner, units[0].unit) == WF__NO_WORD)
    return part_up_to(&units[0], WF__PART_NO_WORD, units[0].unit == 0);
  wf__part part =
      aligner->root->way == WF__BY_POSITION ? part_by_position(aligner, units, complete, ended)
      : aligner->root->way == WF__BY_MARK
          ? part_by_mark(aligner, units, num_units, ended)
          : part_by_lexicon(aligner,
                            &(struct units){units, (uint32_t)complete, ended,
                                            complete < num_units ? units + complete : NULL},
                            words, num_words, eager);
  if (part.kind != WF__PART_WORD || num_words > 0) return part;
  return ended ? (wf__part){WF__PART_NO_WORD, part.count, true}
               : wait_for_more; /* the word may come later */
}

/* --- one path ---------------------------------------------------------------------------- */

wf_status wf__aligner_place(const wf_word_aligner *aligner, const int32_t *words,
                            uint64_t num_words, const int32_t *labels, uint64_t num_labels,
                            bool ended, wf__unit_list *units, wf_word *out_words, wf__placed *out,
                            wf_error *err) {
  *out = (wf__placed){0};
  WF__TRY(wf__aligner_units(aligner, labels, num_labels, units, err));
  uint64_t at = 0; /* units placed */
  while (at < units->size || (ended && out->num_words < num_words)) {
    wf__part part = {WF__PART_WORD, out->num_labels, true}; /* a word without a frame */
    if (at < units->size)
      part = wf__aligner_part(aligner, units->data + at, units->size - at, words + out->num_words,
                              num_words - out->num_words, ended, false);
    if (part.kind == WF__PART_WAIT) break;
    if (part.kind == WF__PART_WORD) {
      out_words[out->num_words] =
          (wf_word){words[out->num_words], (int32_t)out->num_labels, (int32_t)part.count};
      out->num_words++;
      out->num_forced += part.forced;
    }
    out->num_labels = part.count; /* counts from the first label */
    while (at < units->size && units->data[at].end <= out->num_labels) at++;
    if (at < units->size && units->data[at].first < out->num_labels)
      units->data[at].first = out->num_labels; /* the run contains two tokens */
  }
  return WF_OK;
}

wf_status wf_word_aligner_words(const wf_word_aligner *aligner, const int32_t *words,
                                size_t num_words, const int32_t *alignment, size_t num_labels,
                                wf_word *out_words, uint64_t *out_forced, wf_error *err) {
  wf__unit_list units = {0};
  wf__placed placed = {0};
  wf_status status = num_labels <= INT32_MAX
                         ? wf__aligner_place(aligner, words, num_words, alignment, num_labels, true,
                                             &units, out_words, &placed, err)
                         : wf__fail(err, WF_ERR_LIMIT, "an alignment of %zu frames", num_labels);
  if (out_forced != NULL) *out_forced = placed.num_forced;
  wf__vec_free(&units);
  return status;
}

wf_status wf_word_aligner_units(const wf_word_aligner *aligner, const int32_t *alignment,
                                size_t num_labels, wf_word **out_units, size_t *out_count,
                                wf_error *err) {
  *out_units = NULL;
  *out_count = 0;
  wf__unit_list units = {0};
  if (num_labels > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "an alignment of %zu frames", num_labels);
  wf_status status = wf__aligner_units(aligner, alignment, num_labels, &units, err);
  if (status == WF_OK && (*out_units = wf__alloc(units.size, sizeof **out_units)) == NULL)
    status = wf__fail_memory(err, units.size * sizeof **out_units, "an alignment");
  for (uint64_t i = 0; i < units.size && status == WF_OK; i++) {
    const wf__unit *unit = &units.data[i];
    if (!wf__aligner_is_blank(aligner, unit->unit))
      (*out_units)[(*out_count)++] =
          (wf_word){unit->unit, (int32_t)unit->first, (int32_t)unit->end};
  }
  wf__vec_free(&units);
  return status;
}
