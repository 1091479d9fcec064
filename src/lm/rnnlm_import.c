/* rnnlm_import.c - recurrent language models of PyTorch from safetensors files: not yet. */
#include "lm/rnnlm.h"

wf_status wf__rnnlm_read_safetensors(const wf__input *file, const wf_symbols *words, wf_rnnlm **out, wf_error *err) {
  return wf__fail(err, WF_ERR_UNSUPPORTED, "%s: safetensors models cannot be read yet", file->path);
}
