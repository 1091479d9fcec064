/* warpfst_python.h - functions of the library that only the Python package needs. */
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
 * first statement, which can happen with KeyboardInterrupt. The callbacks here call the interpreter
 * from C and keep the exception in `raised`. After the library call, the package passes it to
 * PyErr_Restore.
 * ========================================================================================= */

/* The functions of the Python interpreter with these names. */
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
/* Sets the interpreter's functions, which are copied. Call it before the functions below, and
 * before other threads use the library. */
WF_API void wf_python_use(const wf_python *python);

/* A call into Python. All pointers are borrowed. */
typedef struct wf_python_call {
  void
      *callable; /* for wf_python_progress: (stage, fraction) -> bool; for wf_python_epoch: (address
                    of the wf_rnnlm_epoch). Not called again after it has raised an exception */
  void *raised[3]; /* the exception as returned by PyErr_Fetch; all NULL: none */
} wf_python_call;

/* A wf_interrupt_fn, a wf_progress_fn and a wf_rnnlm_epoch_fn. `user` is a wf_python_call.
 * wf_python_check only runs signal handlers (PyErr_CheckSignals) and does not call `callable`. */
WF_API bool wf_python_check(void *user);
WF_API bool wf_python_progress(void *user, const char *stage, double fraction);
WF_API void wf_python_epoch(void *user, const wf_rnnlm_epoch *epoch);
/* Destructor of a capsule. The capsule's context is the function that frees its pointer. So objects
 * are freed without Python code, in which an exception would be lost. */
WF_API void wf_python_destroy(void *capsule);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_PYTHON_H */
