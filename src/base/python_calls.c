/* python_calls.c - calls into Python that keep exceptions. Python raises KeyboardInterrupt when its
 * evaluation loop checks for signals, which may be before a function's first statement. A ctypes
 * callback cannot propagate such an exception: it prints it and continues. So C code calls the
 * interpreter here and keeps the exception for the caller. */
#include "base/error.h"

static wf_python g_python;

void wf_python_use(const wf_python *python) { g_python = *python; }

/* Needs the interpreter's lock. */
static bool keep_raised(wf_python_call *call) {
  g_python.PyErr_Fetch(&call->raised[0], &call->raised[1], &call->raised[2]);
  return false;
}

bool wf_python_check(void *user) {
  wf_python_call *call = user;
  if (call->raised[0] != NULL) return false;
  const int state = g_python.PyGILState_Ensure();
  const bool good = g_python.PyErr_CheckSignals() == 0 || keep_raised(call);
  g_python.PyGILState_Release(state);
  return good;
}

/* Converts the result of the callable to a truth value. Needs the interpreter's lock. */
static bool take_result(wf_python_call *call, void *result) {
  const int truth = result != NULL ? g_python.PyObject_IsTrue(result) : -1;
  if (truth < 0) keep_raised(call);
  if (result != NULL) g_python.Py_DecRef(result);
  return truth > 0;
}

bool wf_python_progress(void *user, const char *stage, double fraction) {
  wf_python_call *call = user;
  if (call->raised[0] != NULL) return false;
  const int state = g_python.PyGILState_Ensure();
  const bool good =
      take_result(call, g_python.PyObject_CallFunction(call->callable, "yd", stage, fraction));
  g_python.PyGILState_Release(state);
  return good;
}

void wf_python_epoch(void *user, const wf_rnnlm_epoch *epoch) {
  wf_python_call *call = user;
  if (call->raised[0] != NULL) return;
  const int state = g_python.PyGILState_Ensure();
  (void)take_result(call, g_python.PyObject_CallFunction(call->callable, "K",
                                                         (unsigned long long)(uintptr_t)epoch));
  g_python.PyGILState_Release(state);
}

bool wf_python_score(void *user, int64_t history, int32_t word, int64_t *next, double *score) {
  wf_python_lm *lm = user;
  if (lm->call.raised[0] != NULL) return false;
  const int state = g_python.PyGILState_Ensure();
  const bool good = take_result(
      &lm->call,
      g_python.PyObject_CallFunction(lm->call.callable, "Li", (long long)history, (int)word));
  *next = lm->next;
  *score = lm->score;
  g_python.PyGILState_Release(state);
  return good;
}

/* Rows of a predictor (kind 0) or a joiner (1). */
static bool call_rows(wf_python_call *call, const void *rows, int kind) {
  if (call->raised[0] != NULL) return false;
  const int state = g_python.PyGILState_Ensure();
  const bool good =
      take_result(call, g_python.PyObject_CallFunction(call->callable, "Ki",
                                                       (unsigned long long)(uintptr_t)rows, kind));
  g_python.PyGILState_Release(state);
  return good;
}

bool wf_python_predict(void *user, const wf_predictor_rows *rows) {
  return call_rows(user, rows, 0);
}

bool wf_python_join(void *user, const wf_joiner_rows *rows) { return call_rows(user, rows, 1); }

void wf_python_destroy(void *capsule) {
  union {
    void *address;
    void (*call)(void *object);
  } release = {g_python.PyCapsule_GetContext(capsule)};
  if (release.address != NULL) release.call(g_python.PyCapsule_GetPointer(capsule, NULL));
}
