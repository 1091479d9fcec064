/* fst_formats.h - readers and writers of fst files from the inside: bytes in memory -> fst, fst ->
 * output.
 *
 *   fst_files.c        opens files, recognises formats, picks one of
 *   openfst_read.c     OpenFst VectorFst and ConstFst
 *   openfst_write.c
 *   native_file.c      our own mapped file (its layout is drawn there)
 *   fst_compile.c, fst_print.c   AT&T text */
#ifndef WF_FST_FST_FORMATS_H
#define WF_FST_FST_FORMATS_H

#include "base/input.h"
#include "base/output.h"
#include "fst/fst.h"

#define WF__OPENFST_MAGIC 2125659606

/* Reads any binary format. Takes the input over: it is empty afterwards, as a native fst goes on
 * living in its bytes. `*format` is its format. */
wf_status wf__fst_read_input(wf__input *input, wf_fst **out, wf_fst_format *format, wf_error *err);
wf_status wf__fst_write_to(const wf_fst *fst, wf_fst_format format, wf__output *output,
                           wf_error *err);

wf_status wf__openfst_read(const wf__input *input, wf_fst **out, wf_fst_format *format,
                           wf_error *err);
wf_status wf__openfst_write(const wf_fst *fst, wf_fst_format format, wf__output *output,
                            wf_error *err);

/* Takes the input over, as wf__fst_read_input. */
wf_status wf__native_read(wf__input *input, wf_fst **out, wf_error *err);
wf_status wf__native_write(const wf_fst *fst, wf__output *output, wf_error *err);

/* Does the file start with the native magic? */
bool wf__native_is(const wf__input *input);

/* wf_fst_compile and wf_fst_print on bytes. */
wf_status wf__fst_compile_input(const wf__input *input, const wf_symbols *isymbols,
                                const wf_symbols *osymbols, const wf_text_options *options,
                                wf_fst **out, wf_error *err);
wf_status wf__fst_print_to(const wf_fst *fst, const wf_symbols *isymbols,
                           const wf_symbols *osymbols, const wf_text_options *options,
                           wf__output *output, wf_error *err);

#endif
