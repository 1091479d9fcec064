/* fst_formats.h - internal interface to the readers (bytes in memory to an fst) and writers (an fst
 * to an output) of fst files.
 *
 *   fst_files.c                       opens files, detects the format, calls one of the others
 *   openfst_read.c, openfst_write.c   OpenFst's VectorFst and ConstFst
 *   native_file.c                     warpfst's memory-mapped file (layout: see there)
 *   fst_archive.c                     OpenFst's archives of fsts (FAR)
 *   fst_compile.c, fst_print.c        AT&T text */
#ifndef WF_FST_FST_FORMATS_H
#define WF_FST_FST_FORMATS_H

#include "base/input.h"
#include "base/output.h"
#include "fst/fst.h"

#define WF__OPENFST_MAGIC 2125659606
#define WF__STTABLE_MAGIC 2125656924
#define WF__STLIST_MAGIC 5656924

/* Reads any binary format and sets `*format`. Takes ownership of the input, which is empty
 * afterwards: a native fst keeps using its bytes. */
wf_status wf__fst_read_input(wf__input *input, wf_fst **out, wf_fst_format *format, wf_error *err);
wf_status wf__fst_write_to(const wf_fst *fst, wf_fst_format format, wf__output *output,
                           wf_error *err);

/* Reads one fst of OpenFst and moves the cursor behind it. In an archive, other data may follow. */
wf_status wf__openfst_read_next(wf__cursor *cursor, wf_fst **out, wf_fst_format *format,
                                wf_error *err);
/* Fails if other data follows. */
wf_status wf__openfst_read(const wf__input *input, wf_fst **out, wf_fst_format *format,
                           wf_error *err);
wf_status wf__openfst_write(const wf_fst *fst, wf_fst_format format, wf__output *output,
                            wf_error *err);

/* Takes ownership of the input, as wf__fst_read_input does. */
wf_status wf__native_read(wf__input *input, wf_fst **out, wf_error *err);
wf_status wf__native_write(const wf_fst *fst, wf__output *output, wf_error *err);

/* Does the file start with the native magic? */
bool wf__native_is(const wf__input *input);

/* wf_far_open from bytes in memory. Takes ownership of the input. */
wf_status wf__far_open_input(wf__input *input, wf_far **out, wf_error *err);

/* wf_fst_compile from bytes in memory, and wf_fst_print to an open output. */
wf_status wf__fst_compile_input(const wf__input *input, const wf_symbols *isymbols,
                                const wf_symbols *osymbols, const wf_text_options *options,
                                wf_fst **out, wf_error *err);
wf_status wf__fst_print_to(const wf_fst *fst, const wf_symbols *isymbols,
                           const wf_symbols *osymbols, const wf_text_options *options,
                           wf__output *output, wf_error *err);

#endif
