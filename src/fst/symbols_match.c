/* symbols_match.c - do the symbol tables of the inputs of an operation agree? Operations work on
 * labels. If a label is one symbol in one table and another symbol in the other, the result joins
 * paths that have nothing in common. OpenFst's CompatSymbols checks the same. */
#include <string.h>

#include "fst/fst.h"
#include "fst/symbols.h"

/* The first key that only `a` has, or that has another symbol in `b`. */
static bool find_difference(const wf_symbols *a, const wf_symbols *b, int64_t *key) {
  const size_t count = wf_symbols_count(a);
  for (size_t i = 0; i < count; i++) {
    int64_t other_key;
    const char *text = wf_symbols_at(a, i, key), *other = wf_symbols_at(b, i, &other_key);
    if (other == NULL || other_key != *key) other = wf_symbols_text(b, *key);
    if (other == NULL || strcmp(text, other) != 0) return true;
  }
  return false;
}

static const char *side_name(bool output) { return output ? "output" : "input"; }

/* A table of an operation's input. */
struct side {
  const wf_symbols *table;
  size_t fst; /* counted from 1 */
  bool output;
};

static struct side side_of(const wf_fst *const *fsts, size_t k, bool output) {
  return (struct side){output ? wf_fst_osymbols(fsts[k]) : wf_fst_isymbols(fsts[k]), k + 1, output};
}

static wf_status compare(struct side a, struct side b, wf_error *err) {
  int64_t key = 0;
  if (a.table == b.table || a.table == NULL || b.table == NULL) return WF_OK;
  if (!find_difference(a.table, b.table, &key) &&
      (wf_symbols_count(a.table) == wf_symbols_count(b.table) ||
       !find_difference(b.table, a.table, &key)))
    return WF_OK;
  const char *first = wf_symbols_text(a.table, key), *second = wf_symbols_text(b.table, key);
  if (first == NULL || second == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the %s symbols of fst %zu have no key %lld, which is '%s' in the %s symbols "
                    "of fst %zu: bring both to one table, or switch check_symbols off",
                    side_name(first == NULL ? a.output : b.output), first == NULL ? a.fst : b.fst,
                    (long long)key, first == NULL ? second : first,
                    side_name(first == NULL ? b.output : a.output), first == NULL ? b.fst : a.fst);
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "key %lld is '%s' in the %s symbols of fst %zu and '%s' in the %s symbols of fst "
                  "%zu: bring both to one table, or switch check_symbols off",
                  (long long)key, first, side_name(a.output), a.fst, second, side_name(b.output),
                  b.fst);
}

wf_status wf__same_symbols(const wf_fst *const *fsts, size_t count, wf_error *err) {
  for (int output = 0; output < 2; output++) {
    struct side first = {0};
    for (size_t k = 0; k < count; k++) {
      struct side side = side_of(fsts, k, output != 0);
      WF__TRY(compare(first, side, err));
      if (first.table == NULL) first = side;
    }
  }
  return WF_OK;
}

wf_status wf__joined_symbols(const wf_fst *const *fsts, size_t count, wf_error *err) {
  for (size_t k = 1; k < count; k++)
    WF__TRY(compare(side_of(fsts, k - 1, true), side_of(fsts, k, false), err));
  return WF_OK;
}

bool wf__alike_symbols(const wf_fst *a, const wf_fst *b, wf_error *err) {
  wf_error difference;
  if (wf__same_symbols((const wf_fst *[]){a, b}, 2, &difference) == WF_OK) return true;
  wf__fail(err, WF_OK, "%s", difference.message);
  return false;
}
