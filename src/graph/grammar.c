/* grammar.c - reads grammars as people write them: JSGF, sentences, or an fst. */
#include <string.h>

#include "base/map64.h"
#include "fst/fst_formats.h"
#include "graph/grammar_words.h"
#include "graph/jsgf.h"

#define MAX_ARCS 10000000 /* in the header, too */

/* --- JSGF or an fst ---------------------------------------------------------------------- */

/* Closes the input, or gives it to the fst. */
static wf_status read_any(wf__input *input, const wf_symbols *words, wf_fst **out, wf_error *err) {
  wf_fst_format format;
  if (!wf__jsgf_is(input)) return wf__fst_read_input(input, out, &format, err);
  wf_status status = wf__jsgf_read(input, words, MAX_ARCS, out, err);
  wf__input_close(input);
  return status;
}

wf_status wf_grammar_read(const char *path, const wf_symbols *words, wf_fst **out, wf_error *err) {
  wf__input input;
  *out = NULL;
  WF__TRY(wf__input_open(path, &input, err));
  return read_any(&input, words, out, err);
}

wf_status wf_grammar_read_memory(const void *data, size_t size, const char *name,
                                 const wf_symbols *words, wf_fst **out, wf_error *err) {
  wf__input input;
  *out = NULL;
  WF__TRY(wf__input_from_memory(data, size, name, &input, err));
  return read_any(&input, words, out, err);
}

/* --- sentences --------------------------------------------------------------------------- */

struct word_arc {
  uint32_t from, number; /* of the word; leads to the state that is its place in the list, + 1 */
};

/* A tree of words, so that sentences share their beginnings. */
struct tree {
  wf__lines lines;
  wf__grammar_words words;
  wf__map64 next; /* (state, word) -> state */
  WF__VEC(struct word_arc) arcs;
  WF__VEC(uint32_t) ends; /* the last states of the sentences, with repetitions */
};

static wf_status add_word(struct tree *tree, wf__span word, uint32_t *state, wf_error *err) {
  uint32_t number;
  bool is_new;
  wf_status status = wf__grammar_words_add(&tree->words, word, &number, err);
  if (status != WF_OK)
    return wf__fail_prefix(err, status, "%s:%llu", tree->lines.path,
                           (unsigned long long)tree->lines.line_number);
  if (tree->arcs.size >= INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "%s: more than 2^31 words", tree->lines.path);
  const struct word_arc arc = {*state, number};
  WF__TRY(wf__vec_grow(&tree->arcs, 1, "sentences of a grammar", err));
  WF__TRY(wf__map64_insert(&tree->next, (uint64_t)*state << 32 | number,
                           (uint32_t)tree->arcs.size + 1, state, &is_new, "sentences of a grammar",
                           err));
  if (is_new) tree->arcs.data[tree->arcs.size++] = arc;
  return WF_OK;
}

static wf_status read_sentence(struct tree *tree, wf__span rest, wf_error *err) {
  uint32_t state = 0;
  if (!wf__is_utf8(rest) || memchr(rest.data, '\0', rest.size) != NULL)
    return wf__lines_fail(&tree->lines, err, WF_ERR_FORMAT, "the sentence is not UTF-8 text");
  for (wf__span word; wf__next_field(&rest, &word);) WF__TRY(add_word(tree, word, &state, err));
  return state == 0 ? WF_OK : wf__vec_push(&tree->ends, state, "sentences of a grammar", err);
}

static wf_status fill(const struct tree *tree, wf_builder *builder, wf_error *err) {
  WF__TRY(wf_builder_add_states(builder, tree->arcs.size + 1, NULL, err));
  WF__TRY(wf_builder_set_start(builder, 0, err));
  for (uint64_t i = 0; i < tree->arcs.size; i++) {
    const int32_t label = wf__grammar_words_label(&tree->words, tree->arcs.data[i].number);
    WF__TRY(wf_builder_add_arc(builder, tree->arcs.data[i].from,
                               (wf_arc){(uint32_t)i + 1, 0, label, label}, err));
  }
  for (uint64_t i = 0; i < tree->ends.size; i++)
    WF__TRY(wf_builder_set_final(builder, tree->ends.data[i], 0, err));
  return WF_OK;
}

static wf_status read_sentences(struct tree *tree, wf_fst **out, wf_error *err) {
  wf_builder *builder;
  for (wf__span line; wf__next_line(&tree->lines, &line);) WF__TRY(read_sentence(tree, line, err));
  if (tree->ends.size == 0)
    return wf__fail(err, WF_ERR_FORMAT, "%s: no sentence, expected one in each line",
                    tree->lines.path);
  WF__TRY(wf__grammar_words_close(&tree->words, err));
  WF__TRY(wf_builder_create(WF_TROPICAL, &builder, err));
  wf_status status = fill(tree, builder, err);
  if (status == WF_OK)
    status = wf_builder_finish(builder, tree->words.table, tree->words.table, out, err);
  wf_builder_free(builder);
  return status;
}

/* Closes the input. */
static wf_status read_opened(wf__input *input, const wf_symbols *words, wf_fst **out,
                             wf_error *err) {
  struct tree tree = {.lines = wf__lines_of(input), .words.given = words};
  wf_status status = read_sentences(&tree, out, err);
  wf__grammar_words_free(&tree.words);
  wf__map64_free(&tree.next);
  wf__vec_free(&tree.arcs);
  wf__vec_free(&tree.ends);
  wf__input_close(input);
  return status;
}

wf_status wf_grammar_read_phrases(const char *path, const wf_symbols *words, wf_fst **out,
                                  wf_error *err) {
  wf__input input;
  *out = NULL;
  WF__TRY(wf__input_open(path, &input, err));
  return read_opened(&input, words, out, err);
}

wf_status wf_grammar_read_phrases_memory(const void *data, size_t size, const char *name,
                                         const wf_symbols *words, wf_fst **out, wf_error *err) {
  wf__input input;
  *out = NULL;
  WF__TRY(wf__input_from_memory(data, size, name, &input, err));
  return read_opened(&input, words, out, err);
}
