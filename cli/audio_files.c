/* audio_files.c - tells users who give a recording or an acoustic model to a command that reads
 * scores which command they want. */
#include "audio_files.h"

#include <string.h>
#include <strings.h>

#include "base/first_bytes.h"
#include "base/platform.h"
#include "cli.h"

typedef enum file_kind { OTHER, AUDIO, ACOUSTIC_MODEL } file_kind;

static bool has_suffix(const char *path, const char *const *suffixes) {
  const char *dot = strrchr(path, '.');
  for (; dot != NULL && *suffixes != NULL; suffixes++)
    if (strcasecmp(dot, *suffixes) == 0) return true;
  return false;
}

static bool named_audio(const char *path) {
  static const char *const suffixes[] = {".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a",
                                         ".aac", ".mp4",  ".wma", ".sph", NULL};
  return has_suffix(path, suffixes);
}

static bool named_model(const char *path) {
  static const char *const suffixes[] = {".onnx", ".nemo", ".pt", ".pth", ".ckpt", NULL};
  return has_suffix(path, suffixes);
}

/* Whether a file begins as WAV, FLAC, Ogg or MP3 with tags does. */
static bool begins_as_audio(const char *path) {
  char head[12];
  return wf__first_bytes(path, head, sizeof head) == sizeof head &&
         ((memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WAVE", 4) == 0) ||
          memcmp(head, "fLaC", 4) == 0 || memcmp(head, "OggS", 4) == 0 ||
          memcmp(head, "ID3", 3) == 0);
}

/* A folder with recordings and without scores. */
static bool holds_audio(const char *path) {
  static const char *const scores[] = {".npy", ".sen", NULL};
  wf__folder *folder = wf__folder_open(path);
  bool audio = false, other = false;
  if (folder == NULL) return false;
  for (const char *name; (name = wf__folder_next(folder)) != NULL;) {
    audio = audio || named_audio(name);
    other = other || has_suffix(name, scores);
  }
  wf__folder_close(folder);
  return audio && !other;
}

static file_kind kind_of(const char *path) {
  const wf__file_kind kind = wf__path_kind(path);
  if (kind == WF__FILE_FOLDER) return holds_audio(path) ? AUDIO : OTHER;
  if (kind != WF__FILE_REGULAR) return OTHER; /* what is read from a pipe is gone */
  if (named_audio(path) || begins_as_audio(path)) return AUDIO;
  return named_model(path) ? ACOUSTIC_MODEL : OTHER;
}

int refuse_audio(char **paths, int num_paths) {
  for (int i = 0; i < num_paths; i++) {
    switch (kind_of(paths[i])) {
      case OTHER: break;
      case AUDIO:
        return cli_usage(
            "%s: audio, but this command reads an acoustic model's scores. The Python "
            "package's 'warpfst transcribe %s --model FOLDER' reads audio",
            paths[i], paths[i]);
      case ACOUSTIC_MODEL:
        return cli_usage(
            "%s: an acoustic model, but this command reads a graph and a model's "
            "scores. The Python package's 'warpfst transcribe AUDIO --model FOLDER' "
            "runs models",
            paths[i]);
    }
  }
  return -1;
}
