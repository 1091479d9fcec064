/* npy.h - score matrices in NumPy's .npy files.
 *
 *     "\x93NUMPY", u8 major, u8 minor version, header size (version 1: u16, later: u32)
 *     header, a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 *     values
 *
 * Only the three keys that NumPy writes are accepted in the header, in any order. */
#ifndef WF_IO_NPY_H
#define WF_IO_NPY_H

#include "base/input.h"

/* True if the bytes start with the magic. */
bool wf__is_npy(const uint8_t *data, size_t size);
/* Reads the matrix and multiplies it by `scale`. The values must end at the end of the bytes. Sets
 * all fields but the key. */
wf_status wf__npy_read(const uint8_t *data, size_t size, const char *path, float scale,
                       wf_matrix *out, wf_error *err);
/* Writes the bytes before the values of a C-ordered float32 matrix to `header`. Returns their
 * number, at most 192. */
size_t wf__npy_header(const wf_matrix *matrix, char header[192]);

#endif
