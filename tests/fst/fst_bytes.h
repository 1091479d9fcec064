/* fst_bytes.h - reads fst files from memory: for tests of thousands of damaged files. */
#ifndef TESTS_FST_BYTES_H
#define TESTS_FST_BYTES_H

#include "testing.h"

static inline wf_status test_read_fst_bytes(const void *data, size_t size, wf_fst **out,
                                            wf_error *error) {
  return wf_fst_read_memory(data, size, "memory", out, error);
}

#endif
