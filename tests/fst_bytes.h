/* fst_bytes.h - reads fst files from memory: for tests of thousands of damaged files. */
#ifndef TESTS_FST_BYTES_H
#define TESTS_FST_BYTES_H

#include "fst/fst_formats.h"
#include "testing.h"

static inline wf_status test_read_fst_bytes(const void *data, size_t size, wf_fst **out,
                                            wf_error *error) {
  wf__input input;
  wf_fst_format format;
  wf_error err = {0};
  *out = NULL;
  assert_ok(wf__input_from_memory(data, size, "memory", &input, &err));
  return wf__fst_read_input(&input, out, &format, error);
}

#endif
