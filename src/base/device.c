/* device.c - the registry of devices, and the loading of libwarpfst-cuda. Compiled for the shared
 * library with WF__CUDA_FILE, the name of its file; the static library loads nothing. */
#include "base/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <build_id.h>
#include "base/platform.h"

static _Atomic(const wf__device *) registered;
static _Atomic(const char *) refused; /* the build of a device that does not fit */

void wf__device_register(const wf__device *device) {
  if (strcmp(device->build, WF__BUILD) == 0)
    atomic_store(&registered, device);
  else
    atomic_store(&refused, device->build);
}

const wf__device *wf__device_found(void) { return atomic_load(&registered); }

#ifdef WF__CUDA_FILE
static pthread_once_t once = PTHREAD_ONCE_INIT;
static wf_error reason;               /* why there is no device */
static char own_file[WF__PATH_BYTES]; /* of this library */

/* When the library is loaded: later, a relative name may mean another file. */
__attribute__((constructor)) static void note_own_file(void) { wf__library_file(&once, own_file); }

/* Is the file in the folder of `library`? */
static bool is_beside(const char *library, char out[WF__PATH_BYTES]) {
  const char *slash = strrchr(library, '/');
  const int length = slash != NULL ? (int)(slash + 1 - library) : 0;
  return snprintf(out, WF__PATH_BYTES, "%.*s%s", length, library, WF__CUDA_FILE) < WF__PATH_BYTES &&
         length > 0 && wf__path_kind(out) != WF__FILE_NONE;
}

/* The file beside this library, or beside what a symbolic link to it names; else only its name, for
 * which the system's loader looks. */
static const char *find_file(char out[WF__PATH_BYTES]) {
  char real[WF__PATH_BYTES];
  if (is_beside(own_file, out)) return out;
  if (wf__path_real(own_file, real) && is_beside(real, out)) return out;
  return WF__CUDA_FILE;
}

static void load(void) {
  if (wf__device_found() != NULL) return; /* linked with the program */
  char path[WF__PATH_BYTES];
  const char *library = own_file, *file = find_file(path);
  /* A library of another build may lack functions, but can say which build it is. */
  const char *problem = wf__library_load(file);
  const char *other = atomic_load(&refused);
  if (wf__device_found() != NULL) return;
  if (problem != NULL && strncmp(problem, WF__CUDA_FILE ":", strlen(WF__CUDA_FILE ":")) == 0)
    wf__fail(&reason, WF_ERR_DEVICE,
             "%s is not beside %s: install the GPU backend (the wheel warpfst-cuda), or build it "
             "with WARPFST_CUDA=ON",
             WF__CUDA_FILE, library);
  else if (problem != NULL)
    wf__fail(&reason, WF_ERR_DEVICE,
             "%s was not loaded by build %s (warpfst and warpfst-cuda must be of one version): %s",
             file, WF__BUILD, problem);
  else if (other != NULL)
    wf__fail(&reason, WF_ERR_DEVICE,
             "%s is of build %s and %s of build %s: install warpfst and warpfst-cuda of one "
             "version, or both libraries of one build",
             file, other, library, WF__BUILD);
  else
    wf__fail(&reason, WF_ERR_DEVICE, "%s was loaded for another copy of %s in this process", file,
             library);
}

/* Sets *why if there still is no device. A device registers itself before its library is loaded
 * wholly, so other threads wait here. */
static const wf__device *look_for(const char **why) {
  pthread_once(&once, load);
  *why = reason.message;
  return wf__device_found();
}
#else
static const wf__device *look_for(const char **why) {
  *why = "this library was built without CUDA";
  return wf__device_found();
}
#endif

const wf__device *wf__device_find(const char *name, wf_error *err) {
  const char *why;
  const wf__device *device = look_for(&why);
  if (device == NULL)
    wf__fail(err, WF_ERR_DEVICE, "device %s: %s", name != NULL ? name : "cuda", why);
  return device;
}
