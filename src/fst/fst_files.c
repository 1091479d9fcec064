/* fst_files.c - opens fst files by name, detects the format from the content, and calls its reader
 * or writer. */
#include <string.h>

#include "fst/fst_formats.h"
#include "fst/symbols.h"

/* Does the file look like text for fstcompile? This only selects a helpful error message. */
static bool looks_like_text(const wf__input *input) {
  size_t size = input->size < 256 ? input->size : 256;
  for (size_t i = 0; i < size; i++)
    if (input->data[i] < ' ' && input->data[i] != '\n' && input->data[i] != '\t' &&
        input->data[i] != '\r')
      return false;
  return size > 0;
}

static wf_status fail_unknown(const wf__input *input, int32_t magic, wf_error *err) {
  const char *path = input->path;
  if (input->size == 0)
    return wf__fail(err, WF_ERR_FORMAT, "%s: the file is empty, not an fst", path);
  if (magic == WF__SYMBOLS_MAGIC)
    return wf__fail(err, WF_ERR_FORMAT, "%s: a binary symbol table, not an fst", path);
  if (magic == WF__STTABLE_MAGIC || magic == WF__STLIST_MAGIC)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "%s: an archive of fsts (FAR); take the fst out with 'warpfst far extract'",
                    path);
  if (input->size >= 5 && memcmp(input->data, "#JSGF", 5) == 0)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: a grammar in JSGF, not an fst; 'warpfst mkgraph --grammar' and "
                    "wf_grammar_read read it",
                    path);
  if (looks_like_text(input))
    return wf__fail(err, WF_ERR_FORMAT, "%s: looks like text; compile it first (warpfst compile)",
                    path);
  return wf__fail(err, WF_ERR_FORMAT,
                  "%s: not an fst file: neither OpenFst's magic number nor warpfst's, but 0x%08x",
                  path, (unsigned)magic);
}

wf_status wf__fst_read_input(wf__input *input, wf_fst **out, wf_fst_format *format, wf_error *err) {
  *out = NULL;
  *format = WF_FORMAT_NATIVE;
  if (wf__native_is(input)) return wf__native_read(input, out, err);
  int32_t magic = 0;
  if (input->size >= sizeof magic) memcpy(&magic, input->data, sizeof magic);
  wf_status status = magic == WF__OPENFST_MAGIC ? wf__openfst_read(input, out, format, err)
                                                : fail_unknown(input, magic, err);
  wf__input_close(input);
  return status;
}

wf_status wf_fst_read_format(const char *path, wf_fst **out, wf_fst_format *out_format,
                             wf_error *err) {
  *out = NULL;
  wf__input input;
  WF__TRY(wf__input_open(path, &input, err));
  return wf__fst_read_input(&input, out, out_format, err);
}

wf_status wf_fst_read_memory(const void *data, size_t size, const char *name, wf_fst **out,
                             wf_error *err) {
  *out = NULL;
  wf__input input;
  wf_fst_format format;
  WF__TRY(wf__input_from_memory(data, size, name, &input, err));
  return wf__fst_read_input(&input, out, &format, err);
}

wf_status wf_fst_read(const char *path, wf_fst **out, wf_error *err) {
  wf_fst_format format;
  return wf_fst_read_format(path, out, &format, err);
}

wf_status wf__fst_write_to(const wf_fst *fst, wf_fst_format format, wf__output *output,
                           wf_error *err) {
  switch (format) {
    case WF_FORMAT_NATIVE: return wf__native_write(fst, output, err);
    case WF_FORMAT_OPENFST_VECTOR:
    case WF_FORMAT_OPENFST_CONST:
    case WF_FORMAT_OPENFST_VECTOR_LOG64:
    case WF_FORMAT_OPENFST_CONST_LOG64: return wf__openfst_write(fst, format, output, err);
    case WF_FORMAT_OPENFST_COMPACT:
    case WF_FORMAT_OPENFST_EDIT:
    case WF_FORMAT_OPENFST_NGRAM:
    case WF_FORMAT_OPENFST_LOOKAHEAD:
      return wf__fail(err, WF_ERR_UNSUPPORTED,
                      "compact, edit, ngram and look-ahead fsts are only read; write vector or "
                      "const");
  }
  return wf__fail(err, WF_ERR_ARGUMENT, "unknown file format %d", (int)format);
}

wf_status wf_fst_write(const wf_fst *fst, const char *path, wf_fst_format format, wf_error *err) {
  wf__output *output;
  WF__TRY(wf__output_open(path, &output, err));
  wf_status status = wf__fst_write_to(fst, format, output, err);
  if (status == WF_OK) return wf__output_close(output, err);
  wf__output_abort(output);
  return status;
}

wf_status wf_fst_write_memory(const wf_fst *fst, wf_fst_format format, void **out, size_t *size,
                              wf_error *err) {
  wf__output *output;
  *out = NULL;
  *size = 0;
  WF__TRY(wf__output_open_memory(&output, err));
  wf_status status = wf__fst_write_to(fst, format, output, err);
  if (status == WF_OK) return wf__output_take(output, out, size, err);
  wf__output_abort(output);
  return status;
}
