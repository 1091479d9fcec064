/* warpfst_python.h - what the Python package needs of the library, and nobody else. */
#ifndef WARPFST_PYTHON_H
#define WARPFST_PYTHON_H

#include "warpfst_lm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * Callbacks into Python
 *
 * For the Python package. A callback made by ctypes loses an exception that is raised before its
 * first statement, as KeyboardInterrupt is. These keep it, and whoever made the call hands `raised`
 * to PyErr_Restore.
 * ========================================================================================= */

/* The interpreter's functions of these names. */
typedef struct wf_python {
  int (*PyGILState_Ensure)(void);
  void (*PyGILState_Release)(int);
  int (*PyErr_CheckSignals)(void);
  void (*PyErr_Fetch)(void **type, void **value, void **traceback);
  void *(*PyObject_CallFunction)(void *callable, const char *format, ...);
  int (*PyObject_IsTrue)(void *object);
  void (*Py_DecRef)(void *object);
  void *(*PyCapsule_GetPointer)(void *capsule, const char *name);
  void *(*PyCapsule_GetContext)(void *capsule);
} wf_python;
/* Copies them, for all of the following. Call it before other threads use the library. */
WF_API void wf_python_use(const wf_python *python);

/* All pointers are borrowed. */
typedef struct wf_python_call {
  void *callable;  /* of wf_python_progress: (stage, fraction) -> bool; of wf_python_epoch: (address
                      of the wf_rnnlm_epoch). Not called again once it has raised */
  void *raised[3]; /* the exception, as PyErr_Fetch gives it; all NULL: none */
} wf_python_call;

/* A wf_interrupt_fn, a wf_progress_fn and a wf_rnnlm_epoch_fn whose `user` is a wf_python_call. The
 * first runs handlers of signals and calls nothing else. */
WF_API bool wf_python_check(void *user);
WF_API bool wf_python_progress(void *user, const char *stage, double fraction);
WF_API void wf_python_epoch(void *user, const wf_rnnlm_epoch *epoch);
/* The destructor of a capsule whose context is the function that frees its pointer: objects go
 * without a line of Python, in which an exception would be lost. */
WF_API void wf_python_destroy(void *capsule);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_PYTHON_H */
