/* unified_memory.h - memory that a GPU and the host access with the same pointers. It begins in the
 * GPU's memory; pages that the host reads move to host memory. */
#ifndef WF_CUDA_DEVICE_UNIFIED_MEMORY_H
#define WF_CUDA_DEVICE_UNIFIED_MEMORY_H

#include "base/error.h"

/* Memory on the current device. Errors: WF_ERR_MEMORY; WF_ERR_UNSUPPORTED if the host must not
 * access it while a kernel runs, as on some systems. */
wf_status wf__unified_alloc(uint64_t bytes, const char *what, void **out, wf_error *err);
void wf__unified_free(void *memory);

#endif
