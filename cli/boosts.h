/* boosts.h - lists of boosted words and phrases, for all utterances and for single ones. */
#ifndef WARPFST_CLI_BOOSTS_H
#define WARPFST_CLI_BOOSTS_H

#include "cli.h"

typedef struct boost_set boost_set;
/* `all_path`: a list for every utterance; `each_path`: lines `id list`, lists for single
 * utterances, which come on top of that. Either may be NULL. A phrase with a word that the table
 * has not is ignored, and noted. `base` (may be NULL): a scorer that comes first for all. */
wf_status boosts_read(const char *all_path, const char *each_path, const wf_symbols *words,
                      const wf_scorer *base, boost_set **out, wf_error *err);
/* The scorer for an utterance, of the set; NULL: none. */
const wf_scorer *boosts_for(const boost_set *set, const char *key);
void boosts_free(boost_set *set);

#endif
