/* npy.h - score matrices in NumPy's .npy files.
 *
 *     "\x93NUMPY" major minor  uint16 | uint32 header size  {'descr': '<f4', 'fortran_order':
 *                              False, 'shape': (3, 4), }  values
 *
 * The header is a Python literal; only the three keys that NumPy writes are accepted, in any order.
 */
#ifndef WF_IO_NPY_H
#define WF_IO_NPY_H

#include "base/input.h"

/* Do the bytes start with the magic? */
bool wf__is_npy(const uint8_t *data, size_t size);
/* The matrix in the bytes, times scale; the file must end with it. Sets all but the key. */
wf_status wf__npy_read(const uint8_t *data, size_t size, const char *path, float scale,
                       wf_matrix *out, wf_error *err);
/* The bytes in front of a C-ordered float32 matrix: at most 192 into `header`, the number returned.
 */
size_t wf__npy_header(const wf_matrix *matrix, char header[192]);

#endif
