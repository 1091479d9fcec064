/* fake_register.c - the registration of the imitated GPU that has a search only: in place of
 * src/cuda/register.c. */
#include "base/device.h"
#include <build_id.h>
#include "cuda/decoder/cuda_backend.h"

static const wf__device device = {.build = WF__BUILD, .search = &wf__cuda_backend};

void wf__cuda_register(void);
__attribute__((constructor)) void wf__cuda_register(void) { wf__device_register(&device); }
