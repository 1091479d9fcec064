/* sphinx_s3.h - the container format of CMU Sphinx's binary files: model parameters and logged
 * scores.
 *
 *     s3 \n  name value \n ...  endhdr \n   uint32 0x11223344 (gives the byte order)   data */
#ifndef WF_GRAPH_SPHINX_S3_H
#define WF_GRAPH_SPHINX_S3_H

#include "base/input.h"

typedef struct wf__s3 {
  wf__span header;   /* the lines between "s3" and "endhdr" */
  wf__cursor cursor; /* at the start of the data */
  bool swap;         /* the data is in the other byte order */
} wf__s3;

/* Does the data start like an s3 file? */
bool wf__is_s3(const uint8_t *data, size_t size);
wf_status wf__s3_open(const wf__input *input, wf__s3 *out, wf_error *err);
/* The first value of a header line; false if there is no such line. */
bool wf__s3_value(const wf__s3 *s3, const char *name, wf__span *out);

#endif
