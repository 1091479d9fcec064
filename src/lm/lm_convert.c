/* lm_convert.c - wf_lm_convert. The small model, which is subtracted, is read into memory. */
#include "base/config.h"
#include "base/option_tables.h"
#include "lm/lm.h"
#include "lm/wlm_build.h"

wf_status wf_lm_convert(const char *path, const char *out, const wf_arpa_options *reader,
                        const wf_lm_convert_options *options, wf_lm_convert_stats *stats,
                        wf_arpa_stats *reading, const wf_progress *progress, wf_error *err) {
  wf_lm_convert_options o;
  const wf__automaton *small = NULL;
  wf_lm *lm = NULL;
  if (stats != NULL) WF__TRY(wf__struct_check("wf_lm_convert_stats", stats, sizeof *stats, err));
  WF__TRY(wf__options_take(wf__lm_convert_table(), options, &o, err));
  if (o.subtract != NULL) WF__TRY(wf_lm_open(o.subtract, NULL, reader, &lm, NULL, NULL, err));
  wf_status status = lm != NULL ? wf__lm_automaton(lm, &small, err) : WF_OK;
  if (status == WF_OK)
    status = wf__wlm_convert(path, small, out, reader, &o, stats, reading, progress, err);
  wf_lm_free(lm);
  return status;
}
