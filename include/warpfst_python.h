/* warpfst_python.h - functions of the library that only the Python package needs. */
#ifndef WARPFST_PYTHON_H
#define WARPFST_PYTHON_H

#include "warpfst_lattice.h"
#include "warpfst_lm.h"
#include "warpfst_transducer.h"

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
/* A language model of a beam search whose `callable`, (history, word) -> bool, sets `next` and
 * `score`. */
typedef struct wf_python_lm {
  wf_python_call call;
  int64_t next;
  double score;
} wf_python_lm;
/* A wf_beam_lm_fn. `user` is a wf_python_lm. */
WF_API bool wf_python_score(void *user, int64_t history, int32_t word, int64_t *next,
                            double *score);
/* A wf_predictor_fn and a wf_joiner_fn. `user` is a wf_python_call whose `callable`, (address of
 * the rows, 0: predictor, 1: joiner) -> bool, fills the rows. */
WF_API bool wf_python_predict(void *user, const wf_predictor_rows *rows);
WF_API bool wf_python_join(void *user, const wf_joiner_rows *rows);
/* Destructor of a capsule. The capsule's context is the function that frees its pointer. So objects
 * are freed without Python code, in which an exception would be lost. */
WF_API void wf_python_destroy(void *capsule);

/* =========================================================================================
 * Batches
 *
 * A batch is borrowed with one call, and its results are arrays of the whole batch. So the time
 * that Python takes does not grow with one call per utterance.
 * ========================================================================================= */

/* More functions of the interpreter, for wf_python_borrow. */
typedef struct wf_python_objects {
  void (*Py_DecRef)(void *object);
  int (*PyObject_CheckBuffer)(void *object);
  int (*PyObject_GetBuffer)(void *object, void *buffer, int flags);
  void (*PyBuffer_Release)(void *buffer);
  void *(*PyMemoryView_FromObject)(void *object);
  void *(*PyObject_GetAttr)(void *object, void *name);
  void *(*PyObject_Call)(void *callable, void *arguments, void *keywords);
  void *(*PyObject_Type)(void *object);
  void *(*PyErr_Occurred)(void);
  ptrdiff_t (*PyTuple_Size)(void *tuple);
  void *(*PyTuple_GetItem)(void *tuple, ptrdiff_t i);
  long (*PyLong_AsLong)(void *object);
  long long (*PyLong_AsLongLong)(void *object);
  int (*PyList_Append)(void *list, void *item);
  int (*PyCapsule_IsValid)(void *capsule, const char *name);
  void *(*PyCapsule_GetPointer)(void *capsule, const char *name);
} wf_python_objects;
/* Sets these functions, which are copied. */
WF_API void wf_python_use_objects(const wf_python_objects *python);

/* A list of score matrices that is being borrowed. All Python objects are borrowed references. */
typedef struct wf_python_borrowing {
  void *items;                  /* tuple of objects with the buffer protocol or DLPack */
  void *owners;                 /* list; receives objects that keep the memory of the matrices */
  void *no_arguments;           /* the empty tuple */
  void *dlpack, *dlpack_device; /* the names of these methods */
  void *keywords[4];  /* of __dlpack__: for host memory, for a GPU; then both without max_version */
  void *torch_tensor; /* torch.Tensor, or NULL. Its __dlpack__ synchronises the current stream of
                         the device, so only the first tensor on a GPU needs to do it. Others are
                         read through their attributes, which is faster */
  void *torch_dtypes[3];  /* torch.float32, float16, bfloat16 */
  void *torch_names[8];   /* the names is_cpu, is_cuda, requires_grad, dtype, shape, stride,
                             data_ptr, get_device */
  size_t count;           /* of the items */
  const int64_t *lengths; /* [count]: frames of each, or NULL: all */
  wf_scores *scores;      /* [count], initially zero */
  size_t next;            /* in and out: index of the next item */
  int32_t device;         /* in and out: the GPU of the scores; -1: none yet */
  bool unversioned;       /* call __dlpack__ without max_version */
  bool synchronised;      /* in and out: by a torch tensor on `device` */
} wf_python_borrowing;
/* Fills scores[next] to scores[count - 1]. Stops at the first item that needs more than the usual:
 * another type or layout, an empty matrix, another GPU, a length out of range, an exception (which
 * stays set). `next` is then its index. Needs the interpreter's lock. */
WF_API void wf_python_borrow(wf_python_borrowing *borrowing);

/* The results of a batch, as arrays of the whole batch in one block of memory. The words of
 * utterance i are word_off[i] to word_off[i + 1] - 1. An utterance that failed has no words, and
 * its costs are NaN. Made by the library only; fields may be added at the end. */
typedef struct wf_batch_results {
  size_t count;
  wf_result **results;      /* [count]; each owned by the batch */
  const int64_t *word_off;  /* [count + 1] */
  const wf_word *words;     /* [word_off[count]] */
  const float *confidences; /* [word_off[count]]; NaN where they failed. NULL: none were made
                               (wf_decoder_set_lattice_results, wf_batch_results_complete) */
  const double *cost, *graph_cost, *acoustic_cost, *scorer_cost; /* [count], as all below */
  const int64_t *status, *flags, *num_frames, *num_decoded, *num_tokens, *num_expanded, *num_arcs,
      *num_narrowed, *num_estimated;
} wf_batch_results;
/* Takes over `results`, an array of `count` results from the library that may be freed after the
 * call. On failure the results stay the caller's. */
WF_API wf_status wf_batch_results_take(wf_result *const *results, size_t count,
                                       wf_batch_results **out, wf_error *err);
WF_API void wf_batch_results_free(wf_batch_results *results);
/* Returns the text of each utterance, followed by a NUL: its words, separated by spaces. A word
 * without text in `words` (which may be NULL) is its number. Free *out with wf_free. */
WF_API wf_status wf_batch_results_texts(const wf_batch_results *results, const wf_symbols *words,
                                        char **out, size_t *num_bytes, wf_error *err);
/* Makes for all results of a batch what they lack, on determinizing->num_threads threads:
 * determinized lattices, and the confidences and lists that are wanted. They are the same as with
 * wf_decoder_set_determinization and wf_decoder_set_lattice_results. `keep_raw` and `mbr` have no
 * effect; confidence_scale 0 stands for 1. Results without a lattice get nothing. Lists that were
 * made before keep their length. Errors of single lattices are in the results. One call at a time
 * for each batch; meanwhile other threads may read what was made before. */
WF_API wf_status wf_batch_results_complete(wf_batch_results *results,
                                           const wf_lattice_determinize_options *determinizing,
                                           const wf_lattice_results_options *wanted, wf_error *err);
/* wf_decode, with scores, scorers and graphs as an array each. `scorers` and `graphs` may be NULL.
 */
WF_API wf_status wf_batch_decode(wf_decoder *decoder, const wf_scores *scores,
                                 const wf_scorer *const *scorers, const wf_graph *const *graphs,
                                 size_t count, const wf_progress *progress, wf_batch_results **out,
                                 wf_error *err);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_PYTHON_H */
