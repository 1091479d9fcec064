/* error.h - how internal functions report failure.
 *
 * Every fallible function returns a wf_status and takes the caller's `wf_error *` last. wf__fail
 * fills it and returns the code, so that a failing line reads `return wf__fail(err, WF_ERR_FORMAT,
 * "%s: ...", path)`. */
#ifndef WF_BASE_ERROR_H
#define WF_BASE_ERROR_H

#include <stdarg.h>

#include "warpfst_all.h"

#if defined(__GNUC__)
#define WF__PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define WF__PRINTF(fmt, args)
#endif

/* Fills err (may be NULL) and returns code. */
wf_status wf__fail(wf_error *err, wf_status code, const char *format, ...) WF__PRINTF(3, 4);
/* Prepends "text: ", such as a file name, to the message in err. Returns `code`. */
wf_status wf__fail_prefix(wf_error *err, wf_status code, const char *format, ...) WF__PRINTF(3, 4);
/* Out of memory while allocating `bytes` for `what`. */
wf_status wf__fail_memory(wf_error *err, uint64_t bytes, const char *what);
/* Names a place of a file: "PATH:PLACENUMBER: ...", where `place` is " byte ", " line " or "". */
wf_status wf__fail_at(wf_error *err, wf_status code, const char *path, const char *place,
                      uint64_t number, const char *format, va_list args) WF__PRINTF(6, 0);
#if defined(__clang_analyzer__)
/* For the static analyzer, which cannot see error.c: wf__fail does not return WF_OK. (The
 * definitions put the names in parentheses, which keeps macros out.) */
#define wf__fail(err, code, ...) (wf__fail(err, code, __VA_ARGS__), (code))
#define wf__fail_prefix(err, code, ...) (wf__fail_prefix(err, code, __VA_ARGS__), (code))
#define wf__fail_memory(err, bytes, what) (wf__fail_memory(err, bytes, what), WF_ERR_MEMORY)
#endif
/* The status for an errno: WF_ERR_MEMORY if there is no memory, else WF_ERR_IO. */
wf_status wf__io_status(int code);
/* Clears err at the start of a public call. */
void wf__error_clear(wf_error *err);

/* Formats as vsnprintf does. Replaces control characters, U+0080 to U+009F included, by '?',
 * because messages may quote input and must not control a terminal. */
void wf__format_text(char *text, size_t size, const char *format, va_list args) WF__PRINTF(3, 0);

/* Returns the status of a failing expression. */
#define WF__TRY(expr)                                   \
  do {                                                  \
    wf_status wf__try_status = (expr);                  \
    if (wf__try_status != WF_OK) return wf__try_status; \
  } while (0)
/* Same, with a jump to `label` and the status left in `variable`. */
#define WF__TRY_GOTO(variable, expr, label) \
  do {                                      \
    (variable) = (expr);                    \
    if ((variable) != WF_OK) goto label;    \
  } while (0)

#endif
