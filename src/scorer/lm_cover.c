/* lm_cover.c - the words of a graph in a language model: their names, and how many it knows. */
#include "scorer/lm_cover.h"

#include <string.h>

#include "base/callbacks.h"
#include "base/tally.h"
#include "graph/token_marks.h"
#include "graph/tokens.h"

enum { MOST_BYTES = 300 }; /* of the names in a warning */

const char *wf__lm_name(const char *text) { return strcmp(text, " ") == 0 ? "<space>" : text; }

wf_status wf__lm_cover_add(wf__lm_cover *cover, const char *text, bool is_known, wf_error *err) {
  size_t size = strlen(text);
  if (size == 0 || wf__is_disambig(text, size) ||
      wf__token_mark_of(text, NULL) == WF__TOKEN_SPECIAL)
    return WF_OK;
  cover->num_words++;
  if (is_known) return WF_OK;
  cover->num_unknown++;
  return wf__tally_add(&cover->unknown, text, err);
}

void wf__lm_cover_warn(const wf__lm_cover *cover, bool has_unk) {
  char names[MOST_BYTES];
  if (cover->num_unknown == 0 || cover->num_unknown * (has_unk ? 2 : 10) < cover->num_words) return;
  wf__tally_list(&cover->unknown, names, sizeof names);
  wf__log(WF_LOG_WARNING,
          "the language model lacks %llu of the graph's %llu words (%.0f%%): %s. %s. Is it a model "
          "of other words?",
          (unsigned long long)cover->num_unknown, (unsigned long long)cover->num_words,
          100.0 * (double)cover->num_unknown / (double)cover->num_words, names,
          has_unk ? "They cost what its unknown word costs"
                  : "It has no unknown word, so they are impossible");
}

void wf__lm_cover_free(wf__lm_cover *cover) { wf__tally_free(&cover->unknown); }
