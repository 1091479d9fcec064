/* compose_output.c - frees the arrays of a composition, and returns its errors. */
#include "fstops/compose_job.h"

void wf__compose_output_free(wf__compose_output *out) {
  wf__csr_free(&out->csr);
  wf__vec_free(&out->origins);
}

wf_status wf__compose_phi_output(int32_t phi_label, wf_error *err) {
  return wf__fail(err, WF_ERR_ARGUMENT, "the first fst has the failure label %d on its output side",
                  phi_label);
}

wf_status wf__compose_too_large(uint64_t bytes, uint64_t max_bytes, wf_error *err) {
  return wf__fail(err, WF_ERR_LIMIT, "the composition needs %llu bytes, more than %llu (max_bytes)",
                  (unsigned long long)bytes, (unsigned long long)max_bytes);
}
