/* wlm_read.h - an open large language model. */
#ifndef WF_LM_WLM_READ_H
#define WF_LM_WLM_READ_H

#include <stdatomic.h>

#include "base/input.h"
#include "lm/wlm_file.h"

struct wf_wlm {
  atomic_uint_fast32_t refs;
  wf__input input;
  const wf__wlm_header *header; /* in the file */
  wf_symbols *words;
  wf__wlm_view view;
};

bool wf__wlm_is(const wf__input *input);
/* wf_wlm_open of bytes that are there; takes the input over, also on failure. */
wf_status wf__wlm_open_input(wf__input *input, wf_wlm **out, wf_error *err);

#endif
