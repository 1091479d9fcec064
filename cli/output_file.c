/* output_file.c - stdio streams over wf_output. */
#include "output_file.h"

#include "base/platform.h"

static void take(void *user, const void *data, size_t size) {
  wf_output_write(user, data, size); /* keeps an error until it is closed */
}

wf_status cli_output_open(cli_output *out, const char *path, wf_error *err) {
  *out = (cli_output){0};
  wf_status status = wf_output_open(path != NULL ? path : "-", &out->output, err);
  if (status != WF_OK) return status;
  out->file = wf__stdio_writer(take, out->output);
  if (out->file != NULL) return WF_OK;
  wf_output_abort(out->output);
  err->code = WF_ERR_MEMORY;
  snprintf(err->message, sizeof err->message, "out of memory");
  return err->code;
}

wf_status cli_output_close(cli_output *out, wf_status status, wf_error *err) {
  if (out->file == NULL) return status;
  (void)wf__stdio_close_writer(out->file);
  if (status == WF_OK)
    status = wf_output_close(out->output, err);
  else
    wf_output_abort(out->output);
  *out = (cli_output){0};
  return status;
}
