/* python_scores.c - borrows the score matrices of many Python objects in one call, without a copy.
 * Takes what batches usually hold. Everything else, and every error, is left to the caller, which
 * handles one object at a time (python/warpfst/scores.py). */
#include <string.h>

#include "base/error.h"

static wf_python_objects g_python;

void wf_python_use_objects(const wf_python_objects *python) { g_python = *python; }

/* Py_buffer of the stable ABI. */
struct buffer {
  void *buf, *obj;
  ptrdiff_t len, itemsize;
  int readonly, ndim;
  const char *format;
  const ptrdiff_t *shape, *strides, *suboffsets;
  void *internal;
};
enum { STRIDES_AND_FORMAT = 0x1c }; /* PyBUF_STRIDES | PyBUF_FORMAT */

/* DLTensor and DLManagedTensorVersioned of DLPack 1. */
struct dl_tensor {
  char *data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  const int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct dl_versioned {
  uint32_t major, minor;
  void *manager, *deleter;
  uint64_t flags;
  struct dl_tensor tensor;
};
enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };

/* A matrix with strides in elements. False: it is empty, or must be reported. */
static bool set_scores(wf_scores *scores, const void *data, int64_t num_frames, int64_t num_columns,
                       int64_t frame_stride, int64_t column_stride, int64_t length) {
  if (num_frames <= 0 || num_columns <= 0 || num_columns > INT32_MAX || length > num_frames ||
      (num_columns > 1 && column_stride != 1) || (num_frames > 1 && frame_stride < num_columns))
    return false;
  scores->data = data;
  scores->num_frames = length >= 0 ? length : num_frames;
  scores->num_columns = (int32_t)num_columns;
  scores->stride = num_frames > 1 ? frame_stride : num_columns;
  return true;
}

static bool take_buffer(wf_python_borrowing *b, void *item, wf_scores *scores, int64_t length) {
  struct buffer buffer;
  void *view = g_python.PyMemoryView_FromObject(item);
  if (view == NULL) return false;
  bool taken = g_python.PyObject_GetBuffer(view, &buffer, STRIDES_AND_FORMAT) == 0;
  if (taken) {
    const bool is_float = buffer.format != NULL && strcmp(buffer.format, "f") == 0;
    const bool is_half = buffer.format != NULL && strcmp(buffer.format, "e") == 0;
    taken = (is_float || is_half) && buffer.ndim == 2 && buffer.strides[0] % buffer.itemsize == 0 &&
            buffer.strides[1] % buffer.itemsize == 0 &&
            set_scores(scores, buffer.buf, buffer.shape[0], buffer.shape[1],
                       buffer.strides[0] / buffer.itemsize, buffer.strides[1] / buffer.itemsize,
                       length) &&
            g_python.PyList_Append(b->owners, view) == 0;
    scores->dtype = is_half ? WF_FLOAT16 : WF_FLOAT32;
    g_python.PyBuffer_Release(&buffer); /* the memoryview keeps the memory */
  }
  g_python.Py_DecRef(view);
  return taken;
}

/* Calls the method with these arguments. NULL: Python has an exception. */
static void *call_method(const wf_python_borrowing *b, void *item, void *name, void *keywords) {
  void *method = g_python.PyObject_GetAttr(item, name);
  if (method == NULL) return NULL;
  void *result = g_python.PyObject_Call(method, b->no_arguments, keywords);
  g_python.Py_DecRef(method);
  return result;
}

static bool take_tensor(wf_python_borrowing *b, const struct dl_tensor *tensor, wf_scores *scores,
                        int64_t length) {
  const bool on_gpu = tensor->device_type == DL_CUDA || tensor->device_type == DL_CUDA_MANAGED;
  if (tensor->ndim != 2 || tensor->lanes != 1) return false;
  if (tensor->code == 2 && tensor->bits == 32)
    scores->dtype = WF_FLOAT32;
  else if (tensor->code == 2 && tensor->bits == 16)
    scores->dtype = WF_FLOAT16;
  else if (tensor->code == 4 && tensor->bits == 16)
    scores->dtype = WF_BFLOAT16;
  else
    return false;
  const int64_t *strides = tensor->strides;
  if (!set_scores(scores, tensor->data + tensor->byte_offset, tensor->shape[0], tensor->shape[1],
                  strides != NULL ? strides[0] : tensor->shape[1], strides != NULL ? strides[1] : 1,
                  length))
    return false;
  scores->on_device = on_gpu;
  if (on_gpu) b->device = tensor->device_id;
  return true;
}

static bool is_torch(const wf_python_borrowing *b, void *item) {
  void *type = g_python.PyObject_Type(item);
  g_python.Py_DecRef(type);
  return type == b->torch_tensor;
}

static bool take_dlpack(wf_python_borrowing *b, void *item, wf_scores *scores, int64_t length) {
  void *pair = call_method(b, item, b->dlpack_device, NULL);
  if (pair == NULL) return false;
  void *type = g_python.PyTuple_GetItem(pair, 0), *id = g_python.PyTuple_GetItem(pair, 1);
  const long device_type = type != NULL && id != NULL ? g_python.PyLong_AsLong(type) : -1;
  const long device = device_type >= 0 ? g_python.PyLong_AsLong(id) : -1;
  g_python.Py_DecRef(pair);
  const bool on_gpu = device_type == DL_CUDA || device_type == DL_CUDA_MANAGED;
  if (device < 0 || (!on_gpu && device_type != DL_CPU && device_type != DL_CUDA_HOST) ||
      (on_gpu && b->device >= 0 && b->device != device))
    return false;
  void *capsule = call_method(b, item, b->dlpack, b->keywords[2 * b->unversioned + on_gpu]);
  if (capsule == NULL) return false;
  const struct dl_tensor *tensor = NULL;
  if (g_python.PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    const struct dl_versioned *managed =
        g_python.PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (managed->major == 1) tensor = &managed->tensor;
  } else if (g_python.PyCapsule_IsValid(capsule, "dltensor")) {
    tensor = g_python.PyCapsule_GetPointer(capsule, "dltensor");
  }
  const bool taken = tensor != NULL && take_tensor(b, tensor, scores, length) &&
                     g_python.PyList_Append(b->owners, capsule) == 0;
  if (taken && on_gpu) b->synchronised = b->synchronised || is_torch(b, item);
  g_python.Py_DecRef(capsule);
  return taken;
}

enum { IS_CPU, IS_CUDA, REQUIRES_GRAD, DTYPE, SHAPE, STRIDE, DATA_PTR, GET_DEVICE };

/* The attribute, or what the method returns, as a number; -1: an exception. */
static long long torch_number(const wf_python_borrowing *b, void *item, int name) {
  void *value = name == DATA_PTR || name == GET_DEVICE
                    ? call_method(b, item, b->torch_names[name], NULL)
                    : g_python.PyObject_GetAttr(item, b->torch_names[name]);
  if (value == NULL) return -1;
  const long long number = g_python.PyLong_AsLongLong(value); /* of True: 1 */
  g_python.Py_DecRef(value);
  return number;
}

/* Fills `out` from a tuple of two numbers. */
static bool torch_pair(void *tuple, int64_t *out) {
  bool good = tuple != NULL && g_python.PyTuple_Size(tuple) == 2;
  for (int i = 0; i < 2 && good; i++) {
    out[i] = g_python.PyLong_AsLongLong(g_python.PyTuple_GetItem(tuple, i));
    good = out[i] >= 0;
  }
  if (tuple != NULL) g_python.Py_DecRef(tuple);
  return good;
}

/* A torch tensor in host memory, or on the GPU where an earlier tensor synchronised. It stays alive
 * as one of the items. */
static bool take_torch(wf_python_borrowing *b, void *item, wf_scores *scores, int64_t length) {
  const long long is_cuda = torch_number(b, item, IS_CUDA);
  const bool on_gpu = is_cuda == 1;
  if (is_cuda < 0) return false;
  if (on_gpu ? !b->synchronised || torch_number(b, item, GET_DEVICE) != b->device
             : torch_number(b, item, IS_CPU) != 1)
    return false;
  if (torch_number(b, item, REQUIRES_GRAD) != 0) return false;
  void *dtype = g_python.PyObject_GetAttr(item, b->torch_names[DTYPE]);
  if (dtype == NULL) return false;
  g_python.Py_DecRef(dtype);
  const int number = dtype == b->torch_dtypes[0]   ? WF_FLOAT32
                     : dtype == b->torch_dtypes[1] ? WF_FLOAT16
                     : dtype == b->torch_dtypes[2] ? WF_BFLOAT16
                                                   : -1;
  int64_t shape[2], strides[2];
  if (number < 0 || !torch_pair(g_python.PyObject_GetAttr(item, b->torch_names[SHAPE]), shape) ||
      !torch_pair(call_method(b, item, b->torch_names[STRIDE], NULL), strides))
    return false;
  const long long address = torch_number(b, item, DATA_PTR);
  if (address <= 0 || !set_scores(scores, (const void *)(uintptr_t)address, shape[0], shape[1],
                                  strides[0], strides[1], length))
    return false;
  scores->dtype = (wf_dtype)number;
  scores->on_device = on_gpu;
  return true;
}

static bool take(wf_python_borrowing *b, void *item, wf_scores *scores, int64_t length) {
  if (g_python.PyObject_CheckBuffer(item)) return take_buffer(b, item, scores, length);
  if (b->torch_tensor != NULL && is_torch(b, item)) {
    if (take_torch(b, item, scores, length)) return true;
    if (g_python.PyErr_Occurred() != NULL) return false;
  }
  return take_dlpack(b, item, scores, length);
}

void wf_python_borrow(wf_python_borrowing *b) {
  for (; b->next < b->count; b->next++) {
    void *item = g_python.PyTuple_GetItem(b->items, (ptrdiff_t)b->next);
    const int64_t length = b->lengths != NULL ? b->lengths[b->next] : -1;
    wf_scores *scores = &b->scores[b->next];
    if (item == NULL || (b->lengths != NULL && length < 0)) return;
    if (!take(b, item, scores, length)) return;
  }
}
