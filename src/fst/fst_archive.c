/* fst_archive.c - OpenFst's archives of fsts (FAR): a sequence of keys and fsts, sorted by key.
 *
 *   sttable   i32 magic 2125656924 | i32 version 1 | entries | i64 number of entries |
 *             i64 offset of each entry | i64 number of entries
 *   stlist    i32 magic 5656924 | i32 version 1 | entries | an empty key
 *
 * An entry is a key (i32 size, bytes) and an fst in one of OpenFst's formats. Offsets count from
 * the start of the file. */
#include <string.h>

#include "fst/fst_formats.h"

enum { VERSION = 1 };

struct wf_far {
  wf__input input;
  wf__cursor cursor; /* at the next entry */
  wf_far_type type;
  bool single;            /* the file is one fst */
  uint64_t count, index;  /* sttable: entries, and the number of the next */
  const uint8_t *offsets; /* sttable: of the entries, in the file */
  const uint8_t *end;     /* of the entry before `index`; NULL: not known */
  char *key;              /* of the last entry */
};

/* --- reading ----------------------------------------------------------------------------- */

static wf_status read_index(wf_far *far, wf_error *err) {
  const wf__input *input = &far->input;
  int64_t count, again;
  const size_t word = sizeof count;
  if (wf__cursor_left(&far->cursor) < 2 * word)
    return wf__cursor_fail(&far->cursor, err, WF_ERR_FORMAT, "no index at the end: truncated");
  memcpy(&count, input->data + input->size - word, word);
  uint64_t room = wf__cursor_left(&far->cursor) / word - 2;
  if (count < 0 || (uint64_t)count > room)
    return wf__cursor_fail(
        &far->cursor, err, WF_ERR_FORMAT,
        "%lld entries in the index, but the file has room for %llu: truncated or "
        "damaged",
        (long long)count, (unsigned long long)room);
  far->count = (uint64_t)count;
  far->offsets = input->data + input->size - (far->count + 1) * word;
  far->cursor.end = far->offsets - word;
  memcpy(&again, far->cursor.end, word);
  return again == count ? WF_OK
                        : wf__cursor_fail(&far->cursor, err, WF_ERR_FORMAT,
                                          "the index has two lengths, %lld and %lld: truncated or "
                                          "damaged",
                                          (long long)again, (long long)count);
}

static wf_status read_start(wf_far *far, wf_error *err) {
  int32_t magic = 0, version;
  far->cursor = wf__cursor_of(&far->input);
  if (far->input.size >= sizeof magic) memcpy(&magic, far->input.data, sizeof magic);
  far->single = magic == WF__OPENFST_MAGIC || wf__native_is(&far->input);
  if (far->single) return WF_OK;
  far->type = magic == WF__STLIST_MAGIC ? WF_FAR_STLIST : WF_FAR_STTABLE;
  if (magic != WF__STTABLE_MAGIC && magic != WF__STLIST_MAGIC)
    return wf__fail(err, WF_ERR_FORMAT, "%s: not an archive of fsts (FAR)", far->input.path);
  WF__TRY(wf__read_i32(&far->cursor, &magic, "the magic number", err));
  WF__TRY(wf__read_i32(&far->cursor, &version, "the version", err));
  if (version != VERSION)
    return wf__cursor_fail(&far->cursor, err, WF_ERR_UNSUPPORTED,
                           "version %d of an archive; can read %d", version, VERSION);
  return far->type == WF_FAR_STTABLE ? read_index(far, err) : WF_OK;
}

wf_status wf__far_open_input(wf__input *input, wf_far **out, wf_error *err) {
  *out = NULL;
  wf_far *far = wf__calloc(1, sizeof *far);
  if (far == NULL) {
    wf__input_close(input);
    return wf__fail_memory(err, sizeof *far, "an archive");
  }
  far->input = *input;
  wf_status status = read_start(far, err);
  if (status == WF_OK)
    *out = far;
  else
    wf_far_free(far);
  return status;
}

wf_status wf_far_open(const char *path, wf_far **out, wf_error *err) {
  wf__input input;
  *out = NULL;
  WF__TRY(wf__input_open(path, &input, err));
  return wf__far_open_input(&input, out, err);
}

void wf_far_free(wf_far *far) {
  if (far == NULL) return;
  wf__input_close(&far->input);
  free(far->key);
  free(far);
}

wf_far_type wf_far_get_type(const wf_far *far) { return far->type; }

/* Reads the key at the cursor; `*size` 0 is the end of a list. */
static wf_status read_key(wf__cursor *cursor, const char **key, int32_t *size, wf_error *err) {
  const uint8_t *bytes;
  WF__TRY(wf__read_i32(cursor, size, "the key of an fst", err));
  if (*size < 0) return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "a key of %d bytes", *size);
  WF__TRY(wf__read_view(cursor, &bytes, (uint64_t)*size, "the key of an fst", err));
  *key = (const char *)bytes;
  if (memchr(bytes, '\0', (size_t)*size) != NULL)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "a key with a NUL byte");
  return WF_OK;
}

/* Moves to entry `index` of a table. */
static wf_status seek(wf_far *far, uint64_t index, wf_error *err) {
  int64_t offset;
  memcpy(&offset, far->offsets + index * sizeof offset, sizeof offset);
  if (offset < 8 || offset > far->cursor.end - far->cursor.begin)
    return wf__fail(err, WF_ERR_FORMAT, "%s: entry %llu of the index is at byte %lld: damaged",
                    far->input.path, (unsigned long long)index, (long long)offset);
  far->cursor.at = far->cursor.begin + offset;
  far->index = index;
  return WF_OK;
}

/* The fst of a file that is not an archive. A second reader takes the bytes: a native fst keeps
 * them. */
static wf_status read_single(wf_far *far, wf_fst **out, wf_error *err) {
  wf_fst_format format;
  far->index = 1;
  far->key = wf__strndup("", 0);
  if (far->key == NULL) return wf__fail_memory(err, 1, "a key");
  wf_status status = wf__fst_read_input(&far->input, out, &format, err);
  far->input = (wf__input){0};
  return status;
}

/* Reads the fst at the cursor, whose key is read. */
static wf_status read_fst(wf_far *far, const char *key, int32_t size, wf_fst **out, wf_error *err) {
  wf_fst_format format;
  far->key = wf__strndup(key, (size_t)size);
  if (far->key == NULL) return wf__fail_memory(err, (uint64_t)size, "a key");
  wf_status status = wf__openfst_read_next(&far->cursor, out, &format, err);
  if (status == WF_OK) far->index++;
  far->end = far->cursor.at;
  return status == WF_OK ? WF_OK : wf__fail_prefix(err, status, "fst '%s'", far->key);
}

wf_status wf_far_next(wf_far *far, const char **out_key, wf_fst **out, wf_error *err) {
  const char *key;
  int32_t size = 0;
  *out_key = NULL;
  *out = NULL;
  free(far->key);
  far->key = NULL;
  if (far->single) {
    if (far->index == 0) WF__TRY(read_single(far, out, err));
    *out_key = far->key;
    return WF_OK;
  }
  if (far->type == WF_FAR_STTABLE) {
    if (far->index >= far->count) {
      if (far->cursor.at == far->cursor.end) return WF_OK;
      return wf__cursor_fail(&far->cursor, err, WF_ERR_FORMAT,
                             "%llu bytes before the index are in no entry: truncated or damaged",
                             (unsigned long long)wf__cursor_left(&far->cursor));
    }
    WF__TRY(seek(far, far->index, err));
    if (far->end != NULL && far->cursor.at < far->end) /* a small file could hold many large fsts */
      return wf__cursor_fail(&far->cursor, err, WF_ERR_FORMAT,
                             "entry %llu of the index begins before the end of the one before",
                             (unsigned long long)far->index);
  }
  const uint8_t *before = far->cursor.at;
  WF__TRY(read_key(&far->cursor, &key, &size, err));
  if (size == 0 && far->type == WF_FAR_STLIST) {
    if (wf__cursor_left(&far->cursor) != 0)
      return wf__cursor_fail(&far->cursor, err, WF_ERR_FORMAT, "%llu bytes follow the archive",
                             (unsigned long long)wf__cursor_left(&far->cursor));
    far->cursor.at = before; /* so that the next call finds the end, too */
    return WF_OK;
  }
  WF__TRY(read_fst(far, key, size, out, err));
  *out_key = far->key;
  return WF_OK;
}

/* Compares a key in the file with a string, byte by byte. */
static int compare_key(const char *key, int32_t size, const char *text) {
  size_t other = strlen(text), common = (size_t)size < other ? (size_t)size : other;
  int order = memcmp(key, text, common);
  return order != 0 ? order : ((size_t)size > other) - ((size_t)size < other);
}

/* Finds the first entry whose key is not below `key`, by halving. */
static wf_status find_in_table(wf_far *far, const char *key, wf_error *err) {
  uint64_t low = 0, high = far->count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    const char *here;
    int32_t size;
    WF__TRY(seek(far, middle, err));
    WF__TRY(read_key(&far->cursor, &here, &size, err));
    if (compare_key(here, size, key) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  far->index = low;
  if (low == far->count) far->cursor.at = far->cursor.end;
  return WF_OK;
}

wf_status wf_far_find(wf_far *far, const char *key, wf_fst **out, wf_error *err) {
  const char *found = NULL;
  *out = NULL;
  far->end = NULL;
  if (!far->single && far->type == WF_FAR_STTABLE)
    WF__TRY(find_in_table(far, key, err));
  else if (!far->single)
    far->cursor.at = far->cursor.begin + 8;
  do {
    wf_fst_free(*out);
    WF__TRY(wf_far_next(far, &found, out, err));
  } while (found != NULL && far->type == WF_FAR_STLIST && strcmp(found, key) != 0);
  if (found != NULL && strcmp(found, key) == 0) return WF_OK;
  wf_fst_free(*out);
  *out = NULL;
  return wf__fail(err, WF_ERR_ARGUMENT, "no fst with the key '%s'", key);
}

/* --- writing ----------------------------------------------------------------------------- */

struct wf_far_writer {
  wf__output *output;
  wf_far_type type;
  char *last_key;
  WF__VEC(int64_t) offsets;
};

static void free_writer(wf_far_writer *writer) {
  free(writer->last_key);
  wf__vec_free(&writer->offsets);
  free(writer);
}

wf_status wf_far_writer_open(const char *path, wf_far_type type, wf_far_writer **out,
                             wf_error *err) {
  *out = NULL;
  const int32_t start[2] = {type == WF_FAR_STLIST ? WF__STLIST_MAGIC : WF__STTABLE_MAGIC, VERSION};
  if (type != WF_FAR_STTABLE && type != WF_FAR_STLIST)
    return wf__fail(err, WF_ERR_ARGUMENT, "unknown type of archive %d", (int)type);
  if (type == WF_FAR_STTABLE)
    WF__TRY(wf__output_needs_offsets(path, "an archive with an index (sttable)", err));
  wf_far_writer *writer = wf__calloc(1, sizeof *writer);
  if (writer == NULL) return wf__fail_memory(err, sizeof *writer, "an archive");
  writer->type = type;
  wf_status status = wf__output_open(path, &writer->output, err);
  if (status != WF_OK) {
    free_writer(writer);
    return status;
  }
  wf__write(writer->output, start, sizeof start);
  *out = writer;
  return WF_OK;
}

wf_status wf_far_writer_put(wf_far_writer *writer, const char *key, const wf_fst *fst,
                            wf_error *err) {
  size_t length = strlen(key);
  const int32_t size = (int32_t)length;
  if (length == 0 || length > INT32_MAX)
    return wf__fail(err, WF_ERR_ARGUMENT, "a key needs 1 to 2^31 - 1 bytes");
  if (writer->last_key != NULL && strcmp(key, writer->last_key) < 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "key '%s' comes after '%s', but keys must be sorted", key,
                    writer->last_key);
  char *copy = wf__strndup(key, length);
  if (copy == NULL) return wf__fail_memory(err, length, "a key");
  free(writer->last_key);
  writer->last_key = copy;
  WF__TRY(wf__vec_push(&writer->offsets, (int64_t)wf__output_offset(writer->output), "an archive",
                       err));
  wf__write(writer->output, &size, sizeof size);
  wf__write(writer->output, key, length);
  return wf__openfst_write(fst, WF_FORMAT_OPENFST_VECTOR, writer->output, err);
}

wf_status wf_far_writer_close(wf_far_writer *writer, wf_error *err) {
  const int64_t count = (int64_t)writer->offsets.size;
  const int32_t empty = 0;
  if (writer->type == WF_FAR_STLIST) {
    wf__write(writer->output, &empty, sizeof empty);
  } else {
    wf__write(writer->output, &count, sizeof count);
    if (count != 0) wf__write(writer->output, writer->offsets.data, (size_t)count * sizeof count);
    wf__write(writer->output, &count, sizeof count);
  }
  wf_status status = wf__output_close(writer->output, err);
  free_writer(writer);
  return status;
}

void wf_far_writer_abort(wf_far_writer *writer) {
  if (writer == NULL) return;
  wf__output_abort(writer->output);
  free_writer(writer);
}
