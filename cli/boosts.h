/* boosts.h - lists of boosted words and phrases, for all utterances and for single ones. */
#ifndef WARPFST_CLI_BOOSTS_H
#define WARPFST_CLI_BOOSTS_H

#include "cli.h"

typedef struct boost_set boost_set;
/* What the phrases are boosted in: see wf_phrase_list. */
typedef struct boost_target {
  const wf_symbols *words, *tokens;
  const wf_token_joiner *joiner;
  float per_letter; /* of wf_boost_by_length, for phrases listed without a boost */
} boost_target;
/* `all_path`: a list for all utterances. `each_path`: lines `utterance list`, lists for single
 * utterances, in addition to all_path. Either may be NULL. Phrases with unknown words are ignored,
 * with a warning. `base` (may be NULL): a scorer chained before the boosts of all utterances. */
wf_status boosts_read(const char *all_path, const char *each_path, const boost_target *target,
                      const wf_scorer *base, boost_set **out, wf_error *err);
/* The scorer of an utterance, owned by the set; NULL: none. */
const wf_scorer *boosts_for(const boost_set *set, const char *key);
void boosts_free(boost_set *set);

#endif
