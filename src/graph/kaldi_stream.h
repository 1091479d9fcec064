/* kaldi_stream.h - reads the basic elements of Kaldi's own files, binary and text.
 *
 *   element          binary                                            text
 *   start of file    '\0' 'B'                                          nothing
 *   token            letters, one blank                                the same, any blanks
 *   int32, uint32    '\4' | '\xfc', 4 bytes                            digits
 *   float            '\4', 4 bytes or '\10', 8 bytes                   number
 *   integers         '\4', int32 count, count x 4 bytes                [ 1 2 3 ]
 *   vector           "FV " | "DV ", int32 (as above), count x 4 | 8    [ 0.5 0.25 ]
 *
 * Every read checks how many bytes are left. Error messages name the file and the byte (binary) or
 * line (text). */
#ifndef WF_GRAPH_KALDI_STREAM_H
#define WF_GRAPH_KALDI_STREAM_H

#include "base/input.h"
#include "base/memory.h"

typedef WF__VEC(int32_t) wf__ints;
typedef WF__VEC(float) wf__floats;

typedef struct wf__kaldi_stream {
  wf__cursor cursor;
  bool binary;
} wf__kaldi_stream;

wf__kaldi_stream wf__kaldi_open(const wf__input *input);
/* Same as wf__fail; puts the file and the byte or line before the message. */
wf_status wf__kaldi_fail(const wf__kaldi_stream *stream, wf_error *err, wf_status code,
                         const char *format, ...) WF__PRINTF(4, 5);

/* Reads a token, up to the next blank; *out points into the input. In text, '[' and ']' are
 * separate tokens. Never empty. */
wf_status wf__kaldi_token(wf__kaldi_stream *stream, wf__span *out, wf_error *err);
bool wf__kaldi_is(wf__span token, const char *text);
/* Fails unless the next token is `text`. */
wf_status wf__kaldi_expect(wf__kaldi_stream *stream, const char *text, wf_error *err);
wf_status wf__kaldi_i32(wf__kaldi_stream *stream, int32_t *out, const char *what, wf_error *err);
wf_status wf__kaldi_u32(wf__kaldi_stream *stream, uint32_t *out, const char *what, wf_error *err);
wf_status wf__kaldi_f32(wf__kaldi_stream *stream, float *out, const char *what, wf_error *err);
/* These append to `out`. */
wf_status wf__kaldi_i32s(wf__kaldi_stream *stream, wf__ints *out, const char *what, wf_error *err);
wf_status wf__kaldi_vector(wf__kaldi_stream *stream, wf__floats *out, const char *what,
                           wf_error *err);

#if defined(__clang_analyzer__) /* as in error.h */
#define wf__kaldi_fail(stream, err, code, ...) \
  (wf__kaldi_fail(stream, err, code, __VA_ARGS__), (code))
#endif

#endif
